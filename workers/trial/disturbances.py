"""Disturbances of a trial: other programs, swapping, throttling, clocks. Pure.

Each limit is a compromise between trusting too much and trusting nothing:

- other programs: only CPU time that they took while no core was free counts; beside a free core they do not change the trial's
  times. A tenth of the processors (RANKWIRE_FOREIGN_CPU_PERCENT) is more than the database, the page that follows the trial and
  the kernel's own threads take on two cores.
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
    for number, host in enumerate(samples[0].machines):
        course = [(sample.monotonic_ns, sample.machines[host]) for sample in samples if host in sample.machines]
        on = f" on {host}" if own_machines else ""
        ranks_s = sum(usage.cpu_s for usage in usages if usage.host == host or not own_machines)
        reasons += _foreign(course, ranks_s, started_here=number == 0, allowed=foreign_share, on=on)
        reasons += _troubles(course, on)
    return tuple(reasons)


Course = Sequence[tuple[int, MachineSample]]


def _foreign(course: Course, ranks_s: float, *, started_here: bool, allowed: float, on: str) -> Iterator[str]:
    """Yield a sentence on other programs, which take at most what the ranks leave.

    On the first host the agent's total includes the ranks; on others only their own reports do.
    """
    first, last = course[0][1], course[-1][1]
    started_s = last.cpu_ours_s - first.cpu_ours_s
    ours_s = max(started_s, ranks_s) if started_here else started_s + ranks_s
    whole_s = _whole_s(last) - _whole_s(first)
    taken_s = min(busy_s(first, last) - ours_s, _contended_s(course))
    if whole_s > 0 and taken_s / whole_s > allowed:
        share = amount(taken_s / whole_s, SHARE)
        yield f"other programs took {share} of the processors{on} while no core was free"


def _contended_s(course: Course) -> float:
    """Return the CPU time of other programs while no core was free."""
    taken_s = 0.0
    for (before_ns, before), (after_ns, after) in pairwise(course):
        length_s = (after_ns - before_ns) / 1e9
        if after.cpu_idle_s - before.cpu_idle_s < FREE_CORES * length_s:
            taken_s += busy_s(before, after) - (after.cpu_ours_s - before.cpu_ours_s)
    return taken_s


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


def missing_cores(samples: Sequence[Sample], usages: Sequence[RankUsage], threads: int) -> tuple[str, ...]:
    """Return the machines whose ranks have more threads than cores, one sentence each."""
    if not samples:
        return ()
    machines = samples[0].machines
    alone = next(iter(machines)) if len(machines) == 1 else None
    ranks = Counter(alone or usage.host for usage in usages)
    return tuple(
        f"{plural(count, 'rank')} with {plural(threads, 'thread')} each share {plural(machines[host].cores, 'core')} of {host}"
        for host, count in ranks.items()
        if host in machines and 0 < machines[host].cores < count * threads
    )
