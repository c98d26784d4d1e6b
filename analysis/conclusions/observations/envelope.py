"""Operating envelope of a service under load: jobs and the first bottleneck.

A running condition is acceptable while the wall time of a job is below ``factor`` times that of a single job (MONARC collaboration,
about 1999: 10 times). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

FACTOR: Final = 10.0
LINK: Final = "link"
LINK_FULL: Final = 0.85
"""A link filled to this share by contents alone is full: headers, requests and acknowledgements are the rest."""
BUSY: Final = 0.95
"""Use of processors, or of anything else, from which on it is used up."""


@dataclass(frozen=True, slots=True)
class Load:
    """One condition: ``jobs`` at once, wall times (s), use of resources (0 to 1)."""

    jobs: float
    wall_s: Sequence[float] = ()
    uses: Mapping[str, float] = field(default_factory=dict)

    @property
    def wall(self) -> float | None:
        """Return median wall time in s."""
        return median(self.wall_s) if self.wall_s else None


@dataclass(frozen=True, slots=True)
class Saturation:
    """Resource used up with the fewest jobs, or the most used one if all suffice."""

    resource: str
    jobs: float
    use: float
    saturated: bool


@dataclass(frozen=True, slots=True)
class EnvelopeRow:
    """One capacity (link): ``ratios`` are (jobs, wall time / that of one job)."""

    capacity: float
    single_s: float | None
    ratios: tuple[tuple[float, float], ...]
    largest_acceptable: float | None
    """Most jobs that were measured and accepted; None if one job was not measured."""
    first_refused: float | None
    """Fewest jobs that were measured and refused; None: all were accepted."""
    limit: float | None
    """Jobs at which the ratio reaches the factor: between measured ones, or beyond them on the line through the last two."""
    extrapolated: bool
    """The limit is beyond the measured jobs."""
    saturation: Saturation | None
    uses: tuple[tuple[str, float, float], ...]
    """The evidence: (resource, jobs, largest use)."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """All capacities, smallest first."""

    factor: float
    rows: tuple[EnvelopeRow, ...]

    def smallest_acceptable(self, jobs: float) -> float | None:
        """Return the smallest capacity that was measured to bear ``jobs``, or None."""
        return next((r.capacity for r in self.rows if any(j == jobs and q < self.factor for j, q in r.ratios)), None)

    def measured_jobs(self) -> list[float]:
        """Return every number of jobs beyond one whose ratio is known."""
        return sorted({j for row in self.rows for j, _ in row.ratios if j > 1})


def envelope(
    loads: Mapping[float, Sequence[Load]],
    *,
    factor: float = FACTOR,
    shared: Sequence[str] = (),
    shared_name: str = "",
) -> Envelope:
    """Return the envelope of loads by capacity (bit/s).

    ``shared`` names resources that are parts of one: hosts of a virtual cluster have the same processors, so their uses add up, and what is
    used up is called ``shared_name`` with the larger part. ValueError unless the factor is above 1.
    """
    if factor <= 1:
        raise ValueError("the factor must be above 1")
    rows = (_row(capacity, loads[capacity], factor, shared, shared_name) for capacity in sorted(loads))
    return Envelope(factor, tuple(rows))


def _row(capacity: float, loads: Sequence[Load], factor: float, shared: Sequence[str], shared_name: str) -> EnvelopeRow:
    by_jobs = sorted(loads, key=lambda load: load.jobs)
    walls = {load.jobs: load.wall for load in by_jobs if load.wall is not None}
    single = walls.get(1)
    ratios = tuple((jobs, wall / single) for jobs, wall in walls.items()) if single else ()
    accepted = [jobs for jobs, ratio in ratios if ratio < factor]
    refused = [jobs for jobs, ratio in ratios if ratio >= factor]
    first_refused = min(refused, default=None)
    # A lucky trial above the first refused load makes no envelope.
    largest = max((j for j in accepted if first_refused is None or j < first_refused), default=None)
    limit = _crossing(ratios, factor)
    return EnvelopeRow(
        capacity=capacity,
        single_s=single,
        ratios=ratios,
        largest_acceptable=largest,
        first_refused=first_refused,
        limit=limit,
        extrapolated=limit is not None and first_refused is None,
        saturation=_saturation(by_jobs, shared, shared_name),
        uses=_largest_uses(by_jobs),
    )


def _crossing(ratios: Sequence[tuple[float, float]], factor: float) -> float | None:
    """Return the jobs at which the ratio reaches the factor, extrapolated if needed."""
    for (jobs, ratio), (more, larger) in pairwise(ratios):
        if ratio < factor <= larger:
            return jobs + (more - jobs) * (factor - ratio) / (larger - ratio)
    if len(ratios) < 2 or ratios[-1][1] >= factor:
        return None
    (jobs, ratio), (more, larger) = ratios[-2:]
    return None if larger <= ratio else more + (factor - larger) * (more - jobs) / (larger - ratio)


def _saturation(loads: Sequence[Load], shared: Sequence[str], shared_name: str) -> Saturation | None:
    candidates: list[Saturation] = []
    for load in loads:
        uses = dict(load.uses)
        parts = {name: uses[name] for name in shared if name in uses}
        if len(parts) > 1:
            larger = max(parts, key=lambda name: parts[name])
            uses[f"{shared_name}, most of it {larger}"] = sum(parts.values())
            for name in parts:
                del uses[name]
        candidates += [
            Saturation(name, load.jobs, use, use >= (LINK_FULL if name == LINK else BUSY)) for name, use in uses.items()
        ]
    full = [candidate for candidate in candidates if candidate.saturated]
    if full:
        # Of several that are full with equally few jobs, the fullest.
        return min(full, key=lambda candidate: (candidate.jobs, -candidate.use))
    return max(candidates, key=lambda candidate: candidate.use, default=None)


def _largest_uses(loads: Sequence[Load]) -> tuple[tuple[str, float, float], ...]:
    largest: dict[str, tuple[float, float]] = {}
    for load in loads:
        for name, use in load.uses.items():
            if name not in largest or use > largest[name][1]:
                largest[name] = (load.jobs, use)
    return tuple((name, jobs, use) for name, (jobs, use) in largest.items())
