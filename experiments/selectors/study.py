"""Studies: an experiment's rows as input of the scaling library."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from statistics import median
from typing import Any, Final

import numpy as np

from analysis.scaling import DISTURBED, Point, Study
from analysis.trust_level import FLAGGED
from experiments import workloads
from experiments.cluster_kinds.port_speed import port_speed_bps
from experiments.files import read_analyses
from experiments.models import (
    DISTURBANCES,
    Cluster,
    Configuration,
    Environment,
    Experiment,
    Kind,
    Measurement,
    State,
    Trial,
)
from experiments.selectors.certificates import achieved_link
from experiments.selectors.counted_values import counted_values, measured_metrics
from experiments.specification.design import threads_of
from experiments.traffic import is_traffic

_READ: Final = (
    *("configuration", "state", "kind", "repetition", "attempt", "trust", "trust_reasons", "conditions"),
    *("certificate", "environment", "running_at"),
)
"""Columns that a study reads, without long ones."""
_NOT_COUNTED: Final = {Kind.WARMUP: "warm-up", Kind.CONTROL: "control", Kind.IDEAL: "ideal network"}


def study_of(experiment: Experiment, *, with_traffic: bool = True) -> Study:
    """Return the current design with counted values and reasons of excluded trials.

    ``with_traffic`` adds flows and matrices of one typical trial per configuration, which are in files.
    """
    configurations = list(Configuration.objects.filter(experiment=experiment, in_design=True))
    trials = list(Trial.objects.current().filter(experiment=experiment).only(*_READ))
    values = _values(experiment)
    order = _order(trials)
    by_configuration: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_configuration[trial.configuration_id].append(trial)
    typical = {c.pk: _typical(by_configuration[c.pk], values) for c in configurations} if with_traffic else {}
    traffic = read_analyses([trial for trial in typical.values() if trial is not None])
    points = [
        _point(
            c,
            by_configuration[c.pk],
            values,
            order,
            workload=experiment.workload,
            traffic=traffic.get(chosen.pk, {}) if (chosen := typical.get(c.pk)) else {},
        )
        for c in configurations
    ]
    conditions = next((t.conditions for t in trials if t.conditions), {})
    traits = experiment.cluster.traits if experiment.cluster else None
    most_hosts = experiment.cluster.hosts_to_suggest if experiment.cluster else None
    workload = workloads.find(experiment.workload)
    return Study(
        points,
        name=experiment.name,
        published=experiment.published,
        kind=experiment.specification.get("scaling", "strong"),
        cores=conditions.get("cores") if traits and traits.hosts_share_cores else None,
        most_hosts=most_hosts,
        link_bandwidth_bps=_bandwidth_bps(experiment.cluster, configurations, by_configuration),
        link_made=_makes_links(experiment.cluster),
        link_certified=_has_certified_links(configurations, by_configuration),
        ranks_alike=workload is None or workload.ranks_alike,
        capture_at=traits.capture_at if traits else "",
    )


def _values(experiment: Experiment) -> Mapping[int, dict[str, float]]:
    """Return metric -> value per counted trial, without flagged traffic."""
    metrics = measured_metrics(experiment, Measurement.Scope.ALL)
    values = counted_values(experiment, metrics, Measurement.Scope.ALL)
    numbers = values.numbers.copy()
    flagged = [index for index, trust in enumerate(values.trust) if trust in FLAGGED]
    numbers[np.ix_(flagged, [index for index, metric in enumerate(metrics) if is_traffic(metric)])] = np.nan
    is_known = ~np.isnan(numbers)
    return {
        trial: dict(zip(compress(metrics, mask), compress(row, mask), strict=True))
        for trial, row, mask in zip(values.trials, numbers.tolist(), is_known.tolist(), strict=True)
        if any(mask)
    }


def _point(
    configuration: Configuration,
    trials: Sequence[Trial],
    values: Mapping[int, dict[str, float]],
    order: Mapping[int, int],
    *,
    workload: str,
    traffic: Mapping[str, Any],
) -> Point:
    counted = sorted((t for t in trials if t.pk in values), key=lambda t: (t.repetition, t.attempt))
    by_metric: dict[str, list[float]] = defaultdict(list)
    for trial in counted:
        for metric, value in values[trial.pk].items():
            by_metric[metric].append(value)
    return Point(
        parameters=configuration.parameters,
        values=dict(by_metric),
        ranks=configuration.ranks,
        threads=threads_of(workload, configuration.parameters),
        excluded=Counter(_why_not_counted(t) for t in trials if t.pk not in values and t.is_over),
        trust=Counter(t.trust for t in counted if t.trust),
        trust_reasons=tuple(dict.fromkeys(reason for t in counted for reason in t.trust_reasons)),
        disturbed=sum(bool(t.conditions.get(DISTURBANCES)) for t in counted),
        placement=_placement(counted),
        link_warnings=tuple(dict.fromkeys(w for t in counted for w in (t.certificate or {}).get("reasons", ()))),
        link=achieved_link(t.certificate for t in counted if t.certificate),
        flows=traffic.get("flows", ()),
        host_matrix=traffic.get("matrices", {}).get("hosts"),
        rank_matrix=traffic.get("matrices", {}).get("ranks"),
        order=_order_of_values(counted, values, order),
        key=configuration.pk,
    )


def _placement(trials: Sequence[Trial]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for trial in trials:
        for name, sentence in trial.conditions.get("placement_findings", {}).items():
            found[name].append(sentence)
    return found


def _order(trials: Sequence[Trial]) -> Mapping[int, int]:
    """Return the trials' positions in the order in which they ran, of any kind."""
    ran = sorted((t.running_at, t.pk) for t in trials if t.running_at is not None)
    return {trial: position for position, (_, trial) in enumerate(ran)}


def _order_of_values(
    counted: Sequence[Trial], values: Mapping[int, dict[str, float]], order: Mapping[int, int]
) -> Mapping[str, Sequence[int]]:
    """Return the positions of each metric's trials; none without start times."""
    if any(t.pk not in order for t in counted):
        return {}
    everywhere = [order[t.pk] for t in counted]
    metrics = {metric for t in counted for metric in values[t.pk]}
    missing = {metric for t in counted for metric in metrics - values[t.pk].keys()}
    gaps = {metric: [order[t.pk] for t in counted if metric in values[t.pk]] for metric in missing}
    return dict.fromkeys(metrics, everywhere) | gaps


def _typical(trials: Sequence[Trial], values: Mapping[int, dict[str, float]]) -> Trial | None:
    """Return the unflagged counted trial nearest to the median elapsed time."""
    counted = sorted((t for t in trials if t.pk in values), key=lambda t: (t.repetition, t.attempt))
    timed = [t for t in counted if "elapsed_s" in values[t.pk] and t.trust not in FLAGGED]
    if not timed:
        return None
    middle = median(values[t.pk]["elapsed_s"] for t in timed)
    return min(timed, key=lambda t: abs(values[t.pk]["elapsed_s"] - middle))


def _why_not_counted(trial: Trial) -> str:
    if trial.state != State.FINISHED:
        return str(State(trial.state).label).lower()
    if trial.kind == Kind.MEASURED and trial.conditions.get(DISTURBANCES):
        return DISTURBED
    return _NOT_COUNTED.get(Kind(trial.kind), "nothing measured")


def _has_certified_links(configurations: Iterable[Configuration], trials: Mapping[int, Sequence[Trial]]) -> bool:
    """Return whether every counted trial has a certified link; single hosts need none."""
    counted = (t for c in configurations if c.hosts > 1 for t in trials.get(c.pk, ()))
    certificates = [t.certificate for t in counted if t.state == State.FINISHED and t.kind == Kind.MEASURED]
    return bool(certificates) and all(c and c.get("kept") for c in certificates)


def _makes_links(cluster: Cluster | None) -> bool:
    """Return whether the network has the bandwidth of the specification."""
    return cluster is None or "bandwidth" in cluster.traits.emulates


def _bandwidth_bps(
    cluster: Cluster | None, configurations: Sequence[Configuration], trials: Mapping[int, Sequence[Trial]]
) -> float | None:
    """Return the link rate: as requested, stated, or reported by network cards."""
    if cluster is None or _makes_links(cluster):
        requested: float | None = _only(c.parameters.get("link.bandwidth") for c in configurations)
        return requested
    stated = cluster.facts.get("link_bandwidth_bps")
    if isinstance(stated, int | float) and stated > 0:
        return float(stated)
    environments = {t.environment_id for c in configurations if c.hosts > 1 for t in trials.get(c.pk, ())}
    keys = [key for key in environments if key is not None]  # few: trials share environments
    facts = Environment.objects.filter(pk__in=keys).values_list("facts", flat=True)
    reported: float | None = _only(map(port_speed_bps, facts))
    return reported


def _only(values: Any) -> Any:
    """Return the value if all are equal, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
