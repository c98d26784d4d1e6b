"""From the repository's rows to what the scaling library reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from analysis.scaling import Point, Study
from analysis.trust_level import FLAGGED
from experiments import workloads
from experiments.cluster_kinds.port_speed import port_speed_bps
from experiments.files import read_analyses
from experiments.models import Cluster, Configuration, Experiment, Kind, Measurement, State, Trial
from experiments.selectors.certificates import achieved_link
from experiments.spec.design import threads_of

_NOT_COUNTED: Final = {Kind.WARMUP: "warm-up", Kind.CONTROL: "control", Kind.IDEAL: "ideal network"}


def study_of(experiment: Experiment, *, with_traffic: bool = True) -> Study:
    """Return the experiment's current design with every counted value, and why the other trials are not counted.

    ``with_traffic`` adds flows and matrices of one typical trial (median elapsed time) per configuration; they lie in files.
    """
    trials = list(Trial.objects.current().filter(experiment=experiment).select_related("configuration", "environment"))
    values = _values(experiment)
    by_configuration: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        by_configuration[trial.configuration_id].append(trial)
    configurations = Configuration.objects.filter(experiment=experiment, in_design=True)
    typical = {c.pk: _typical(by_configuration[c.pk], values) for c in configurations} if with_traffic else {}
    traffic = read_analyses([trial for trial in typical.values() if trial is not None])
    points = [
        _point(
            c,
            by_configuration[c.pk],
            values,
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
        link_bandwidth_bps=_bandwidth_bps(experiment.cluster, configurations, trials),
        link_made=_makes_links(experiment.cluster),
        link_certified=_kept(trials),
        ranks_alike=workload is None or workload.ranks_alike,
        capture_at=traits.capture_at if traits else "",
    )


def _values(experiment: Experiment) -> Mapping[int, dict[str, float]]:
    """Return metric -> value per counted trial, without the traffic of flagged captures."""
    rows = Measurement.objects.counted().filter(trial__experiment=experiment, scope="all").in_statistics()
    values: dict[int, dict[str, float]] = defaultdict(dict)
    for trial, metric, value in rows.values_list("trial_id", "metric", "value"):
        values[trial][metric] = value
    return values


def _point(
    configuration: Configuration,
    trials: Sequence[Trial],
    values: Mapping[int, dict[str, float]],
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
        disturbed=sum(bool(t.conditions.get("disturbances")) for t in counted),
        link_warnings=tuple(dict.fromkeys(w for t in counted for w in (t.certificate or {}).get("reasons", ()))),
        link=achieved_link(t.certificate for t in counted if t.certificate),
        flows=traffic.get("flows", ()),
        host_matrix=traffic.get("matrices", {}).get("hosts"),
        rank_matrix=traffic.get("matrices", {}).get("ranks"),
        key=configuration.pk,
    )


def _typical(trials: Sequence[Trial], values: Mapping[int, dict[str, float]]) -> Trial | None:
    """Return the counted trial whose elapsed time is nearest to the median, for its traffic; one with a flagged capture stands for none."""
    counted = sorted((t for t in trials if t.pk in values), key=lambda t: (t.repetition, t.attempt))
    timed = [t for t in counted if "elapsed_s" in values[t.pk] and t.trust not in FLAGGED]
    if not timed:
        return None
    middle = median(values[t.pk]["elapsed_s"] for t in timed)
    return min(timed, key=lambda t: abs(values[t.pk]["elapsed_s"] - middle))


def _why_not_counted(trial: Trial) -> str:
    if trial.state != State.FINISHED:
        return str(State(trial.state).label).lower()
    return _NOT_COUNTED.get(Kind(trial.kind), "nothing measured")


def _kept(trials: Sequence[Trial]) -> bool:
    """Return whether every counted trial's link was measured and found to be what was asked for; a single host uses none."""
    counted = [t for t in trials if t.state == State.FINISHED and t.kind == Kind.MEASURED]
    certificates = [t.certificate for t in counted if t.configuration.hosts > 1]
    return bool(certificates) and all(c and c.get("kept") for c in certificates)


def _makes_links(cluster: Cluster | None) -> bool:
    """Whether the network was made with the bandwidth of the specification. Published results name that of theirs."""
    return cluster is None or "bandwidth" in cluster.traits.emulates


def _bandwidth_bps(
    cluster: Cluster | None, configurations: Iterable[Configuration], trials: Sequence[Trial]
) -> float | None:
    """Return the rate of every link: as asked where it is made; of real hosts as stated, else as their cards tell."""
    if cluster is None or _makes_links(cluster):
        asked: float | None = _only(c.parameters.get("link.bandwidth") for c in configurations)
        return asked
    stated = cluster.facts.get("link_bandwidth_bps")
    if isinstance(stated, int | float) and stated > 0:
        return float(stated)
    told: float | None = _only(
        port_speed_bps(t.environment.facts) for t in trials if t.environment and t.configuration.hosts > 1
    )
    return told


def _only(values: Any) -> Any:
    """Return the value when all are equal, else None."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None
