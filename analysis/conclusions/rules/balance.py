"""Rules about who waits for whom: uneven work, and ranks that share cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.mpi import LEAST_RUN_DELAY
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent, sizes
from analysis.numbers import plural
from analysis.scaling.breakdown import is_profiled

_IMBALANCED: Final = 0.1


@rule
def load_imbalance(reading: Reading) -> Iterator[Finding]:
    """The busiest rank against the mean, by CPU time: where ranks left a profile, that tells (`rules.mpi`)."""
    places = reading.series("cpu_imbalance")
    if not places or not reading.study.ranks_alike or is_profiled(reading.study):
        return
    worst = max(places, key=lambda p: p.median)
    if worst.median < _IMBALANCED:
        return
    yield Finding(
        "load_imbalance",
        "time",
        f"The load is uneven{reading.at(worst.point)}: "
        f"the busiest rank uses {percent(worst.median)} more CPU time than the mean.",
        reading.strength(doubtful=not reading.study.may_claim(worst.point, metric="cpu_imbalance")),
        tuple(Evidence("CPU imbalance", p.median, "share", "cpu_imbalance", p.size) for p in places),
        "where-time-goes",
        "Try another decomposition or the program's own balancing: the others wait for the busiest rank.",
        explains=_waiting_share(worst),
    )


def _waiting_share(worst: Place) -> float | None:
    """By how much longer the busiest rank computes than the mean, as a share of the run."""
    cpu, elapsed = worst.point.median("cpu_mean_rank_s"), worst.point.median("elapsed_s")
    return min(1.0, worst.median * cpu / elapsed) if cpu and elapsed else None


def _with_threads(reading: Reading) -> str:
    """The threads of a rank in words, where any has more than one: " with 4 threads each", " with 1 to 4 threads each"."""
    threads = sorted({t.point.threads for t in reading.times})
    if threads[-1] == 1:
        return ""
    return f" with {threads[0]}{'' if len(threads) == 1 else f' to {threads[-1]}'} threads each"


def _measured(reading: Reading) -> str:
    """How long ranks had work and no core, if the kernel counted run delay."""
    rows = [row for row in reading.breakdown if row.oversubscribed]
    shares = [row.descheduled_share for row in rows if row.descheduled_share is not None]
    worst = max(shares, default=0.0)
    return f" Ranks had work and no core for up to {percent(worst)} of their time." if worst >= LEAST_RUN_DELAY else ""


@rule
def oversubscribed(reading: Reading) -> Iterator[Finding]:
    """More ranks, or threads of them, than cores on a virtual test-bed."""
    cores = reading.study.cores
    over = [(t.size, t.point.ranks) for t in reading.times if t.point.outnumbers(cores)]
    if not cores or not over:
        return
    first, last = over[0], over[-1]
    ranks = f"{first[1]}" if first[1] == last[1] else f"{first[1]} to {last[1]}"
    begin = "At" if first is last else "From"
    where = f"{begin} {sizes(first[0], reading.axis)}{'' if first is last else ' on'}, " if reading.sizes_differ else ""
    switches = reading.series("context_switches_involuntary")
    yield Finding(
        "oversubscribed",
        "trust",
        f"{where}{ranks} ranks{_with_threads(reading)} share {plural(cores, 'core')}: they also have to take turns.{_measured(reading)}",
        "strong",
        (
            Evidence("Cores", cores, "1"),
            *(Evidence("Ranks", float(ranks or 0), "1", "", size) for size, ranks in over),
            *(
                Evidence("Involuntary context switches", p.median, "1", "context_switches_involuntary", p.size)
                for p in switches
            ),
        ),
        "where-time-goes",
        "Compare sizes below that one only, use one rank per host, or run on real hosts.",
    )
