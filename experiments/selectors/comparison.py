"""Trials, configurations and experiments side by side, whatever project they belong to: what was set, on what it ran, what came out.

Experiments are paired by the values of every parameter that any of them sweeps, so that never two different configurations
are pooled in one column; what is compared is one point that all members have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np

from analysis.catalogue import base_unit
from analysis.statistics import Comparison, SampleSummary, compare_groups, summarise
from analysis.trust_level import FLAGGED
from experiments import workloads
from experiments.access import visible_experiments, visible_trials
from experiments.errors import CannotCompare
from experiments.metrics import decided_by, described, in_order
from experiments.models import Configuration, Experiment, Kind, Measurement, State, Trial
from experiments.selectors.counted_values import values_of_trials
from experiments.selectors.differences import Difference, environments_beside, settings_beside
from experiments.traffic import in_statistics, is_traffic

FEWEST: Final = 2
MOST: Final = 8
LABELS: Final = "ABCDEFGH"
TIME: Final = "elapsed_s"
_ALWAYS_READ: Final = (TIME, "cpu_mean_rank_s", "packets")
_OWN_FIGURES: Final = 3
"""First of a workload's figures of merit that are read at every common point too."""
_LONGEST_TOKEN: Final = 110

Point = tuple[Any, ...]
Names = tuple[str, ...]


@dataclass(slots=True)
class Member:
    """One side of a comparison. ``token`` names it in addresses: ``e:slug``, ``c:key`` or ``t:key``."""

    token: str
    label: str
    name: str
    url: str
    experiment: Experiment
    configurations: list[Configuration]
    trial: int | None = None
    counted: dict[int, list[Trial]] = field(default_factory=dict)
    """Configuration key -> the trials that its values come from."""
    left_out: int = 0
    """Trials without result, which no value comes from."""

    def at(self, names: Names, point: Point) -> Configuration | None:
        return next((c for c in self.configurations if point_of(c, names) == point), None)

    def trials_at(self, names: Names, point: Point) -> list[Trial]:
        configuration = self.at(names, point)
        return self.counted.get(configuration.pk, []) if configuration else []

    def flagged_at(self, names: Names, point: Point) -> int:
        """How many of them have their traffic left out."""
        return sum(trial.trust in FLAGGED for trial in self.trials_at(names, point))


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric: a summary per member (None where it was not measured), and each other member against the baseline."""

    metric: str
    label: str
    unit: str
    direction: str
    summaries: tuple[SampleSummary | None, ...]
    against: tuple[Comparison | None, ...]

    @property
    def measured_by(self) -> tuple[int, ...]:
        """Places of the members that have values of it."""
        return tuple(place for place, summary in enumerate(self.summaries) if summary is not None)

    @property
    def compared(self) -> bool:
        """Whether any member could be held against the baseline."""
        return any(comparison is not None for comparison in self.against)

    @property
    def same(self) -> bool:
        """Whether every counted trial of every member gave one and the same number."""
        return len({end for s in self.summaries if s for end in (s.minimum, s.maximum)}) == 1


@dataclass(frozen=True, slots=True)
class Compared:
    """The answer. ``points`` are those that all members have, ``at`` is the chosen one, over the parameters ``names``."""

    members: list[Member]
    baseline: Member
    names: Names
    points: list[Point]
    at: Point
    settings: list[Difference]
    environment: list[Difference]
    rows: list[MetricRow]
    series: dict[str, dict[Point, list[list[float]]]]
    """Metric -> point -> one list of values per member; what decides first."""

    @property
    def drawn(self) -> list[str]:
        """Metrics worth a chart: the baseline and another have values at a common point, and these are not one number everywhere."""
        base = self.members.index(self.baseline)
        shared = [metric for metric in self.series if any(_beside(own, base) for own in self.series[metric].values())]
        return [metric for metric in shared if not self.is_constant(metric)]

    @property
    def deciding(self) -> str | None:
        """The metric that the comparison is answered by: what decides for a workload, where it can be compared."""
        return next(iter(self.drawn), None)

    def is_constant(self, metric: str) -> bool:
        """Whether every counted trial of every member gave the same number at every common point."""
        values = {value for own in self.series[metric].values() for each in own for value in each}
        return len(values) == 1

    def change_over_points(self, metric: str) -> dict[Point, list[Comparison | None]]:
        """Each member against the baseline at every common point, corrected over all of them."""
        base = self.members.index(self.baseline)
        groups: dict[str, dict[str, list[float]]] = {member.label: {} for member in self.members}
        for number, point in enumerate(self.points):
            for member, values in zip(self.members, self.series[metric].get(point, []), strict=False):
                if values:
                    groups[member.label][str(number)] = values
        compared = compare_groups(groups, baseline=self.members[base].label, families=lambda _: "")
        by_metric = {(c.metric, c.group): c for c in compared}
        return {
            point: [by_metric.get((str(number), member.label)) for member in self.members]
            for number, point in enumerate(self.points)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain data."""
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
    """Compare what ``user`` may see under ``tokens`` in at most eight queries.

    ``at`` is the position of a common point (text of a whole number), the first when left out. Raise CannotCompare.
    """
    members = _members(user, list(dict.fromkeys(t.strip() for t in tokens if t.strip())))
    chosen = next((m for m in members if m.token == baseline), None)
    if chosen is None and baseline:
        raise CannotCompare(f"The baseline {baseline!r} is not among what is compared.")
    _load_trials(members)
    names, points = common_points(members)
    point = points[_position(at, len(points))]
    trials = [member.trials_at(names, point) for member in members]
    return Compared(
        members=members,
        baseline=chosen or members[0],
        names=names,
        points=points,
        at=point,
        settings=settings_beside([m.experiment for m in members], [m.at(names, point) for m in members]),
        environment=environments_beside(trials),
        rows=_rows(members, chosen or members[0], _values(trials, scope)),
        series=_series(members, names, points),
    )


def verdict_words(comparison: Comparison, direction: str) -> str:
    """Return "better" or "worse" where the metric has a direction, else "more" or "less"; never "equal"."""
    if comparison.verdict not in ("higher", "lower"):
        return comparison.verdict
    if direction not in ("higher", "lower"):
        return "more" if comparison.verdict == "higher" else "less"
    return "better" if comparison.verdict == direction else "worse"


def _position(at: str, count: int) -> int:
    if not at:
        return 0
    if not at.isdecimal() or len(at) > 6 or int(at) >= count:
        raise CannotCompare(f"There is no common point {at!r}; there are {count}, counted from 0.")
    return int(at)


def _members(user: Any, tokens: Sequence[str]) -> list[Member]:
    if not FEWEST <= len(tokens) <= MOST:
        raise CannotCompare(f"Choose {FEWEST} to {MOST} trials, configurations or experiments, not {len(tokens)}.")
    slugs = [key for kind, key in map(_parsed, tokens) if kind == "e"]
    configurations = [int(key) for kind, key in map(_parsed, tokens) if kind == "c"]
    trials = [int(key) for kind, key in map(_parsed, tokens) if kind == "t"]
    visible = visible_experiments(user).select_related("cluster", "project")
    by_token: dict[str, Member] = {}
    for experiment in visible.filter(slug__in=slugs) if slugs else ():
        by_token[f"e:{experiment.slug}"] = _member(f"e:{experiment.slug}", experiment, experiment.name)
    mine = Configuration.objects.filter(experiment__in=visible_experiments(user))
    for row in mine.filter(pk__in=configurations).select_related("experiment__cluster") if configurations else ():
        by_token[f"c:{row.pk}"] = _member(f"c:{row.pk}", row.experiment, row.experiment.name, [row])
    asked = visible_trials(user).filter(pk__in=trials).select_related("experiment__cluster", "configuration")
    for trial in asked if trials else ():
        member = _member(f"t:{trial.pk}", trial.experiment, f"Trial {trial.pk}", [trial.configuration])
        member.trial, member.url = trial.pk, trial.get_absolute_url()
        by_token[member.token] = member
    missing = [token for token in tokens if token not in by_token]
    if missing:
        raise CannotCompare(f"Not there, or not for you to see: {', '.join(missing)}.")
    members = [by_token[token] for token in tokens]
    _load_designs(members)
    for label, member in zip(LABELS, members, strict=False):
        member.label = label
    return members


def _member(token: str, experiment: Experiment, name: str, rows: Sequence[Configuration] = ()) -> Member:
    return Member(token, "", name, experiment.get_absolute_url(), experiment, list(rows))


def _parsed(token: str) -> tuple[str, str]:
    kind, _, key = token.partition(":")
    number = kind in ("c", "t") and key.isascii() and key.isdecimal() and len(key) < 19
    slug = kind == "e" and 0 < len(key) <= _LONGEST_TOKEN and re.fullmatch("[-a-zA-Z0-9_]+", key)
    if not (number or slug):
        raise CannotCompare(f"{token[:_LONGEST_TOKEN]!r} is not one of e:slug, c:number and t:number.")
    return kind, str(int(key)) if number else key


def _load_designs(members: Sequence[Member]) -> None:
    """Give the experiments their configurations, in one query."""
    whole = {m.experiment.pk: m for m in members if m.token.startswith("e:")}
    if whole:
        for row in Configuration.objects.filter(experiment__in=list(whole), in_design=True):
            whole[row.experiment_id].configurations.append(row)


def _load_trials(members: Sequence[Member]) -> None:
    """Give every member the trials that its values come from, in one query; a trial stands for itself."""
    keys = {c.pk for m in members for c in m.configurations}
    rows = Trial.objects.filter(configuration__in=keys, kind=Kind.MEASURED).only(
        "pk", "configuration_id", "environment_id", "state", "superseded", "trust"
    )
    by_configuration: dict[int, list[Trial]] = defaultdict(list)
    for trial in rows.order_by("repetition", "attempt"):
        by_configuration[trial.configuration_id].append(trial)
    for member in members:
        for configuration in member.configurations:
            own = [t for t in by_configuration[configuration.pk] if member.trial in (None, t.pk)]
            current = [t for t in own if member.trial or not t.superseded]
            member.counted[configuration.pk] = [t for t in current if t.state == State.FINISHED]
            member.left_out += sum(t.state in (State.FAILED, State.ERRORED, State.LOST) for t in current)


def point_of(configuration: Configuration, names: Names) -> Point:
    return tuple(_hashable(configuration.parameters.get(name)) for name in names)


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def common_points(members: Sequence[Member]) -> tuple[Names, list[Point]]:
    """Return the parameters that any experiment sweeps and the points over them that all members have, in the first's order."""
    swept: list[str] = []
    for member in members:
        values: dict[str, set[str]] = defaultdict(set)
        for row in member.configurations:
            for name, value in row.parameters.items():
                values[name].add(repr(value))
        swept += [name for name, different in values.items() if len(different) > 1 and name not in swept]
    names = tuple(sorted(swept, key=lambda name: (name != "hosts", swept.index(name))))
    held = [{point_of(row, names) for row in member.configurations} for member in members]
    points = list(dict.fromkeys(point_of(row, names) for row in members[0].configurations))
    common = [point for point in points if all(point in each for each in held)]
    if not common:
        by = f" of {', '.join(names)}" if names else ""
        raise CannotCompare(
            f"There is no combination{by} that all of these have; compare single configurations instead."
        )
    try:
        return names, sorted(common)
    except TypeError:  # words beside numbers: the design's own order
        return names, common


def _values(trials: Sequence[Sequence[Trial]], scope: str) -> list[dict[str, list[float]]]:
    """Metric -> values by number of the trial, per member; the traffic of flagged captures is left out."""
    trust = {trial.pk: trial.trust for each in trials for trial in each}
    there, measured = values_of_trials(list(trust), scope)
    owned = [np.isin(there, [trial.pk for trial in each]) for each in trials]
    is_clean = np.array([trust[trial] not in FLAGGED for trial in there], bool)
    by_member: list[dict[str, list[float]]] = [{} for _ in trials]
    for metric, values in measured.items():
        counts = ~np.isnan(values)
        if is_traffic(metric, scope):
            counts &= is_clean
        for own, member in zip(owned, by_member, strict=True):
            if (mine := values[own & counts]).size:
                member[metric] = mine.tolist()
    return by_member


def _beside(values: Sequence[Sequence[float]], base: int) -> bool:
    return bool(values[base]) and any(own for place, own in enumerate(values) if place != base)


def _read_everywhere(members: Sequence[Member]) -> list[str]:
    """Metrics that are read at every common point: what decides for these workloads, time, packets, first figures of merit."""
    deciding: list[str] = []
    figures: list[str] = []
    for experiment in {member.experiment.pk: member.experiment for member in members}.values():
        workload = workloads.find(experiment.workload, experiment.specification.get("parameters"))
        if workload is not None:
            deciding.append(decided_by(experiment.workload, experiment.specification))
            figures += [figure.id for figure in workload.figures[:_OWN_FIGURES]]
    return list(dict.fromkeys((*deciding, *_ALWAYS_READ, *figures)))


def _series(
    members: Sequence[Member], names: Names, points: Sequence[Point]
) -> dict[str, dict[Point, list[list[float]]]]:
    metrics = _read_everywhere(members)
    series: dict[str, dict[Point, list[list[float]]]] = {
        metric: {point: [[] for _ in members] for point in points} for metric in metrics
    }
    place: dict[int, list[tuple[Point, int]]] = defaultdict(list)
    trust: dict[int, str] = {}
    for number, member in enumerate(members):
        for point in points:
            for trial in member.trials_at(names, point):
                place[trial.pk].append((point, number))
                trust[trial.pk] = trial.trust
    rows = Measurement.objects.filter(trial__in=list(place), metric__in=metrics, scope="all").order_by("trial_id")
    for trial_id, metric, value in rows.values_list("trial_id", "metric", "value"):
        if in_statistics(trust[trial_id], metric):
            for point, number in place[trial_id]:
                series[metric][point][number].append(value)
    return series


def _rows(members: Sequence[Member], baseline: Member, values: Sequence[dict[str, list[float]]]) -> list[MetricRow]:
    groups = {member.label: own for member, own in zip(members, values, strict=True)}
    comparisons = {(c.metric, c.group): c for c in compare_groups(groups, baseline=baseline.label)}
    rows = []
    for metric in in_order({name for own in values for name in own}):
        described_as = described(metric)
        rows.append(
            MetricRow(
                metric,
                described_as.label,
                described_as.unit,
                described_as.direction,
                tuple(summarise(own[metric], method="t") if own.get(metric) else None for own in values),
                tuple(comparisons.get((metric, member.label)) for member in members),
            )
        )
    return rows
