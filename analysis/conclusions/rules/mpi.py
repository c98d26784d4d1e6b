"""Rules about time inside MPI, measured in every rank: uneven work, work that grows, missing cores, and what the network costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from analysis.catalogue import METRICS
from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent, sizes
from analysis.mpi.efficiencies import ATTENTION
from analysis.numbers import grouped, significant
from analysis.scaling.breakdown import is_profiled

_IMBALANCED: Final = 0.9
LEAST_RUN_DELAY: Final = 0.05
"""Share of the ranks' time below which no core, and no blocking, is worth a sentence."""
_CHART: Final = "inside-mpi"
_TAKE_TURNS: Final = (
    "Ranks share cores: while one computes, another waits for a core inside MPI, "
    "and the ideal network takes processor time too."
)


@rule
def mpi_load_imbalance(reading: Reading) -> Iterator[Finding]:
    """The rank that the others wait for."""
    worst = _lowest(reading, "mpi_load_balance")
    if worst is None or worst.median >= _IMBALANCED or not reading.study.ranks_alike:
        return
    window, most, useful = (worst.point.median(f"mpi_{name}_s") for name in ("window", "useful_max_rank", "useful"))
    mean = useful / worst.point.ranks if useful and worst.point.ranks else None
    yield Finding(
        "mpi_load_imbalance",
        "time",
        f"The load is uneven{reading.at(worst.point)}: {_busiest(worst)} spends {percent(1 / worst.median - 1)} more time "
        "outside MPI than the mean, and the others wait for it in MPI.",
        _strength(reading, worst, "mpi_load_balance"),
        _evidence(reading, "Load balance", "mpi_load_balance"),
        _CHART,
        "Try another decomposition or the program's own balancing.",
        explains=min(1.0, (most - mean) / window) if window and most and mean else None,
    )


def _busiest(place: Place) -> str:
    """The rank, where it is the same one in every trial."""
    ranks = set(place.point.values.get("mpi_busiest_rank", ()))
    return f"rank {grouped(ranks.pop())}" if len(ranks) == 1 else "the busiest rank"


@rule
def computation_grows(reading: Reading) -> Iterator[Finding]:
    """Ranks together compute more at larger sizes, though the problem is the same."""
    rows = reading.breakdown
    if not is_profiled(reading.study) or len(rows) < 2 or reading.study.kind != "strong":
        return
    first, last = rows[0], rows[-1]
    if first.size == last.size:
        return
    scaling = last.computation_scaling
    if scaling is None or scaling >= ATTENTION:
        return
    place = reading.series("mpi_useful_s")[-1]
    yield Finding(
        "computation_grows",
        "time",
        f"From {significant(first.size)} to {sizes(last.size, reading.axis)} the ranks together spend {percent(1 / scaling - 1)} "
        "more time outside MPI: the work itself grows, or each part of it gets slower.",
        _strength(reading, place, "mpi_useful_s"),
        _evidence(reading, "Useful time of all ranks", "mpi_useful_s", "s"),
        _CHART,
        "Look for work that every rank repeats, and for memory or cores that ranks share.",
    )


@rule
def mpi_no_core(reading: Reading) -> Iterator[Finding]:
    """Ranks that were runnable and had no core, by the kernel's run delay; `oversubscribed` reports it of shared cores."""
    worst = _highest(reading, "mpi_descheduled_share")
    if worst is None or worst.median < LEAST_RUN_DELAY or worst.point.outnumbers(reading.study.cores):
        return
    yield _outside_mpi(
        reading,
        worst,
        "mpi_no_core",
        "mpi_descheduled_share",
        f"Ranks had work and no core for {percent(worst.median)} of their time{reading.at(worst.point)}.",
        "Look at what else runs on the hosts; use fewer ranks per host.",
    )


@rule
def mpi_blocked_outside(reading: Reading) -> Iterator[Finding]:
    """Ranks that sleep or wait for files or locks outside MPI; without run delay, ranks on no processor there."""
    known = bool(reading.series("mpi_descheduled_share"))
    metric = "mpi_blocked_outside_share" if known else "mpi_no_core_share"
    worst = _highest(reading, metric)
    if worst is None or worst.median < LEAST_RUN_DELAY:
        return
    state = "blocked outside MPI" if known else "off the processor outside MPI"
    why = "they sleep, or wait for files or locks" if known else "the kernel does not report why"
    yield _outside_mpi(
        reading,
        worst,
        "mpi_blocked_outside",
        metric,
        f"Ranks are {state} for {percent(worst.median)} of their time{reading.at(worst.point)}: {why}.",
        "Look for sleeps, locks, and reads and writes of files in the program.",
    )


def _highest(reading: Reading, metric: str) -> Place | None:
    return max(reading.series(metric), key=lambda place: place.median, default=None)


def _outside_mpi(reading: Reading, worst: Place, name: str, metric: str, statement: str, next_step: str) -> Finding:
    return Finding(
        name,
        "time",
        statement,
        _strength(reading, worst, metric),
        _evidence(reading, METRICS[metric].label, metric),
        _CHART,
        next_step,
        explains=min(1.0, worst.median),
    )


@rule
def transfer_costs(reading: Reading) -> Iterator[Finding]:
    """The link, by twins of the trials on an ideal one."""
    worst = _lowest(reading, "mpi_transfer_efficiency")
    if worst is None or worst.median >= ATTENTION:
        return
    yield Finding(
        "transfer_costs",
        "network",
        f"The link costs {percent(1 - worst.median)} of the run{reading.at(worst.point)}: on an ideal one the trial is so much shorter.",
        _strength(reading, worst, "mpi_transfer_efficiency"),
        _evidence(reading, "Transfer efficiency", "mpi_transfer_efficiency"),
        _CHART,
        "Measure on a faster or shorter link, or send fewer and larger messages.",
        explains=min(1.0, 1 - worst.median),
    )


@rule
def serialisation_costs(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait for each other even where the network costs nothing."""
    worst = _lowest(reading, "mpi_serialisation_efficiency")
    if worst is None or worst.median >= ATTENTION:
        return
    shared = worst.point.outnumbers(reading.study.cores)
    yield Finding(
        "serialisation_costs",
        "time",
        f"On an ideal network too, ranks wait for each other for {percent(1 - worst.median)} of the run{reading.at(worst.point)}.",
        "weak" if shared else _strength(reading, worst, "mpi_serialisation_efficiency"),
        _evidence(reading, "Serialisation efficiency", "mpi_serialisation_efficiency"),
        _CHART,
        "Look for ranks that work one after another; a faster network will not help there.",
        _TAKE_TURNS if shared else "",
        explains=min(1.0, 1 - worst.median),
    )


def _lowest(reading: Reading, metric: str) -> Place | None:
    return min(reading.series(metric), key=lambda place: place.median, default=None)


def _strength(reading: Reading, place: Place, metric: str) -> Literal["strong", "moderate", "printed"]:
    return reading.strength(doubtful=not reading.study.may_claim(place.point, metric=metric))


def _evidence(reading: Reading, label: str, metric: str, unit: str = "share") -> tuple[Evidence, ...]:
    return tuple(Evidence(label, place.median, unit, metric, place.size) for place in reading.series(metric))
