"""Load tests of known truth: wall times of jobs on a slow and a fast link."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from analysis.conclusions import Accepted
from analysis.conclusions.observations.envelope import Load, envelope
from analysis.scaling import Point

CAPACITIES = (1e7, 1e8)
LOADS = (1.0, 4.0, 16.0)
RULE = 10.0


def wall(capacity: float, jobs: float, effect: float) -> float:
    """Return the seconds of a job among ``jobs`` on the slow or fast link.

    On the slow link the largest load takes ``effect`` times too long, on the fast one it fits so.
    """
    if jobs == 1:
        return 1.0
    if jobs == LOADS[-1]:
        return RULE * effect if capacity == CAPACITIES[0] else RULE / effect
    return 2.0


def accepted_rows(points: Sequence[Point]) -> list[Accepted]:
    """Return the accepted loads of the envelope of the measured wall times."""
    loads: dict[float, list[Load]] = {}
    for point in points:
        values = list(point.values["elapsed_s"])
        loads.setdefault(point.parameters["link.bandwidth"], []).append(
            Load(point.parameters["jobs"], values, {"link": min(median(values) / 12, 1.0)})
        )
    rows = envelope(loads, factor=RULE).rows
    return [
        Accepted(row.capacity, row.largest_acceptable, None, row.first_refused is None, None, 0.5, 4, "link")
        for row in rows
    ]
