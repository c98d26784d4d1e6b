"""The question of an experiment's design: factors, deciding metric, known scatter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from analysis.conclusions import Accepted, Deciding, ExperimentQuestion, Factor, Scatter, kind_of, pooled
from analysis.conclusions.context import EQUAL, QuestionKind
from analysis.conclusions.goals import share_of
from analysis.conclusions.observations.envelope import FACTOR, EnvelopeRow, Load, envelope
from analysis.conclusions.questions.energy import ENERGY, PER_RESULT
from analysis.scaling import DISTURBED, Point, Study
from experiments import workloads
from experiments.cluster_kinds.facts import facts_of
from experiments.common import external_figures
from experiments.metrics import deciding_metric, find
from experiments.models import METRIC_SOURCES, Experiment, Kind, Measurement, Round, State, Trial
from experiments.selectors.designs import are_networks, is_ladder, is_number, loads_of, varying
from experiments.selectors.experiments import seconds_per_trial
from experiments.selectors.goals import goal_of
from experiments.selectors.searches import searched_of, searching_spec
from experiments.specification import ExperimentSpec
from experiments.specification.design import Design
from experiments.specification.parameters import unit_of
from experiments.workloads import LoadTest, WorkloadDefinition

_SCALE: Final = {"hosts": "hosts", "ranks_per_host": "ranks per host", "ranks": "ranks"}
_UNITS: Final = {
    "link.bandwidth": "bit/s",
    "link.delay": "s",
    "link.jitter": "s",
    "link.loss": "share",
    "link.mtu": "B",
    "link.tcp_buffer": "B",
    "link.queue": "B",
}
_LABELS: Final = {"bind": "binding", "link.bandwidth": "rate", "link.tcp_buffer": "TCP buffer", "link.mtu": "MTU"}


def question_of(experiment: Experiment, study: Study) -> ExperimentQuestion:
    """Return the question that an experiment asks of the study's points."""
    workload = _workload(experiment)
    points, deciding = _decided(experiment, study, workload)
    if (spec := searching_spec(experiment)) is not None:
        searching = _of_search(experiment, spec, points, deciding, workload)
        return replace(searching, changed_programs=study.changed_programs)
    points = _without_estimated_energy(experiment, points, deciding)
    test = workload.load_test if workload else None
    loads = {} if test is None else loads_of(study.points, test)
    names = _varying(points)
    steps = is_ladder(points)
    against = _against(points, deciding, workload)
    if against is not None:
        names = ["hosts"]  # a printed factor holds for one size
    own_time = workload.own_time if workload else None
    share, equal = _of_goal(experiment)
    networks = are_networks(points)
    factor_names = names if steps else _without_followers(points, names, networks=networks)
    factors = [
        _with_followers(_factor(name, points, workload, networks=networks), points, names, factor_names)
        for name in factor_names
    ]
    result = ExperimentQuestion(
        points=points,
        deciding=deciding,
        factors=factors,
        published=study.published,
        weak=study.kind == "weak",
        steps=steps and not any(f.role == "scale" for f in factors),
        prior=None if study.published else _known_scatter(experiment, deciding.metric),
        load_test=any({1.0} < {load.jobs for load in row} for row in loads.values()),
        accepted=[] if test is None else _accepted(study, test, loads),
        against=against,
        peak=_peak(experiment, workload, deciding),
        also=_also(experiment, workload, deciding),
        own_time=own_time.time if own_time else "",
        own_cpu_percent=own_time.cpu_percent if own_time else "",
        measured_part=_measured_part(workload, deciding),
        trial_s=seconds_per_trial(experiment),
        share=share,
        equal=equal,
        changed_programs=study.changed_programs,
        is_interleaved=experiment.specification.get("order", "interleaved") == "interleaved",
    )
    return replace(result, points=_without_disturbed(result)) if kind_of(result) == "network" else result


def planned_question(spec: ExperimentSpec, plan: Design) -> tuple[QuestionKind, Deciding]:
    """Return the question of a design that has no trials yet, and its deciding metric."""
    written = spec.to_dict()
    metric = find(deciding_metric(spec.workload, written), written)
    deciding = Deciding(metric.id, metric.label, metric.unit, metric.direction == "higher")
    if spec.optimised:
        return "best settings", deciding
    points = [Point(dict(point.parameters), {}) for point in plan.configurations]
    workload = workloads.find(spec.workload, spec.parameters)
    names = _varying(points)
    steps, networks = is_ladder(points), are_networks(points)
    independent = names if steps else _without_followers(points, names, networks=networks)
    factors = [_factor(name, points, workload, networks=networks) for name in independent]
    question = ExperimentQuestion(
        points=points,
        deciding=deciding,
        factors=factors,
        weak=workloads.scaling_of(spec.workload, written) == "weak",
        steps=steps and not any(factor.role == "scale" for factor in factors),
        load_test=workload is not None and workload.load_test is not None,
        against=_against(points, deciding, workload),
    )
    return kind_of(question), deciding


def _of_search(
    experiment: Experiment,
    spec: ExperimentSpec,
    points: Sequence[Point],
    deciding: Deciding,
    workload: WorkloadDefinition | None,
) -> ExperimentQuestion:
    """Return the question of a search: its candidates beside the starting settings."""
    metric = find(spec.optimised, experiment.specification)
    factors = [replace(_factor(n, points, workload, networks=False), role="treatment", plural="") for n in spec.sweep]
    looks = experiment.rounds.filter(phase=Round.Phase.CONFIRM).count()
    return ExperimentQuestion(
        points=[point for point in points if len(point.values.get(metric.id, ()))],
        deciding=Deciding(metric.id, metric.label, metric.unit, metric.direction == "higher"),
        factors=factors,
        trial_s=seconds_per_trial(experiment),
        share=share_of(max(1, looks)),
        equal=1 + (spec.goal.matters if spec.goal is not None else 0.0),
        search=searched_of(experiment, spec),
    )


def _of_goal(experiment: Experiment) -> tuple[float, float]:
    """Return the share of the error of a look, and the ratio of equal points."""
    if (goal := goal_of(experiment)) is None:
        return 1.0, EQUAL
    return share_of(max(1, experiment.rounds.count())), EQUAL if goal.precision else 1 + goal.matters


def _without_disturbed(question: ExperimentQuestion) -> list[Point]:
    """Return the points of a network fit, without replaceable disturbed ones."""
    clean = [point for point in question.measured() if not point.disturbed]
    others = [f.name for f in question.factors if f.role != "network"]

    def levels(points: Sequence[Point]) -> set[tuple[str, ...]]:
        """Return each network level with the levels of the other factors."""
        return {
            (f.name, *(repr(point.parameters.get(name)) for name in (f.name, *others)))
            for f in question.of_role("network")
            for point in points
        }

    enough = levels(clean)
    return [
        replace(point, values={}, disturbed=0, excluded={**point.excluded, DISTURBED: point.disturbed})
        if 0 < point.disturbed == len(question.values(point)) and levels([point]) <= enough
        else point
        for point in question.points
    ]


def _workload(experiment: Experiment) -> WorkloadDefinition | None:
    try:
        return workloads.get(experiment.workload, experiment.specification.get("parameters"))
    except KeyError:
        return None


def _decided(experiment: Experiment, study: Study, workload: WorkloadDefinition | None) -> tuple[list[Point], Deciding]:
    """Return the points in question and the deciding metric.

    All points of a design, measured or not; of a publication the printed ones.
    """
    figures = [f.id for f in workload.figures if f.direction != "neutral"] if workload else []
    present = {metric for point in study.points for metric, values in point.values.items() if len(values)}
    printed = workload.phases.printed_faster if workload and workload.phases and study.published else None
    candidates = [
        deciding_metric(experiment.workload, experiment.specification),
        printed,
        "elapsed_s",
        *figures,
        # Figures of other tools have no better direction.
        *sorted(metric for metric in present if external_figures.described(metric) is None),
    ]
    metric = next((m for m in candidates if m and m in present), "elapsed_s")
    description = find(metric, experiment.specification)
    points = [p for p in study.points if all(v > 0 for v in p.values.get(metric, ()))]
    if study.published:
        estimated = _estimated(experiment)
        points = [p for p in points if len(p.values.get(metric, ())) and p.parameters not in estimated] or points
    return points, Deciding(metric, description.label, description.unit, description.direction == "higher")


def _estimated(experiment: Experiment) -> list[Mapping[str, Any]]:
    """Return the parameters of printed points that the publication calls estimates."""
    rows = experiment.trials.values_list("configuration__parameters", "conditions")
    return [
        parameters for parameters, tables in rows if any("estimated" in table.values() for table in tables.values())
    ]


def _without_estimated_energy(experiment: Experiment, points: Sequence[Point], deciding: Deciding) -> list[Point]:
    """Drop the energy of the second sentence if a source of it estimates."""
    energies = {ENERGY.metric, PER_RESULT.metric}
    if deciding.metric in energies or not any(ENERGY.metric in point.values for point in points):
        return list(points)
    rows = experiment.trials.values_list(f"conditions__{METRIC_SOURCES}", flat=True)
    sources = [source for of_trial in rows for source in (of_trial or {}).values()]
    if not any(source["trust"] == "estimated" and ENERGY.metric in source["metrics"] for source in sources):
        return list(points)
    return [
        replace(point, values={metric: values for metric, values in point.values.items() if metric not in energies})
        for point in points
    ]


def _varying(points: Sequence[Point]) -> list[str]:
    varied = varying(points)
    counters = {name for name in varied if [p.parameters.get(name) for p in points] == list(range(1, len(points) + 1))}
    return [name for name in varied if name not in counters or len(varied) == 1 or name in _SCALE]


def _without_followers(points: Sequence[Point], names: Sequence[str], *, networks: bool) -> list[str]:
    """Leave out parameters that follow another one to one (molecules in weak scaling).

    Networks that are compared as wholes keep all properties.
    """
    ordered = sorted(names, key=lambda name: (name not in _SCALE, not name.startswith("link.")))
    independent: list[str] = []
    for name in ordered:
        if (networks and name.startswith("link.")) or not any(_follows(points, name, other) for other in independent):
            independent.append(name)
    return independent


def _with_followers(
    factor: Factor, points: Sequence[Point], names: Sequence[str], independent: Sequence[str]
) -> Factor:
    """Name link properties that advance with this one: their effects are confounded."""
    if not factor.name.startswith("link."):
        return factor
    others = [name for name in names if name.startswith("link.") and name not in independent]
    labels = [_label_of(name) for name in others if _follows(points, name, factor.name)]
    return replace(factor, label=" with ".join([factor.label, *labels]))


def _follows(points: Sequence[Point], name: str, other: str) -> bool:
    seen: dict[str, set[str]] = defaultdict(set)
    for point in points:
        seen[repr(point.parameters.get(other))].add(repr(point.parameters.get(name)))
    return all(len(values) == 1 for values in seen.values())


def _factor(name: str, points: Sequence[Point], workload: WorkloadDefinition | None, *, networks: bool) -> Factor:
    if name in _SCALE:
        return Factor(name, _SCALE[name], "scale", "", _SCALE[name])
    info = workload.parameters_type.model_fields.get(name) if workload is not None and workload.registered else None
    label = info.title.lower() if info is not None and info.title else _label_of(name)
    if name.startswith("link."):
        return Factor(name, label, "treatment" if networks else "network", _UNITS.get(name, ""))
    if workload is not None and workload.load_test is not None and name == workload.load_test.load:
        return Factor(name, label, "load", "", label)
    if name == "message_bytes":
        return Factor(name, "message", "message", "B")
    words = any(not is_number(point.parameters.get(name)) for point in points)
    if words or (workload is not None and name in workload.treatments):
        return Factor(name, label, "treatment")
    unit = "B" if name.endswith("_bytes") else "s" if name.endswith("_s") else ""
    unit = unit_of(info) or unit if info is not None else unit
    return Factor(name, label.removesuffix(" bytes"), "load", unit, "" if unit else label)


def _label_of(name: str) -> str:
    return _LABELS.get(name, name.removeprefix("link.").replace("_", " "))


def _known_scatter(experiment: Experiment, metric: str) -> Scatter | None:
    """Return the scatter of warm-ups and controls of this experiment."""
    rows = Measurement.objects.filter(
        trial__in=Trial.objects.current().filter(
            experiment=experiment, state=State.FINISHED, kind__in=(Kind.CONTROL, Kind.WARMUP)
        ),
        metric=metric,
        scope="all",
        value__gt=0,
    )
    groups: dict[tuple[int, str], list[float]] = defaultdict(list)
    for configuration, kind, value in rows.values_list("trial__configuration_id", "trial__kind", "value"):
        groups[configuration, kind].append(value)
    scatter = pooled(list(groups.values()))
    return None if scatter is None else Scatter(scatter.sd, scatter.freedom, "warm-ups and control runs")


def _accepted(study: Study, test: LoadTest, loads: Mapping[float, list[Load]]) -> list[Accepted]:
    shared = test.same_processors if study.cores is not None else ()
    result = envelope(loads, factor=FACTOR, shared=shared, shared_name="the processors")
    return [_accepted_row(row) for row in result.rows if len(row.ratios) > 1 or row.uses]


def _accepted_row(row: EnvelopeRow) -> Accepted:
    use = row.saturation
    jobs, between = row.largest_acceptable, None
    if row.limit is not None and not row.extrapolated and row.first_refused is not None and jobs is not None:
        # The limit is interpolated between two measured loads.
        inside = float(int(row.limit))
        if jobs < inside < row.first_refused:
            jobs, between = inside, (jobs, row.first_refused)
    return Accepted(
        capacity_bps=row.capacity,
        jobs=jobs,
        between=between,
        beyond_measured=row.first_refused is None,
        first=use.resource if use is not None and use.saturated else None,
        used=use.use if use is not None else None,
        at=use.jobs if use is not None else None,
        most_used=use.resource if use is not None else "",
    )


def _measured_part(workload: WorkloadDefinition | None, deciding: Deciding) -> Deciding | None:
    """Return the time that a figure of a part of the run measures."""
    if workload is None or not workload.decides_of or deciding.metric not in {f.id for f in workload.figures}:
        return None
    metric = find(workload.decides_of)
    return Deciding(metric.id, metric.label, metric.unit)


def _against(
    points: Sequence[Point], deciding: Deciding, workload: WorkloadDefinition | None
) -> tuple[str, str] | None:
    """Return the method and the baseline that a printed factor compares."""
    phases = workload.phases if workload else None
    if phases is None or deciding.metric != phases.printed_faster or not points:
        return None
    methods = {str(point.parameters.get(phases.method)) for point in points}
    return (next(iter(methods)), phases.baseline) if len(methods) == 1 else None


def _also(experiment: Experiment, workload: WorkloadDefinition | None, deciding: Deciding) -> Deciding | None:
    """Return the bandwidth of all nodes together, for a staged run."""
    phases = workload.phases if workload else None
    if phases is None or deciding.metric != phases.run:
        return None
    metric = find(phases.aggregate, experiment.specification)
    return Deciding(metric.id, metric.label, metric.unit, metric.direction == "higher")


def _peak(experiment: Experiment, workload: WorkloadDefinition | None, deciding: Deciding) -> float | None:
    """Return the theoretical peak in the unit of a floating-point deciding metric."""
    if workload is None or workload.gflops != deciding.metric:
        return None
    stated = (experiment.source or {}).get("facts", {}) if experiment.published else {}
    if experiment.cluster is not None and not experiment.published:
        stated = experiment.cluster.facts
    peak = facts_of(stated).peak_flops
    return None if peak is None else peak / 1e9
