"""Preview of a specification: points, times, commands and notes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from analysis.conclusions.context import ASKS
from analysis.conclusions.forecast import Forecast
from analysis.conclusions.observations.transfer import MIN_SIZES
from analysis.conclusions.searching import CANDIDATES
from analysis.numbers import between, duration, grouped, plural, significant
from dashboard.labels import command_lines, parameter_label, value_words
from experiments import workloads
from experiments.access import may_register_programs, may_replace_program, projects_for, visible_trials
from experiments.common.quantities import FRACTION, Dimension
from experiments.common.stored_mappings import mapping_at
from experiments.models import Cluster, ClusterTest, Trial
from experiments.selectors.changed_programs import replaced_of_command, written
from experiments.selectors.question import planned_question
from experiments.selectors.trial_times import Estimate
from experiments.specification import ExperimentSpec, design
from experiments.specification.launch_plan import plan_launch
from experiments.specification.parameters import dimension_of
from workers import preview as launch
from workers.errors import ClusterUnavailable

MOST_ROWS = 200
UNIT_EXAMPLES: Final = {"link.bandwidth": "Mbit/s", "link.delay": "ms", "link.jitter": "ms", "link.loss": "%"}
"""Rates, times and shares of the link, of which a bare number has an unusual unit, and the usual one."""


@dataclass(frozen=True)
class PreviewRow:
    """One configuration of the preview; values of the swept parameters are text."""

    number: int
    values: list[str]
    ranks: int
    estimate: Estimate
    chosen: bool


@dataclass(frozen=True)
class Preview:
    """Effects of a valid form."""

    names: list[str]
    rows: list[PreviewRow]
    configurations: int
    trials: int
    warmups: int
    controls: int
    twins: int
    most_ranks: int
    shared_cores: int
    is_estimated: bool
    """No time is scaled from trials that had only more or only fewer hosts."""
    seconds: float
    most_seconds: float
    """If other load disturbs every trial, so that each is repeated."""
    exceeds_budget: bool
    capture_bytes: float | None
    preparation: list[str]
    command: str
    command_notes: str
    files: list[tuple[str, int]]
    recorded: str
    chosen: int
    link: str
    notes: list[str]
    failed_cluster: str
    """Slug of the cluster if its last check failed."""
    program_notes: list[str]
    editable_program: str
    """Slug if it is a program that the user may edit."""
    goal: list[str]
    """Rules of later rounds; empty without a goal."""
    question: str
    """Question of the design and the deciding metric."""

    @property
    def everything(self) -> int:
        return self.trials + self.warmups + self.controls + self.twins

    @property
    def hidden_rows(self) -> int:
        return self.configurations - len(self.rows)


def make_preview(
    spec: ExperimentSpec,
    plan: design.Design,
    chosen: int,
    cluster: Cluster,
    user: Any,
    past: QuerySet[Trial] | None = None,
) -> Preview:
    """Design at the start, with times and the command of configuration `chosen`.

    Times and sizes are estimated from the trials in ``past``; None: all.
    """
    chosen = min(max(chosen, 0), len(plan.configurations) - 1)
    times = launch.estimates(spec, plan, past)
    kinds = [trial.kind for trial in plan.trials]
    rows = []
    for i, point in enumerate(plan.configurations[:MOST_ROWS]):
        values = [value_words(name, point.parameters[name], spec.workload) for name in spec.sweep]
        rows.append(PreviewRow(i + 1, values, point.ranks, times[i], i == chosen))
    dry, problems = _dry_run(spec, plan, chosen)
    stores_capture = spec.capture.enabled and spec.capture.keep
    seconds = launch.total_s(plan, times)
    most_ranks = max(point.ranks for point in plan.configurations)
    most_seconds = seconds + launch.repeats_s(spec, plan, times)
    limit_s = None if spec.goal is None else spec.goal.budget.time
    if limit_s is not None and seconds > limit_s:
        problems = [*problems, f"Round 1 would take about {duration(seconds)}, more than the budget."]
    return Preview(
        names=[parameter_label(name, spec.workload) for name in spec.sweep],
        rows=rows,
        configurations=len(plan.configurations),
        trials=kinds.count("measured") + kinds.count("search"),
        warmups=kinds.count("warmup"),
        controls=kinds.count("control"),
        twins=kinds.count("ideal"),
        most_ranks=most_ranks,
        shared_cores=_shared_cores(cluster, most_ranks),
        is_estimated=not any(estimate.of_other_hosts for estimate in times),
        seconds=seconds,
        most_seconds=most_seconds,
        exceeds_budget=limit_s is not None and most_seconds > limit_s,
        capture_bytes=launch.capture_bytes(spec, plan, times, past) if stores_capture else 0.0,
        preparation=[command_lines(argv) for argv in dry.preparation] if dry else [],
        command=command_lines(dry.argv) if dry else "",
        command_notes=" ".join(dry.notes) if dry else "",
        files=list(dry.files.items()) if dry else [],
        recorded=_recorded(spec, dry),
        chosen=chosen + 1,
        link=cluster.traits.link_in_words(design.link_of(plan.configurations[chosen].parameters), brief=True),
        notes=[*problems, *cautions(spec, plan, cluster, times, user)],
        failed_cluster=cluster.slug if ClusterTest.failure_of(cluster) else "",
        program_notes=program_notes(spec, plan, cluster, user),
        editable_program=spec.workload if _may_edit(user, spec.workload) else "",
        goal=[*forecast_words(spec, launch.forecast_of(spec, plan, times, past)), *_later_rounds(spec)],
        question=_question_words(spec, plan),
    )


def forecast_words(spec: ExperimentSpec, forecast: Forecast | None) -> list[str]:
    """Return what a goal will likely take, within its budget; empty without a goal."""
    if spec.goal is None:
        return []
    budget = spec.goal.budget
    limits = [
        f"{duration(budget.time)} of trials" if budget.time else "",
        f"{budget.trials} trials" if budget.trials else "",
    ]
    limits.append(f"{significant(budget.host_hours)} host hours" if budget.host_hours else "")
    latest = f"Ends after {', '.join(filter(None, limits))} at the latest."
    if forecast is None:
        return [f"No estimate yet: round 1 will give one. {latest}"]
    least, most = (seconds / 3600 for seconds in forecast.host_seconds)
    likely = (
        f"Likely {_range(forecast.rounds, 'round')} and {_range(forecast.trials, 'trial')}: "
        f"{between(*forecast.seconds, 's')}, {between(least, most)} host hours."
    )
    if budget.time is not None and forecast.seconds[0] > budget.time:
        likely = f"{likely} The budget ends before."
    return [likely, latest]


def _question_words(spec: ExperimentSpec, plan: design.Design) -> str:
    kind, deciding = planned_question(spec, plan)
    better = "higher" if deciding.higher_is_better else "lower"
    return f"{ASKS[kind]} {deciding.label} decides, {better} is better."


def _range(ends: tuple[int, int], noun: str) -> str:
    return plural(ends[1], noun) if ends[0] == ends[1] else f"{ends[0]} to {plural(ends[1], noun)}"


def _recorded(spec: ExperimentSpec, dry: launch.DryRun | None) -> str:
    if not dry or not spec.capture.enabled or not dry.recording.where:
        return "Records no packets."
    passing = dry.recording.capture_filter
    packets = f"the packets that pass {passing}" if passing else "every packet"
    return f"Records the first {spec.capture.snap_length} bytes of {packets} on {dry.recording.where}."


def _later_rounds(spec: ExperimentSpec) -> list[str]:
    """Return how later rounds are chosen."""
    if spec.goal is None:
        return []
    if spec.optimised:
        size = design.space_of(spec).size
        return [
            f"Each round proposes settings from all results, out of {grouped(size)} combinations.",
            "Combinations that fail are avoided and listed.",
            f"The best {CANDIDATES} and the starting settings (configuration 1) are then measured again, interleaved.",
        ]
    if spec.explores:
        top = spec.values()["hosts"][-1]
        first = [f"More hosts, up to {top}, run only while the time falls.", "Sizes beside the best one are added."]
        return [*first, f"Sizes within {FRACTION.format(spec.goal.matters)} count as equally good."]
    repeated = f"Each is repeated up to {spec.at_most} times, half as often again in each round."
    if spec.goal.precision is not None:
        return [f"Configurations whose interval is wider than ±{spec.goal.until} run again.", repeated]
    matters = FRACTION.format(spec.goal.matters)
    rules = "Only configurations that may be the best run again.", f"Those within {matters} count as equally good."
    return [*rules, repeated]


def cautions(
    spec: ExperimentSpec, plan: design.Design, cluster: Cluster, times: Sequence[Estimate], user: Any
) -> list[str]:
    """Return notes for ``user`` to read before the start."""
    failure = ClusterTest.failure_of(cluster)
    return [
        *([failure] if failure else []),
        *_too_large(cluster, design.most_hosts(spec, plan)[0]),
        *_without_unit(spec),
        *_too_long(spec, times),
        *_too_few_sizes(spec, plan),
        *_notes(spec),
    ]


MOST_SEARCHED: Final = 100
"""Configurations of which the preview looks for the program."""


def program_notes(spec: ExperimentSpec, plan: design.Design, cluster: Cluster, user: Any) -> list[str]:
    """Return notes on programs that run here: not found, or changed since a trial.

    Without the right to submit the specification, a user gets none: notes would show which files exist.
    """
    if not cluster.traits.on_this_machine or not projects_for(user, spec.to_dict()):
        return []
    first = plan.configurations[:MOST_SEARCHED]  # a preview is made at every change of the form
    commands = [plan_launch(spec.workload, point.parameters, spec.cluster).program for point in first]
    past = visible_trials(user, by_keys=True).filter(
        cluster=cluster, experiment__workload=spec.workload, experiment__origin={}
    )
    notes = _absent_programs({command[0] for command in commands})
    if replaced := replaced_of_command({word for command in commands for word in _located(command)}, past):
        path, started = replaced
        notes.append(
            f"The file {path} changed after the trial of {written(started)}: new trials run another program. To compare both "
            "builds, store each under a path of its own, and enter the new path as a new version of the program."
        )
    return notes


def _may_edit(user: Any, workload: str) -> bool:
    definition = workloads.find(workload)
    return bool(
        definition and definition.registered and may_register_programs(user) and may_replace_program(user, workload)
    )


def _located(command: Sequence[str]) -> Sequence[str]:
    return [shutil.which(command[0]) or command[0], *command[1:]]


def _absent_programs(programs: Iterable[str]) -> list[str]:
    absent = sorted(filter(workloads.is_absent, programs))
    if len(absent) < 2:
        return [f"{program} was not found on this machine: trials with it may fail." for program in absent]
    others = plural(len(absent) - 1, "other program")
    return [f"{absent[0]} and {others} were not found on this machine: trials with them may fail."]


def _without_unit(spec: ExperimentSpec) -> list[str]:
    """Return a note for each swept rate or time of the link that is a bare number."""
    swept = {name: spec.swept(name) for name in UNIT_EXAMPLES if name in spec.sweep}
    bare = {name: next(filter(is_bare, values), None) for name, values in swept.items()}
    return [unit_note(name, str(value)) for name, value in bare.items() if value is not None]


def notes_of_link(draft: Mapping[str, Any]) -> list[str]:
    """Return a note for each constant rate or time of the link that is a bare text."""
    values = {f"link.{name}": value for name, value in mapping_at(draft, "link").items()}
    bare = {name: values[name] for name in UNIT_EXAMPLES if isinstance(values.get(name), str) and is_bare(values[name])}
    return [unit_note(name, value) for name, value in bare.items()]


def is_bare(value: Any) -> bool:
    """Return whether a written quantity is a number without a unit, and not 0."""
    try:
        return not isinstance(value, bool) and float(value) > 0
    except (TypeError, ValueError):
        return False


def unit_note(name: str, written: str) -> str:
    """Return what a bare number of the link means."""
    return bare_note(parameter_label(name), written, dimension_of("", name), UNIT_EXAMPLES[name])


def bare_note(label: str, written: str, dimension: Dimension | None, unit: str) -> str:
    """Return what a bare number of a quantity means, and how to enter the usual unit."""
    meaning = "" if dimension is None else dimension.format(float(written))
    return f"{label}: {written} has no unit and means {meaning}. Enter {written} {unit} if you mean that."


def _too_long(spec: ExperimentSpec, times: Sequence[Estimate]) -> list[str]:
    """Return a note if trials will likely meet their time limit."""
    late = [(i + 1, estimate.elapsed_s) for i, estimate in enumerate(times) if estimate.elapsed_s > spec.time_limit_s]
    if not late:
        return []
    number, longest_s = max(late, key=lambda row: row[1])
    return [
        f"{plural(len(late), 'configuration')} will likely exceed the time limit of {duration(spec.time_limit_s)}: "
        f"configuration {number} needs about {duration(longest_s)}. Raise the limit, or reduce the problem."
    ]


def _too_few_sizes(spec: ExperimentSpec, plan: design.Design) -> list[str]:
    sizes = {point.parameters.get("message_bytes") for point in plan.configurations}
    if len(sizes) >= MIN_SIZES or planned_question(spec, plan)[0] != "message size":
        return []
    repeating = ", and rounds repeat these sizes only" if spec.goal else ""
    return [f"Latency and bandwidth need at least {MIN_SIZES} message sizes{repeating}. Add sizes to the sweep."]


def _dry_run(spec: ExperimentSpec, plan: design.Design, chosen: int) -> tuple[launch.DryRun | None, list[str]]:
    try:
        return launch.dry_run(spec, plan, chosen), []
    except ClusterUnavailable as error:
        return None, [str(error)]


def _too_large(cluster: Cluster, hosts: int) -> list[str]:
    """Return a note if a scheduler is asked for more hosts than known."""
    has = cluster.hosts_to_suggest
    if has is None or hosts <= has:
        return []
    limit = f"{cluster.name} is known to have {plural(has, 'host')}"
    return [f"{limit}: {cluster.traits.noun} may refuse trials with {hosts}."]


def _shared_cores(cluster: Cluster, ranks: int) -> int:
    """Return the cores of one machine that more ranks share, or 0."""
    cores = (cluster.cores_to_suggest if cluster.traits.hosts_share_cores else None) or ranks
    return cores if ranks > cores else 0


def _notes(spec: ExperimentSpec) -> list[str]:
    notes = []
    if spec.at_least == 1 and spec.goal is None:
        notes.append("One repetition does not show the scatter: the answer will be tentative at best.")
    if not spec.capture.enabled:
        notes.append("No capture: the trials will have no network metrics.")
    missing = workloads.missing_packages(workloads.get(spec.workload, spec.parameters))
    if missing:
        notes.append(
            f"This machine lacks {', '.join(missing)}: trials on it would fail until the package is installed."
        )
    return notes
