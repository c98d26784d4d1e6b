"""Points of known truth: the metrics of a profile from each rank's work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from analysis.conclusions import Deciding, ExperimentQuestion
from analysis.scaling import Point
from tests.analysis.conclusions.designs import HOSTS, TIME

SCATTER = (0.99, 1.0, 1.01)


@dataclass(frozen=True)
class Rank:
    """Seconds of one rank's window."""

    computing: float = 0.0
    descheduled: float = 0.0
    blocked: float = 0.0
    on_cpu: float = 0.0
    blocked_inside: float = 0.0
    descheduled_inside: float = 0.0
    """Part of the time that is blocked inside."""

    @property
    def useful(self) -> float:
        return self.computing + self.descheduled + self.blocked

    @property
    def inside(self) -> float:
        return self.on_cpu + self.blocked_inside


def waiting(*ranks: Rank, window: float, polls: bool = True) -> list[Rank]:
    """The ranks, each of which is in MPI until the window ends."""
    name = "on_cpu" if polls else "blocked_inside"
    rest = [window - rank.useful - rank.inside for rank in ranks]
    values = [{field.name: getattr(rank, field.name) for field in fields(rank)} for rank in ranks]
    return [Rank(**{**each, name: each[name] + more}) for each, more in zip(values, rest, strict=True)]


def metrics_of(ranks: Sequence[Rank], launch: float = 0.1) -> dict[str, float]:
    """The metrics of one run, by their definitions in the catalogue."""
    window = max(rank.useful + rank.inside for rank in ranks)
    whole = window * len(ranks)
    busiest = max(ranks, key=lambda rank: rank.useful)
    return {
        "elapsed_s": window + launch,
        "mpi_window_s": window,
        "mpi_useful_max_rank_s": busiest.useful,
        "mpi_busiest_rank": float(ranks.index(busiest)),
        "mpi_useful_share": sum(rank.computing for rank in ranks) / whole,
        "mpi_no_core_share": sum(rank.descheduled + rank.blocked for rank in ranks) / whole,
        "mpi_descheduled_share": sum(rank.descheduled for rank in ranks) / whole,
        "mpi_descheduled_inside_share": sum(rank.descheduled_inside for rank in ranks) / whole,
        "mpi_on_cpu_share": sum(rank.on_cpu for rank in ranks) / whole,
        "mpi_blocked_share": sum(rank.blocked_inside for rank in ranks) / whole,
        "mpi_busiest_computing_s": busiest.computing,
        "mpi_busiest_descheduled_s": busiest.descheduled,
        "cpu_mean_rank_s": fmean(rank.computing + rank.on_cpu for rank in ranks),
    }


def profiled(
    sizes: Mapping[int, Sequence[Rank]],
    *,
    launch: Mapping[int, float] | None = None,
    figure: tuple[Deciding, Mapping[int, float]] | None = None,
    without: Sequence[str] = (),
    more: Mapping[str, Mapping[int, float]] | None = None,
) -> ExperimentQuestion:
    """An experiment over hosts, three trials each that scatter by 1 %."""
    points = []
    for size, ranks in sizes.items():
        metrics = metrics_of(ranks, (launch or {}).get(size, 0.1)) | {
            name: by[size] for name, by in (more or {}).items()
        }
        if figure is not None:
            metrics[figure[0].metric] = figure[1][size]
        values = {
            name: [value if name.endswith(("share", "rank")) else value * scale for scale in SCATTER]
            for name, value in metrics.items()
            if name not in without
        }
        points.append(Point({"hosts": size}, values, ranks=len(ranks)))
    deciding = TIME if figure is None else figure[0]
    return ExperimentQuestion(points, deciding, [HOSTS], own_time="loop_s" if deciding.metric == "loop_s" else "")
