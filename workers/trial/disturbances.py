"""Disturbances of a trial: other programs, swapping, throttling, clocks. Pure.

Each limit is a compromise between trusting too much and trusting nothing:

- other programs: only CPU time that they took of the ranks' cores while none of a rank's was free counts; beside a free core
  they do not change the trial's times. A tenth of these cores (RANKWIRE_FOREIGN_CPU_PERCENT) is more than the database, the page
  that follows the trial and the kernel's own threads take on two cores. Where ranks could not be seen, as in trials of less than
  a quarter of a second, all cores that programs may use are judged together.
- swapping: a megabyte is an idle daemon that woke up; ranks that swap fetch hundreds.
- a clock: a time daemon slews it by at most half a millisecond a second, and a reading of two clocks is accurate to less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from analysis.numbers import SHARE, amount, plural
from workers.hosts.sampling import MachineSample, Sample
from workers.trial.rank_usage import RankUsage

FREE_CORES: Final = 0.5
"""With less than this idle, no core was free: whatever ran took its time from something else."""
SWAPPED_BYTES: Final = 1 << 20
STEP_NS: Final = 10_000_000
SLEW: Final = 0.001
"""Of the time between two looks: twice what a clock may be turned by."""
THROTTLED_S: Final = 0.1


def disturbances(
    samples: Sequence[Sample], usages: Sequence[RankUsage], *, foreign_share: float, own_machines: bool
) -> tuple[str, ...]:
    """Return the disturbances of a sampled trial, one sentence each.

    ``foreign_share`` of the processors may go to other programs. ``own_machines``: each host is a machine, on which daemons of
    the MPI library start ranks that are known by their ``usages`` only.
    """
    if len(samples) < 2:
        return ()
    reasons: list[str] = []
    for host in samples[0].machines:
        course = [(sample.monotonic_ns, sample.machines[host]) for sample in samples if host in sample.machines]
        on = f" on {host}" if own_machines else ""
        ranks_s = sum(usage.cpu_s for usage in usages if usage.host == host or not own_machines)
        reasons += _foreign(course, ranks_s, allowed=foreign_share, on=on)
        reasons += _troubles(course, on)
    return tuple(reasons)


Course = Sequence[tuple[int, MachineSample]]


def _foreign(course: Course, ranks_s: float, *, allowed: float, on: str) -> Iterator[str]:
    """Yield a sentence on other programs, by the ranks' cores if those were seen."""
    first, last = course[0][1], course[-1][1]
    cores_s, taken_s = last.rank_cores_s - first.rank_cores_s, last.rank_cores_taken_s - first.rank_cores_taken_s
    if cores_s <= 0:  # the agent's total may lack ranks that a daemon started: they take at most what is left
        ours_s = max(last.cpu_ours_s - first.cpu_ours_s, ranks_s)
        cores_s = sum(_capacity_s(*pair) for pair in pairwise(course))
        taken_s = min(busy_s(first, last) - ours_s, _contended_s(course))
    if cores_s > 0 and taken_s / cores_s > allowed:
        yield f"other programs took {amount(taken_s / cores_s, SHARE)} of this trial's cores{on} while none was free"


def _contended_s(course: Course) -> float:
    """Return the CPU time of other programs while no core was free.

    What is idle beyond the number of cores that the trial may use is none of its cores.
    """
    taken_s = 0.0
    for before, after in pairwise(course):
        capacity_s, idle_s = _capacity_s(before, after), after[1].cpu_idle_s - before[1].cpu_idle_s
        beyond_s = max(0.0, _whole_s(after[1]) - _whole_s(before[1]) - capacity_s)
        if idle_s - beyond_s < FREE_CORES * (after[0] - before[0]) / 1e9:
            ours_s = after[1].cpu_ours_s - before[1].cpu_ours_s
            taken_s += min(busy_s(before[1], after[1]), capacity_s) - ours_s
    return taken_s


def _capacity_s(before: tuple[int, MachineSample], after: tuple[int, MachineSample]) -> float:
    """Return the time of all cores that the trial might use between two samples."""
    return min(before[1].cpus, after[1].cpus) * (after[0] - before[0]) / 1e9


def busy_s(before: MachineSample, after: MachineSample) -> float:
    """Return the CPU time of programs and other virtual machines, without interrupts.

    Most interrupts process the trial's own packets.
    """
    return _of_programs_s(after) - _of_programs_s(before)


def _of_programs_s(machine: MachineSample) -> float:
    return machine.cpu_user_s + machine.cpu_system_s - machine.cpu_interrupts_s + machine.cpu_stolen_s


def _whole_s(machine: MachineSample) -> float:
    return machine.cpu_user_s + machine.cpu_system_s + machine.cpu_idle_s + machine.cpu_stolen_s


def _troubles(course: Course, on: str) -> Iterator[str]:
    first, last = course[0][1], course[-1][1]
    if other := next((now for _, now in course if _cpus(now) != _cpus(first)), None):
        yield f"the CPUs{on} changed during the trial, from {_cpus(first)} to {_cpus(other)}"
    swapped = last.swapped_in_bytes - first.swapped_in_bytes
    if swapped > SWAPPED_BYTES:
        yield f"{amount(swapped, 'B')} were read back from swap{on}"
    if events := last.throttle_events - first.throttle_events:
        yield f"the processor{on} slowed down {plural(events, 'time')} because of heat"
    if (held_s := last.throttled_s - first.throttled_s) > THROTTLED_S:
        yield f"the limit of the control group{on} held programs for {amount(held_s, 's')}"
    steps = [
        after.realtime_offset_ns - before.realtime_offset_ns
        for (before_ns, before), (after_ns, after) in pairwise(course)
        if abs(after.realtime_offset_ns - before.realtime_offset_ns) > STEP_NS + SLEW * (after_ns - before_ns)
    ]
    if steps:
        largest = max(map(abs, steps)) / 1e9
        yield f"the clock{on} was set while the trial ran, by {amount(largest, 's')}"


def _cpus(machine: MachineSample) -> str:
    """Return the CPUs that programs may use: "4 CPUs (0-3)"."""
    return plural(machine.cpus, "CPU") + (f" ({machine.cpu_numbers})" if machine.cpu_numbers else "")


def missing_cores(
    samples: Sequence[Sample], usages: Sequence[RankUsage], threads: int, *, by_hardware_threads: bool = False
) -> tuple[str, ...]:
    """Return the machines whose ranks have more threads than cores, one sentence each.

    Two hardware threads of a core are one core, unless ranks are placed by hardware threads.
    """
    if not samples:
        return ()
    machines = samples[0].machines
    alone = next(iter(machines)) if len(machines) == 1 else None
    ranks = Counter(alone or usage.host for usage in usages)
    places = {host: machine.cpus if by_hardware_threads else machine.cores for host, machine in machines.items()}
    return tuple(
        f"{plural(count, 'rank')} with {plural(threads, 'thread')} each share {plural(machines[host].cores, 'core')} of {host}"
        for host, count in ranks.items()
        if 0 < places.get(host, 0) < count * threads
    )
