"""Studies: an experiment's rows as input of the scaling library."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, Final

import numpy as np
from django.db.models import BooleanField, ExpressionWrapper, QuerySet

from analysis.scaling import DISTURBED, NOT_STARTED, Point, Study
from analysis.trust_level import FLAGGED
from experiments import workloads
from experiments.cluster_kinds.port_speed import port_speed_bps
from experiments.files import read_analyses
from experiments.models import (
    DISTURBANCES,
    UNFINISHED,
    Cluster,
    Configuration,
    Environment,
    Experiment,
    Kind,
    Measurement,
    State,
    Trial,
)
from experiments.models.states import over_time
from experiments.selectors.certificates import achieved, medians
from experiments.selectors.changed_programs import changed_programs
from experiments.selectors.counted_values import CountedValues, counted_values, measured_metrics
from experiments.specification.design import threads_of
from experiments.traffic import is_traffic

_READ: Final = (
    *("pk", "configuration_id", "state", "kind", "repetition", "attempt", "trust", "trust_reasons"),
    *("environment_id", "running_at", "is_over_time", "conditions", "certificate"),
)
_CHUNK: Final = 1000
"""Trials whose certificates are in memory at once: of 10 000 they take more than all values."""
_TRAFFIC: Final = ("flows", "matrices")
_NOT_COUNTED: Final = {
    Kind.WARMUP: "warm-up",
    Kind.CONTROL: "control",
    Kind.IDEAL: "ideal network",
    Kind.SEARCH: "search",
}


@dataclass(frozen=True, slots=True)
class _Trial:
    """Part of a trial that a study needs, without long columns."""

    pk: int
    configuration: int
    state: str
    kind: str
    repetition: int
    attempt: int
    trust: str
    trust_reasons: Sequence[str]
    environment: int | None
    running_at: datetime | None
    is_over_time: bool
    """It met its time limit."""
    disturbed: bool
    cores: int | None
    placement: Mapping[str, str]
    """Findings of its placement."""
    link_kept: bool
    """False without a certificate."""
    link_warnings: Sequence[str]
    link: Mapping[str, float] | None
    """The achieved link; None without a certificate."""

    @classmethod
    def of(cls, *columns: Any) -> _Trial:
        *short, conditions, certificate = columns
        certified = certificate or {}
        facts = (bool(conditions.get(DISTURBANCES)), conditions.get("cores"), conditions.get("placement_findings", {}))
        link = (bool(certified.get("kept")), certified.get("reasons", ()), achieved(certified) if certified else None)
        values: tuple[Any, ...] = (*short, *facts, *link)
        return cls(*values)


class _Values:
    """The values of counted trials, without the traffic of flagged captures."""

    def __init__(self, counted: CountedValues) -> None:
        self.numbers = counted.numbers.copy()
        flagged = [row for row, trust in enumerate(counted.trust) if trust in FLAGGED]
        traffic = [column for column, metric in enumerate(counted.metrics) if is_traffic(metric)]
        self.numbers[np.ix_(flagged, traffic)] = np.nan
        self.metrics = counted.metrics
        self.is_known = ~np.isnan(self.numbers)
        self.rows = {trial: row for row, trial in enumerate(counted.trials) if self.is_known[row].any()}
        """Trial -> row of ``numbers``."""

    def elapsed(self, trial: _Trial) -> float | None:
        """Return the elapsed time of a counted trial, or None."""
        if "elapsed_s" not in self.metrics:
            return None
        seconds = float(self.numbers[self.rows[trial.pk], self.metrics.index("elapsed_s")])
        return None if np.isnan(seconds) else seconds

    def of(self, trials: Sequence[_Trial], positions: Mapping[int, int]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return metric -> values of these trials, and metric -> their positions.

        Without positions if one trial has none.
        """
        rows = [self.rows[trial.pk] for trial in trials]
        is_known = self.is_known[rows]
        everywhere = [positions[trial.pk] for trial in trials] if all(t.pk in positions for t in trials) else None
        values: dict[str, Any] = {}
        order: dict[str, Any] = {}
        counts = np.count_nonzero(is_known, axis=0)
        columns = zip(self.metrics, self.numbers[rows].T.copy(), counts, strict=True)
        for column, (metric, numbers, count) in enumerate(columns):
            if not count:
                continue
            places = everywhere
            if count < len(rows):
                is_present = is_known[:, column]
                numbers = numbers[is_present]
                places = None if places is None else [places[index] for index in np.flatnonzero(is_present)]
            values[metric] = array("d", numbers.tobytes())
            if places is not None:
                order[metric] = places
        return values, order


def study_of(experiment: Experiment, *, with_traffic: bool = True) -> Study:
    """Return the current design with counted values and reasons of excluded trials.

    ``with_traffic`` adds flows and matrices of one typical trial per configuration, which are in files.
    """
    configurations = list(_configurations(experiment))
    marked = Trial.objects.current().annotate(is_over_time=ExpressionWrapper(over_time(), BooleanField()))
    rows = marked.filter(experiment=experiment).values_list(*_READ)
    trials = [_Trial.of(*columns) for columns in rows.iterator(chunk_size=_CHUNK)]
    metrics = measured_metrics(experiment, Measurement.Scope.ALL)
    values = _Values(counted_values(experiment, metrics, Measurement.Scope.ALL))
    order = _order(trials)
    by_configuration: dict[int, list[_Trial]] = defaultdict(list)
    for trial in trials:
        by_configuration[trial.configuration].append(trial)
    typical = {c.pk: _typical(by_configuration[c.pk], values) for c in configurations} if with_traffic else {}
    chosen = [trial for trial in typical.values() if trial is not None]
    # Their curves take most of the memory, and no conclusion reads them.
    traffic = {key: {part: analysis.get(part) for part in _TRAFFIC} for key, analysis in read_analyses(chosen)}
    points = [
        _point(
            c,
            by_configuration[c.pk],
            values,
            order,
            workload=experiment.workload,
            traffic=traffic.get(typical.get(c.pk) or 0, {}),
        )
        for c in configurations
    ]
    cores = next((t.cores for t in trials if t.cores), None)
    traits = experiment.cluster.traits if experiment.cluster else None
    most_hosts = experiment.cluster.hosts_to_suggest if experiment.cluster else None
    workload = workloads.find(experiment.workload)
    return Study(
        points,
        name=experiment.name,
        published=experiment.published,
        kind=workloads.scaling_of(experiment.workload, experiment.specification),
        cores=cores if traits and traits.hosts_share_cores else None,
        most_hosts=most_hosts,
        link_bandwidth_bps=_bandwidth_bps(experiment.cluster, configurations, by_configuration),
        link_made=_makes_links(experiment.cluster),
        link_certified=_has_certified_links(configurations, by_configuration),
        ranks_alike=workload is None or workload.ranks_alike,
        capture_at=traits.capture_at if traits else "",
        changed_programs=changed_programs(
            (t.configuration, t.environment, t.running_at) for t in trials if t.pk in values.rows
        ),
    )


def _configurations(experiment: Experiment) -> QuerySet[Configuration]:
    """Return the design; of a search only the points that it chose to measure again."""
    rows = Configuration.objects.filter(experiment=experiment, in_design=True)
    if not experiment.searches:
        return rows
    return rows.filter(pk__in=experiment.trials.filter(kind=Kind.MEASURED).values("configuration"))


def _point(
    configuration: Configuration,
    trials: Sequence[_Trial],
    values: _Values,
    order: Mapping[int, int],
    *,
    workload: str,
    traffic: Mapping[str, Any],
) -> Point:
    counted = _counted(trials, values)
    by_metric, places = values.of(counted, order)
    return Point(
        parameters=configuration.parameters,
        values=by_metric,
        ranks=configuration.ranks,
        threads=threads_of(workload, configuration.parameters),
        excluded=Counter(_why_not_counted(t) for t in trials if t.pk not in values.rows and t.state not in UNFINISHED),
        trust=Counter(t.trust for t in counted if t.trust),
        trust_reasons=tuple(dict.fromkeys(reason for t in counted for reason in t.trust_reasons)),
        disturbed=sum(t.disturbed for t in counted),
        over_time=sum(t.is_over_time and t.kind == Kind.MEASURED for t in trials),
        placement=_placement(counted),
        link_warnings=tuple(dict.fromkeys(warning for t in counted for warning in t.link_warnings)),
        link=medians(t.link for t in counted if t.link is not None),
        flows=traffic.get("flows") or (),
        host_matrix=(traffic.get("matrices") or {}).get("hosts"),
        rank_matrix=(traffic.get("matrices") or {}).get("ranks"),
        order=places,
        key=configuration.pk,
    )


def _placement(trials: Sequence[_Trial]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        for name, sentence in trial.placement.items():
            found[name].append(sentence)
    return found


def _counted(trials: Sequence[_Trial], values: _Values) -> list[_Trial]:
    return sorted((t for t in trials if t.pk in values.rows), key=lambda t: (t.repetition, t.attempt))


def _order(trials: Sequence[_Trial]) -> Mapping[int, int]:
    """Return the trials' positions in the order in which they ran, of any kind."""
    ran = sorted((t.running_at, t.pk) for t in trials if t.running_at is not None)
    return {trial: position for position, (_, trial) in enumerate(ran)}


def _typical(trials: Sequence[_Trial], values: _Values) -> int | None:
    """Return the unflagged counted trial nearest to the median elapsed time."""
    counted = [t for t in _counted(trials, values) if t.trust not in FLAGGED]
    timed = [(seconds, t.pk) for t in counted if (seconds := values.elapsed(t)) is not None]
    if not timed:
        return None
    middle = median(seconds for seconds, _ in timed)
    return min(timed, key=lambda timed: abs(timed[0] - middle))[1]


def _why_not_counted(trial: _Trial) -> str:
    if trial.state == State.CANCELLED and trial.running_at is None:
        return NOT_STARTED
    if trial.state != State.FINISHED:
        return str(State(trial.state).label).lower()
    if trial.kind == Kind.MEASURED and trial.disturbed:
        return DISTURBED
    return _NOT_COUNTED.get(Kind(trial.kind), "nothing measured")


def _has_certified_links(configurations: Iterable[Configuration], trials: Mapping[int, Sequence[_Trial]]) -> bool:
    """Return whether every counted trial has a certified link; single hosts need none."""
    of_hosts = (t for c in configurations if c.hosts > 1 for t in trials.get(c.pk, ()))
    certified = [t.link_kept for t in of_hosts if t.state == State.FINISHED and t.kind == Kind.MEASURED]
    return bool(certified) and all(certified)


def _makes_links(cluster: Cluster | None) -> bool:
    """Return whether the network has the bandwidth of the specification."""
    return cluster is None or "bandwidth" in cluster.traits.emulates


def _bandwidth_bps(
    cluster: Cluster | None, configurations: Sequence[Configuration], trials: Mapping[int, Sequence[_Trial]]
) -> float | None:
    """Return the link rate: as requested, stated, or reported by network cards."""
    if cluster is None or _makes_links(cluster):
        requested: float | None = _only(c.parameters.get("link.bandwidth") for c in configurations)
        return requested
    stated = cluster.facts.get("link_bandwidth_bps")
    if isinstance(stated, int | float) and stated > 0:
        return float(stated)
    environments = {t.environment for c in configurations if c.hosts > 1 for t in trials.get(c.pk, ())}
    keys = [key for key in environments if key is not None]  # few: trials share environments
    facts = Environment.objects.filter(pk__in=keys).values_list("facts", flat=True)
    reported: float | None = _only(map(port_speed_bps, facts))
    return reported


def _only(values: Any) -> Any:
    """Return the value if all are equal, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
