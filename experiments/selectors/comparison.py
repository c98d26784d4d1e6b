"""Comparison of trials, configurations and experiments of any project.

Experiments are paired by the values of every parameter that any of them sweeps: different configurations are never pooled. One common
point is compared in full.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from analysis.catalogue import base_unit
from analysis.statistics import Comparison, SampleSummary, compare_groups, summarise
from analysis.trust_level import FLAGGED
from experiments import workloads
from experiments.errors import CannotCompare
from experiments.metrics import deciding_metric, described, in_order
from experiments.models import Measurement, Trial
from experiments.selectors.compared_members import Member, Names, Point, chosen_members, common_points, load_trials
from experiments.selectors.counted_values import values_of_trials
from experiments.selectors.differences import Difference, environments_per_side, settings_per_side
from experiments.traffic import in_statistics, is_traffic

TIME: Final = "elapsed_s"
_ALWAYS_READ: Final = (TIME, "cpu_mean_rank_s", "packets")
_COUNTS_OF_PACKETS: Final = frozenset({"captured", "received_by_filter", "wire_packets_estimated"})
"""Counters of the capture that are traffic too: other counters describe why a capture is flagged."""
_OWN_FIGURES: Final = 3
"""Number of a workload's figures of merit that are read at every common point."""

Series = dict[str, dict[Point, list[list[float]]]]
Changed = dict[Point, list[Comparison | None]]


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A metric with a summary per member (None: not measured), against the baseline."""

    metric: str
    label: str
    unit: str
    direction: str
    summaries: tuple[SampleSummary | None, ...]
    against: tuple[Comparison | None, ...]

    @property
    def compared(self) -> bool:
        """Return whether any member could be compared with the baseline."""
        return any(comparison is not None for comparison in self.against)

    @property
    def same(self) -> bool:
        """Return whether all counted trials of all members have the same value."""
        return len({end for s in self.summaries if s for end in (s.minimum, s.maximum)}) == 1


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a comparison: common ``points`` over ``names``, and one ``at``."""

    members: list[Member]
    baseline: Member
    names: Names
    points: list[Point]
    at: Point
    settings: list[Difference]
    environment: list[Difference]
    rows: list[MetricRow]
    series: Series
    """Metric -> point -> one list of values per member; the deciding metric first."""
    changed: Changed
    """Each member against the baseline in the deciding metric, at every common point."""
    excluded: tuple[str, ...] = ()
    """Metrics of which only flagged captures have values."""

    @property
    def drawn(self) -> list[str]:
        """Return metrics worth a chart: comparable with the baseline and not constant."""
        return list(_drawn(self.series, self.members.index(self.baseline)))

    @property
    def deciding(self) -> str | None:
        """Return the deciding metric, or the first comparable one."""
        return next(iter(self.drawn), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "members": [
                {
                    "of": m.token,
                    "label": m.label,
                    "name": m.name,
                    "experiment": m.experiment.slug,
                    "trials": len(m.trials_at(self.names, self.at)),
                    "without_result": m.left_out,
                    "flagged": m.flagged_at(self.names, self.at),
                }
                for m in self.members
            ],
            "baseline": self.baseline.token,
            "paired_by": list(self.names),
            "points": [dict(zip(self.names, point, strict=True)) for point in self.points],
            "at": dict(zip(self.names, self.at, strict=True)),
            "configuration": [{"name": d.name, "values": list(d.values), "differs": d.differs} for d in self.settings],
            "environment": [{"name": d.name, "values": list(d.values)} for d in self.environment if d.differs],
            "metrics": [_row_as_data(row) for row in self.rows],
        }


def _row_as_data(row: MetricRow) -> dict[str, Any]:
    return {
        "metric": row.metric,
        "label": row.label,
        "unit": base_unit(row.unit),
        "direction": row.direction,
        "values": [None if s is None else asdict(s) for s in row.summaries],
        "comparisons": [
            None if c is None else {**c.to_dict(), "words": verdict_words(c, row.direction)} for c in row.against
        ],
    }


def compare(user: Any, tokens: Sequence[str], *, baseline: str = "", at: str = "", scope: str = "all") -> Compared:
    """Compare the visible members of ``tokens``. Raise CannotCompare.

    At most eight queries. The deciding metric is corrected over the common points: a point has one verdict. ``at`` is the index of a
    common point; by default the one at which the deciding metric changed most.
    """
    members = chosen_members(user, list(dict.fromkeys(t.strip() for t in tokens if t.strip())))
    reference = next((m for m in members if m.token == (baseline or m.token)), None)
    if reference is None:
        raise CannotCompare(f"The baseline {baseline!r} is not a member of the comparison.")
    load_trials(members)
    names, points = common_points(members)
    series = _series(members, names, points)
    deciding = next(_drawn(series, members.index(reference)), None)
    changed = {} if deciding is None else _change_over_points(members, reference, points, series, deciding)
    point = points[_position(at, len(points))] if at else _most_changed(points, changed)
    trials = [member.trials_at(names, point) for member in members]
    values, excluded = _values(trials, scope)
    rows = _rows(members, reference, values)
    if scope == Measurement.Scope.ALL:
        rows = [replace(row, against=tuple(changed[point])) if row.metric == deciding else row for row in rows]
    return Compared(
        members=members,
        baseline=reference,
        names=names,
        points=points,
        at=point,
        settings=settings_per_side([m.experiment for m in members], [m.at(names, point) for m in members], trials),
        environment=environments_per_side(trials),
        rows=rows,
        series=series,
        changed=changed,
        excluded=excluded,
    )


def _change_over_points(
    members: Sequence[Member], baseline: Member, points: Sequence[Point], series: Series, metric: str
) -> Changed:
    """Return members against the baseline at all common points, corrected over all."""
    groups: dict[str, dict[str, list[float]]] = {member.label: {} for member in members}
    for number, point in enumerate(points):
        for member, values in zip(members, series[metric][point], strict=True):
            if values:
                groups[member.label][str(number)] = values
    changes = compare_groups(groups, baseline=baseline.label, families=lambda _: "")
    by_place = {(change.metric, change.group): replace(change, metric=metric) for change in changes}
    return {
        point: [by_place.get((str(number), member.label)) for member in members] for number, point in enumerate(points)
    }


def _most_changed(points: Sequence[Point], changed: Changed) -> Point:
    """Return the point with the largest significant change, or the first."""
    clear = [
        (round(abs(math.log(change.ratio)), 6), -index)
        for index, point in enumerate(points)
        for change in changed.get(point, ())
        if change is not None and change.verdict in ("higher", "lower") and change.ratio
    ]
    return points[-max(clear)[1]] if clear else points[0]


def verdict_words(comparison: Comparison, direction: str) -> str:
    """Return "better" or "worse", "more" or "less" without a direction; never "equal"."""
    if comparison.verdict not in ("higher", "lower"):
        return comparison.verdict
    if direction not in ("higher", "lower"):
        return "more" if comparison.verdict == "higher" else "less"
    return "better" if comparison.verdict == direction else "worse"


def _position(at: str, count: int) -> int:
    if not at.isdecimal() or len(at) > 6 or int(at) >= count:
        raise CannotCompare(f"There is no common point {at!r}; there are {count}, counted from 0.")
    return int(at)


def _values(trials: Sequence[Sequence[Trial]], scope: str) -> tuple[list[dict[str, list[float]]], tuple[str, ...]]:
    """Return metric -> values per member, and the metrics of flagged captures only."""
    trust = {trial.pk: trial.trust for group in trials for trial in group}
    there, measured = values_of_trials(list(trust), scope)
    owned = [np.isin(there, [trial.pk for trial in group]) for group in trials]
    is_clean = np.array([trust[trial] not in FLAGGED for trial in there], bool)
    by_member: list[dict[str, list[float]]] = [{} for _ in trials]
    for metric, values in measured.items():
        counts = ~np.isnan(values)
        if _is_of_capture(metric, scope):
            counts &= is_clean
        for rows, member in zip(owned, by_member, strict=True):
            if (mine := values[rows & counts]).size:
                member[metric] = mine.tolist()
    excluded = in_order({name for name in measured if _is_of_capture(name, scope)}.difference(*by_member))
    return by_member, tuple(excluded)


def _is_of_capture(metric: str, scope: str) -> bool:
    """Return whether flagged captures give no value: traffic, or counts of packets."""
    return is_traffic(metric, scope) or metric in _COUNTS_OF_PACKETS


def _drawn(series: Series, base: int) -> Iterator[str]:
    for metric, by_point in series.items():
        if any(_has_pair(values, base) for values in by_point.values()) and not _is_constant(by_point):
            yield metric


def _is_constant(by_point: Mapping[Point, Sequence[Sequence[float]]]) -> bool:
    return len({value for members in by_point.values() for values in members for value in values}) == 1


def _has_pair(values: Sequence[Sequence[float]], base: int) -> bool:
    return bool(values[base]) and any(other for index, other in enumerate(values) if index != base)


def _read_everywhere(members: Sequence[Member]) -> list[str]:
    """Return the metrics read at every common point: deciding, time, packets, figures."""
    deciding: list[str] = []
    figures: list[str] = []
    for experiment in {member.experiment.pk: member.experiment for member in members}.values():
        workload = workloads.find(experiment.workload, experiment.specification.get("parameters"))
        if workload is not None:
            deciding.append(deciding_metric(experiment.workload, experiment.specification))
            figures += [figure.id for figure in workload.figures[:_OWN_FIGURES]]
    return list(dict.fromkeys((*deciding, *_ALWAYS_READ, *figures)))


def _series(members: Sequence[Member], names: Names, points: Sequence[Point]) -> Series:
    metrics = _read_everywhere(members)
    series: Series = {metric: {point: [[] for _ in members] for point in points} for metric in metrics}
    positions: dict[int, list[tuple[Point, int]]] = defaultdict(list)
    trust: dict[int, str] = {}
    for number, member in enumerate(members):
        for point in points:
            for trial in member.trials_at(names, point):
                positions[trial.pk].append((point, number))
                trust[trial.pk] = trial.trust
    rows = Measurement.objects.filter(trial__in=list(positions), metric__in=metrics, scope="all").order_by("trial_id")
    for trial_id, metric, value in rows.values_list("trial_id", "metric", "value"):
        if in_statistics(trust[trial_id], metric):
            for point, number in positions[trial_id]:
                series[metric][point][number].append(value)
    return series


def _rows(members: Sequence[Member], baseline: Member, values: Sequence[dict[str, list[float]]]) -> list[MetricRow]:
    groups = {member.label: by_metric for member, by_metric in zip(members, values, strict=True)}
    comparisons = {(c.metric, c.group): c for c in compare_groups(groups, baseline=baseline.label)}
    rows = []
    for metric in in_order({name for by_metric in values for name in by_metric}):
        described_as = described(metric)
        rows.append(
            MetricRow(
                metric,
                described_as.label,
                described_as.unit,
                described_as.direction,
                tuple(
                    summarise(by_metric[metric], method="t") if by_metric.get(metric) else None for by_metric in values
                ),
                tuple(comparisons.get((metric, member.label)) for member in members),
            )
        )
    return rows
