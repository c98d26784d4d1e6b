"""Rules about ranks: uneven or growing work, missing cores, network costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis.catalogue import METRICS
from analysis.conclusions.observations.reading import Observation, Reading, SizeEntry
from analysis.conclusions.rules.registry import Finding, finding, finding_at, rule
from analysis.conclusions.sentences.findings import (
    PLACEMENT,
    TAKE_TURNS,
    cache_misses_grow,
    descheduled_shares,
    lacked_core,
    shared_from,
    with_threads,
)
from analysis.conclusions.wording import percent, sizes
from analysis.mpi.efficiencies import ATTENTION
from analysis.numbers import grouped, plural, significant
from analysis.scaling import Point
from analysis.scaling.breakdown import is_profiled

_UNEVEN_CPU: Final = 0.1
_BALANCED: Final = 0.9
_GROWN: Final = 0.1
"""Least change of a factor of the computation scalability for a finding."""
_LEAST_RUN_DELAY: Final = 0.05
"""Least share of the ranks' time for a finding."""
_LEAST_WORK: Final = 0.01
"""Least share of the time that uneven or growing work must explain for a finding."""


def _is_small(explains: float | None) -> bool:
    """Return whether the work is too little to matter."""
    return explains is not None and explains < _LEAST_WORK


@rule
def load_imbalance(reading: Reading) -> Iterator[Finding]:
    """Report the busiest rank against the mean, by CPU time, without a profile."""
    worst = reading.highest("cpu_imbalance")
    if worst is None or not reading.study.ranks_alike or is_profiled(reading.study) or worst.median < _UNEVEN_CPU:
        return
    cpu, elapsed = worst.point.median("cpu_mean_rank_s"), worst.point.median("elapsed_s")
    explains = worst.median * cpu / elapsed if cpu and elapsed else None
    if _is_small(explains):
        return
    words = {"explains": explains, "more": percent(worst.median)}
    yield finding_at(reading, "load_imbalance", worst, "cpu_imbalance", "CPU imbalance", **words)


@rule
def oversubscribed(reading: Reading) -> Iterator[Finding]:
    """Report more ranks or threads than cores on a virtual test-bed."""
    cores = reading.study.cores
    shared = [t for t in reading.times if t.point.outnumbers(cores)]
    over = [(t.size, t.point.ranks) for t in shared]
    if not cores or not over:
        return
    first, last = over[0], over[-1]
    yield finding(
        "oversubscribed",
        "strong",
        (
            Observation("Cores", cores, "1"),
            *(Observation("Ranks", float(ranks or 0), "1", "", size) for size, ranks in over),
            *reading.evidence("Involuntary context switches", "context_switches_involuntary", "1"),
        ),
        where=shared_from(sizes(first[0], reading.axis), first is last) if reading.sizes_differ else "",
        ranks=f"{first[1]}" if first[1] == last[1] else f"{first[1]} to {last[1]}",
        threads=with_threads(sorted({t.point.threads for t in reading.times})),
        cores=plural(cores, "core"),
        measured=lacked_core(_descheduled(shared[-1].point), reading.at_sizes(last[:1])),
    )


def _descheduled(point: Point) -> str:
    """Return the shares outside and in MPI in words, "" if they are small."""
    outside, inside = (point.median(f"mpi_descheduled_{part}share") or 0.0 for part in ("", "inside_"))
    return descheduled_shares(outside, inside) if outside + inside >= _LEAST_RUN_DELAY else ""


@rule
def placement(reading: Reading) -> Iterator[Finding]:
    """Report ranks on too few cores, idle sockets and migrated ranks."""
    for name in PLACEMENT:
        misplaced = [(x, p, p.placement[name]) for x, p in reading.points if p.placement.get(name)]
        if misplaced:
            what = misplaced[0][2][0]
            yield finding(
                name,
                "strong",
                (Observation("Trials", len(sentences), "1", "", x) for x, _, sentences in misplaced),
                what=what[0].upper() + what[1:],
                at=reading.at(*(p for _, p, _ in misplaced)),
            )


@rule
def mpi_load_imbalance(reading: Reading) -> Iterator[Finding]:
    """Report the rank that the others wait for."""
    worst = reading.lowest("mpi_load_balance")
    if worst is None or worst.median >= _BALANCED or not reading.study.ranks_alike:
        return
    window, most = (worst.point.median(f"mpi_{name}_s") for name in ("window", "useful_max_rank"))
    rank = worst.same_rank("mpi_busiest_rank")
    explains = (1 - worst.median) * most / window if window and most else None
    if _is_small(explains):
        return
    words = {
        "explains": explains,
        "busiest": "the busiest rank" if rank is None else f"rank {grouped(rank)}",
        "more": percent(1 / worst.median - 1),
    }
    yield finding_at(reading, "mpi_load_imbalance", worst, "mpi_load_balance", "Load balance", **words)


@rule
def computation_grows(reading: Reading) -> Iterator[Finding]:
    """Report ranks that together compute more at larger sizes of one problem."""
    rows = reading.breakdown
    if not is_profiled(reading.study) or len(rows) < 2 or reading.study.kind != "strong":
        return
    scaling = rows[-1].computation_scaling
    if rows[0].size == rows[-1].size or scaling is None or scaling >= ATTENTION:
        return
    largest = reading.series("mpi_useful_s")[-1]
    outside = _outside_share(largest)
    if _is_small(None if outside is None else outside * (1 - scaling)):
        return
    yield finding(
        "computation_grows",
        reading.strength_at(largest, "mpi_useful_s"),
        reading.evidence("Useful time of all ranks", "mpi_useful_s", "s"),
        first=significant(rows[0].size),
        last=sizes(rows[-1].size, reading.axis),
        more=percent(1 / scaling - 1),
    )


@rule
def instructions_grow(reading: Reading) -> Iterator[Finding]:
    """Report ranks that together execute more at larger sizes of one problem."""
    if reading.study.kind == "strong":
        yield from _against_smallest(reading, "instructions_grow", "processor_instructions", rises=True)


@rule
def ipc_falls(reading: Reading) -> Iterator[Finding]:
    """Report cores that wait longer for memory at larger sizes."""
    misses = _of_both(reading, "processor_cache_misses", "processor_instructions")
    grown = misses is not None and misses > 1 + _GROWN
    more = cache_misses_grow(misses - 1) if misses is not None and grown else ""
    yield from _against_smallest(reading, "ipc_falls", "processor_ipc", misses=more)


@rule
def frequency_falls(reading: Reading) -> Iterator[Finding]:
    """Report cores that are clocked lower at larger sizes."""
    yield from _against_smallest(reading, "frequency_falls", "processor_frequency_hz")


def _outside_share(entry: SizeEntry) -> float | None:
    """Return the share of the MPI window that the ranks are outside MPI."""
    useful, no_core = (entry.point.median(f"mpi_{part}_share") for part in ("useful", "no_core"))
    return None if useful is None or no_core is None else useful + no_core


def _of_both(reading: Reading, over: str, under: str) -> float | None:
    """Return how a ratio of two metrics changes from the smallest to the largest size."""
    above, below = reading.series(over), reading.series(under)
    ends = [(above[at].median, below[at].median) for at in (0, -1)] if above and below else []
    ratios = [top / bottom for top, bottom in ends if top and bottom]
    return ratios[1] / ratios[0] if len(ratios) == len(ends) == 2 else None


def _against_smallest(
    reading: Reading, name: str, metric: str, *, rises: bool = False, **words: str
) -> Iterator[Finding]:
    """Report a factor of the computation scalability that is low at the largest size."""
    series = reading.series(metric)
    if len({entry.size for entry in series}) < 2 or not reading.study.ranks_alike or not reading.moves(metric):
        return
    first, last = series[0], series[-1]
    factor = first.median / last.median if rises else last.median / first.median
    if factor > 1 - _GROWN:
        return
    outside = _outside_share(last)
    explains = None if outside is None else outside * (1 - factor)
    if _is_small(explains):
        return
    yield finding(
        name,
        reading.strength_at(last, metric),
        reading.evidence(METRICS[metric].label, metric, METRICS[metric].unit),
        explains=explains,
        first=significant(first.size),
        last=sizes(last.size, reading.axis),
        change=percent(1 / factor - 1 if rises else 1 - factor),
        **words,
    )


@rule
def mpi_no_core(reading: Reading) -> Iterator[Finding]:
    """Report descheduled ranks, by the kernel's run delay, on unshared cores."""
    metric, cores = "mpi_descheduled_share", reading.study.cores
    lacking = [e for e in reading.series(metric) if e.median >= _LEAST_RUN_DELAY and not e.point.outnumbers(cores)]
    if lacking:
        last = lacking[-1]
        words = {"explains": last.median, "shares": _descheduled(last.point)}
        yield finding_at(reading, "mpi_no_core", last, metric, METRICS[metric].label, **words)


@rule
def mpi_blocked_outside(reading: Reading) -> Iterator[Finding]:
    """Report ranks that are blocked outside MPI, or off the CPU without run delay."""
    has_run_delay = bool(reading.series("mpi_descheduled_share"))
    yield from _outside_mpi(
        reading,
        "mpi_blocked_outside",
        "mpi_blocked_outside_share" if has_run_delay else "mpi_no_core_share",
        state="blocked outside MPI" if has_run_delay else "off the CPU outside MPI",
        why="they sleep, or wait for files or locks" if has_run_delay else "the kernel does not report why",
    )


def _outside_mpi(reading: Reading, name: str, metric: str, **words: str) -> Iterator[Finding]:
    worst = reading.highest(metric)
    if worst is None or worst.median < _LEAST_RUN_DELAY:
        return
    last, at = reading.series(metric)[-1], reading.at(worst.point)
    words |= {"share": percent(worst.median), "at": at}
    if reading.sizes_differ and last.size != worst.size:
        words |= {"share": percent(last.median), "at": f"{reading.at(last.point)} and {percent(worst.median)}{at}"}
    yield finding_at(reading, name, worst, metric, METRICS[metric].label, explains=worst.median, **words)


@rule
def transfer_costs(reading: Reading) -> Iterator[Finding]:
    """Report the cost of the link, by ideal-network runs."""
    return _lost(reading, "transfer_costs", "Transfer efficiency", "mpi_transfer_efficiency")


@rule
def serialisation_costs(reading: Reading) -> Iterator[Finding]:
    """Report ranks that wait for each other even on an ideal network."""
    return _lost(reading, "serialisation_costs", "Serialisation efficiency", "mpi_serialisation_efficiency")


def _lost(reading: Reading, name: str, label: str, metric: str) -> Iterator[Finding]:
    """Return the loss of an efficiency; it is weak evidence on shared cores."""
    worst = reading.lowest(metric)
    if worst is None or worst.median >= ATTENTION:
        return
    shared = name == "serialisation_costs" and worst.point.outnumbers(reading.study.cores)
    lost = 1 - worst.median
    doubt = {"strength": "weak", "caveat": TAKE_TURNS} if shared else {"caveat": ""}
    yield finding_at(reading, name, worst, metric, label, explains=lost, share=percent(lost), **doubt)
