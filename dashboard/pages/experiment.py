"""Page of an experiment: progress, results, diagnosis, setup and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import trigger_client_event

from analysis.conclusions.observations.needs import DELAY, FEWEST_LEVELS, RATE
from analysis.numbers import plural
from dashboard.background.diagnoses import share_done
from dashboard.labels import fact_rows, parameters_sentence, study_kind, trial_role, workload_title
from dashboard.panels.experiment.diagnosis import diagnosis_context, panels_of
from dashboard.panels.experiment.excluded_trials import swept_of, why_apart
from dashboard.panels.experiment.list_rows import chip_state, chip_words
from dashboard.panels.experiment.results import Results
from dashboard.panels.experiment.rounds import TYPED, refused_limits, rounds_context
from dashboard.panels.experiment.running import running_entry
from dashboard.panels.new.draft import as_yaml
from dashboard.panels.new.network_draft import can_study_network
from dashboard.panels.parts import SHORT_TITLES, Measured, parts_of
from dashboard.requests.lookup import find_experiment, query_value
from experiments import workloads
from experiments.access import (
    may_cancel,
    may_describe_clusters,
    may_register_programs,
    may_run_more,
    report_projects,
    role_in,
    visible_experiments,
)
from experiments.errors import InvalidSpec, ReadOnly
from experiments.models import Experiment, Membership, Priority, State, Trial
from experiments.models.states import BUDGET_SPENT, FAILED, NOT_REQUESTED, UNFINISHED
from experiments.revision import changed_fields
from experiments.selectors import (
    Progress,
    busy_seconds,
    excluded_trials,
    excluded_trials_of,
    is_open,
    progress_of,
    running_trials,
    seconds_per_trial,
    waiting,
)
from experiments.selectors.changed_programs import last_program, replaced_file
from experiments.selectors.diagnosis import CachedDiagnosis, answers_of, cached_diagnosis, diagnosis_of
from experiments.selectors.page_cache import cached_page
from experiments.selectors.queue_forecast import Outlook, outlooks
from experiments.specification import design
from experiments.specification.fields import EACH
from experiments.specification.parameters import known_parameters

MORE_REPETITIONS = (1, 2, 3, 5, 10, 20)
NEXT_TRIALS = 3
MOST_APART = 200
_REPORTS = (Membership.Role.SUBMITTER, Membership.Role.MAINTAINER)
"""Roles that may write reports."""


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one experiment with its charts."""
    experiment, rows_from = find_experiment(request, slug), query_value(request, "from")
    compute = partial(_rows_of, experiment, rows_from=rows_from)
    rows = compute() if rows_from or is_open(experiment) else cached_page(experiment, compute)
    context = {"place": "experiments", **rows, **_status(request.user, experiment, rows), **_setup(experiment)}
    context |= _tabs(query_value(request, "tab"), context["configurations"])
    context |= allowed(request.user, experiment, context["progress"])
    context["pins"] = f"chart {slug}" if context["may_report"] else ""
    if original := experiment.cloned_from_id:
        context["original"] = visible_experiments(request.user).filter(pk=original).first()
    context["toured"] = bool(query_value(request, "tour"))
    context["repeatable"] = _repeatable(context)
    if any(name.startswith(TYPED) for name in request.GET):
        context |= {"further": refused_limits(context.get("further", ()), request.GET), "is_refused": True}
    if context["may_change"] and not context.get("goal"):
        context["replaced_file"] = replaced_file(experiment, rows["last_program"])
    return render(request, "experiment/page.html", context)


def _repeatable(context: dict[str, Any]) -> dict[str, Any]:
    """Return choices (repetitions, trials, seconds or None) of more repetitions.

    Control runs of each repetition are trials too.
    """
    progress, spec, configurations = context["progress"], context.get("spec"), context["configurations"]
    in_each = configurations * (2 if spec is not None and spec.control == EACH else 1)
    left_s, trial_s = context.get("left_s"), context["trial_s"]
    if left_s is not None and progress.queued:
        trial_s = left_s / (progress.queued + progress.active)
    counts = [(count, count * in_each) for count in MORE_REPETITIONS]
    return {
        "configurations": configurations,
        "choices": [(count, trials, None if trial_s is None else trial_s * trials) for count, trials in counts],
        "repeats": spec is not None and spec.disturbed == "repeat",
    }


@require_GET
def live(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the parts that change during a run; charts only if another trial ended."""
    experiment = find_experiment(request, slug)
    rows_from = query_value(request, "from")
    counts, complete = _counts(experiment), query_value(request, "complete")
    status = _status(request.user, experiment, counts) | {"rows_from": rows_from if rows_from.isdecimal() else ""}
    progress = counts["progress"]
    if request.GET.get("seen") == str(progress.over) and not progress.is_over:
        return render(request, "experiment/_live.html", {**status, "complete": complete})
    context: dict[str, Any] = {**status, **results_of(experiment, rows_from=rows_from), "changed": True}
    context |= allowed(request.user, experiment, progress)
    response = render(request, "experiment/_live.html", context)
    # The first trial and completed configurations update the diagnosis: text that changes with every trial is unreadable.
    return response if context["complete"] == complete else trigger_client_event(response, "rankwire:diagnose")


@require_POST
def cancel(request: HttpRequest, slug: str) -> HttpResponse:
    """Cancel every trial that is not over."""
    experiment = find_experiment(request, slug)
    if not may_cancel(request.user, experiment):
        raise PermissionDenied
    try:
        count = experiment.cancel()
    except ReadOnly as error:
        messages.error(request, str(error), extra_tags="bad")
    else:
        messages.info(request, f"Cancelled {plural(count, 'trial')}; running ones stop within seconds.")
    return redirect(experiment)


def _tabs(chosen: str, configurations: int) -> dict[str, Any]:
    tabs = {
        "answer": "Answer",
        "charts": "Charts and tables",
        "configurations": f"Configurations ({configurations})",
        "setup": "Setup",
    }
    return {"tabs": list(tabs.items()), "tab": chosen if chosen in tabs else "answer"}


def _network(experiment: Experiment, results: Results) -> str:
    """Return the next step: "what-if", "study" or ''."""
    levels = (len({row.parameters.get(name) for row in results.rows}) for name in (DELAY, RATE))
    if not experiment.published and max(levels) >= FEWEST_LEVELS:
        return "what-if"
    return "study" if can_study_network(experiment, results.rows) else ""


def allowed(user: Any, experiment: Experiment, progress: Progress) -> dict[str, Any]:
    """Return the user's permissions on the experiment, and counts for buttons."""
    role = None if experiment.published else role_in(user, experiment.project)
    may_change = role is not None and may_run_more(user, experiment, role)
    is_own = not experiment.published and may_cancel(user, experiment, role)
    may_prioritise = role == Membership.Role.MAINTAINER and not experiment.is_imported
    return {
        "may_change": may_change,
        "may_cancel": is_own and not progress.is_over,
        "may_delete": is_own and progress.is_over,
        "may_share": may_change or role in _REPORTS or _has_own_links(user, experiment, role),
        "priorities": Priority.choices[::-1] if may_prioritise else [],
        "may_report": bool(report_projects(user)) if experiment.published else role in _REPORTS,
        "without_result": progress.failed + progress.cancelled,
        "none_started": progress.failed + progress.cancelled == progress.not_started,
    }


def _has_own_links(user: Any, experiment: Experiment, role: str | None) -> bool:
    """Return whether a viewer may still revoke links of an earlier role."""
    return role == Membership.Role.VIEWER and experiment.share_links.filter(made_by=user).exists()


def _rows_of(experiment: Experiment, *, rows_from: str) -> dict[str, Any]:
    """Return what the page reads from the rows of trials and configurations alone."""
    counts, results = _counts(experiment), results_of(experiment, rows_from=rows_from)
    excluded = {} if experiment.published else _apart(experiment)
    return {**counts, **results, **excluded, "last_program": last_program(experiment.trials.current())}


def _counts(experiment: Experiment) -> dict[str, Any]:
    """Return the numbers of trials and the time that they took."""
    progress = progress_of([experiment])[experiment.pk]
    return {
        "progress": progress,
        "repeats": experiment.trials.current().repeats().count() if progress.flagged else 0,
        "took_s": busy_seconds(experiment) if progress.is_over and progress.total else None,
        "trial_s": seconds_per_trial(experiment) if progress.is_over and progress.total else None,
    }


def _status(user: Any, experiment: Experiment, counts: Mapping[str, Any]) -> dict[str, Any]:
    progress: Progress = counts["progress"]
    failure = _only_failures(experiment, progress)
    return {
        **counts,
        "experiment": experiment,
        "why_held": experiment.why_held if progress.is_held else "",
        "may_go_on": progress.is_held and may_run_more(user, experiment),
        "held_program": _held_program(user, experiment) if progress.is_held or failure else None,
        "failure": failure,
        "may_revise": failure is not None and may_run_more(user, experiment),
        "state": "published" if experiment.published else chip_state(progress),
        "state_words": "" if experiment.published else chip_words(progress),
        "shares": _shares(progress),
        "over_budget": _over_budget(experiment) if progress.stopped else "",
        "repeats_words": f"{plural(counts['repeats'], 'repeat')} after other load",
        **rounds_context(user, experiment),
        **({} if progress.is_over else _still_to_come(user, experiment)),
    }


def _held_program(user: Any, experiment: Experiment) -> dict[str, Any] | None:
    """Return chosen and latest version of the program of held or failed trials."""
    parameters = experiment.specification.get("parameters") or {}
    versions = workloads.program_versions(experiment.workload, parameters)
    return versions and {**versions, "may_edit": may_register_programs(user)}


def _over_budget(experiment: Experiment) -> str:
    """Return why a goal cancelled waiting trials, or "".

    It has their number if users cancelled others.
    """
    cancelled = experiment.trials.current().filter(state=State.CANCELLED).exclude(message=NOT_REQUESTED)
    spent = cancelled.filter(message__startswith=BUDGET_SPENT)
    message = spent.order_by("-ended_at").values_list("message", flat=True).first()
    if message is None:
        return ""
    count, others = spent.count(), cancelled.exclude(message__startswith=BUDGET_SPENT).exists()
    used = message.removeprefix(BUDGET_SPENT).strip(" ,.")
    return f"{f'{count} as ' if others else ''}budget spent ({used})"


def _only_failures(experiment: Experiment, progress: Progress) -> Trial | None:
    """Return the last failed trial if the experiment ended without a finished one."""
    if not progress.is_over or progress.finished or not progress.failed:
        return None
    return experiment.trials.current().filter(state__in=FAILED).order_by("-ended_at", "-pk").first()


def _still_to_come(user: Any, experiment: Experiment) -> dict[str, Any]:
    """Return running trials, the queue before waiting ones, and the remaining time."""
    rows, trials = waiting(), list(running_trials())
    outlook = outlooks(rows, trials).get(experiment.pk, Outlook())
    queued = next((row for row in rows if row["experiment_id"] == experiment.pk), None)
    return {
        "running": [running_entry(trial) for trial in trials if trial.experiment_id == experiment.pk],
        "left_s": outlook.left_s,
        "queued": queued and _queue(user, experiment, queued, outlook),
    }


def _queue(user: Any, experiment: Experiment, queued: dict[str, Any], outlook: Outlook) -> dict[str, Any]:
    """Return the next trials and the trials ahead of them."""
    # The index of the queue starts with the cluster: no sort of a long queue.
    waiting_here = experiment.trials.filter(state=State.QUEUED, cluster=queued["cluster_id"])
    following = waiting_here.select_related("configuration").order_by("position")
    ahead = outlook.ahead
    return {
        **queued,
        "next": [running_entry(trial) for trial in following[:NEXT_TRIALS]],
        "starts_in_s": outlook.starts_in_s,
        "ahead": sum(ahead.values()),
        "may_prioritise": bool(ahead) and role_in(user, experiment.project) == Membership.Role.MAINTAINER,
        "ahead_experiments": len(ahead),
        "ahead_named": visible_experiments(user).filter(pk__in=ahead).first() if len(ahead) == 1 else None,
    }


def _shares(progress: Progress) -> list[tuple[str, float]]:
    if not progress.total:
        return []
    parts = (
        (State.FINISHED.tone, progress.finished),
        (State.FAILED.tone, progress.failed),
        (State.CANCELLED.tone, progress.stopped),
        (State.RUNNING.tone, progress.active),
    )
    return [(tone, round(100 * count / progress.total, 2)) for tone, count in parts if count]


def results_of(experiment: Experiment, *, rows_from: str = "") -> dict[str, Any]:
    """Return charts, tables and the last diagnosis; `fresh` if it is of these results.

    `rows_from`: number of a row on the shown page of the table.
    """
    diagnosis, fresh = cached_diagnosis(experiment)
    if not fresh and not _is_of_trials(diagnosis):
        diagnosis = None  # "No trial has finished" is wrong by now
    results = Results(experiment, diagnosis.study, diagnosis.answer) if diagnosis else Results(experiment)
    sections, table = results.panels(), results.table(rows_from)
    answer_section, other_sections = results.split(sections)
    return {
        "configurations": len(results.rows),
        "network": _network(experiment, results),
        "sections": sections,
        "table": table,
        "rows_from": table["page"].first if table["page"].first > 1 else "",
        "scales": results.scales,
        "answer_section": answer_section,
        "other_sections": other_sections,
        "failures": results.failures(),
        "handed_back": results.handed_back(),
        "overlays": [replace(overlay, rows=()) for overlay in results.overlays],
        "complete": results.complete,
        "diagnosis": diagnosis_context(diagnosis, results, panels_of(sections, SHORT_TITLES)) if diagnosis else None,
        "fresh": fresh,
        "oversubscription": _oversubscription(experiment, results),
    }


def _oversubscription(experiment: Experiment, results: Results) -> str:
    """Return the oversubscription of virtual hosts in words; '' for real hosts."""
    if experiment.cluster is None or not experiment.cluster.traits.hosts_are_virtual:
        return ""
    ended = [(row.hosts, mark.pk) for row in results.rows for mark in row.trials if mark.state == State.FINISHED]
    if not ended:
        return ""
    hosts, trial = max(ended)
    largest = experiment.trials.filter(pk=trial).values_list("conditions__oversubscription", flat=True).get()
    if not largest or "hosts" not in results.swept:
        return largest or ""
    larger = [mark.state for row in results.rows if row.hosts > hosts for mark in row.trials]
    return f"up to {largest}{' so far' if any(state in UNFINISHED for state in larger) else ''}"


def _versions(experiment: Experiment) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    for version in experiment.versions.select_related("author"):
        changes = list(changed_fields(before, version.specification)) if before else []
        rows.insert(0, {"version": version, "changes": changes})
        before = version.specification
    return rows


def _apart(experiment: Experiment) -> dict[str, Any]:
    """Return the excluded trials with their points and reasons, and their number."""
    trials, swept = excluded_trials(experiment, MOST_APART), swept_of(experiment)
    why = why_apart(experiment, trials)
    rows = [
        {
            "trial": trial,
            "point": parameters_sentence(trial.configuration.parameters, swept),
            "role": trial_role(trial.kind, trial.repetition, trial.attempt),
            "why": why[trial.pk],
        }
        for trial in trials
    ]
    in_all = len(rows) if len(rows) < MOST_APART else excluded_trials_of(experiment).count()
    return {"apart": rows, "apart_in_all": in_all}


def _setup(experiment: Experiment) -> dict[str, Any]:
    """Return the specification in words and as YAML."""
    setup: dict[str, Any] = {"workload_title": workload_title(experiment.workload), "link": "", "constants": ""}
    if experiment.published:
        return setup | {
            "source": list(fact_rows({k: v for k, v in experiment.source.items() if k not in ("notes", "statements")}))
        }
    setup["yaml"] = as_yaml(experiment.specification)
    setup["versions"] = _versions(experiment)
    try:
        spec = experiment.spec
    except InvalidSpec:
        return setup  # specification of an earlier version
    if workloads.find(experiment.workload, spec.parameters) is None:
        return setup  # imported: the program is not registered here
    point = design.first_point(spec)
    names = [name for name in workloads.get(experiment.workload).parameters_type.model_fields if name not in spec.sweep]
    setup["constants"] = parameters_sentence(point, names)
    setup["study_kind"] = study_kind(experiment.workload, experiment.specification)
    if not any(name.startswith("link.") for name in spec.sweep):
        link = design.link_of(point)
        describe = partial(experiment.cluster.traits.link_in_words, link) if experiment.cluster else link.describe
        setup |= {"link": describe(brief=True), "link_in_full": describe()}
    return setup | {"spec": spec, "known": known_parameters(experiment.workload)}


@require_GET
def diagnosis(request: HttpRequest, slug: str) -> HttpResponse:
    """Render the diagnosis; charts with models are replaced out of band."""
    experiment = find_experiment(request, slug)
    share = share_done(experiment)
    # A page without an answer gets the last one, although trials ended since.
    gets_last = bool(query_value(request, "empty")) and _has_answer(experiment)
    if share is not None and not gets_last:
        return _computing(request, experiment, share)
    if share is None:
        diagnosis_of(experiment)
    context = {"experiment": experiment, **results_of(experiment), "out_of_band": True}
    context["may_change"] = not experiment.published and may_run_more(request.user, experiment)
    return render(request, "experiment/_diagnosis.html", context)


def _has_answer(experiment: Experiment) -> bool:
    return _is_of_trials(cached_diagnosis(experiment)[0])


def _is_of_trials(diagnosis: CachedDiagnosis | None) -> bool:
    return diagnosis is not None and diagnosis.study.trials > 0


def _computing(request: HttpRequest, experiment: Experiment, share: float) -> HttpResponse:
    """Render the progress; the page asks again and keeps an answer that it has."""
    if _has_answer(experiment):
        return trigger_client_event(HttpResponse(status=204), "rankwire:diagnosing")
    context = {"experiment": experiment, "percent": round(100 * share)}
    return render(request, "experiment/_computing.html", context)


@require_GET
def parts(request: HttpRequest, slug: str) -> HttpResponse:
    """Render all result parts, with the targets of the query string."""
    experiment = find_experiment(request, slug)
    answer = answers_of([experiment]).get(experiment.pk)
    question = "best settings" if experiment.searches else answer.question if answer is not None else ""
    made = parts_of(Measured.of(experiment), request.GET.dict(), question)
    opening = made.pop(0) if made and made[0].opens else None
    may_describe = may_describe_clusters(request.user)
    context = {"experiment": experiment, "opening": opening, "parts": made, "may_describe": may_describe}
    return render(request, "parts/_parts.html", context)
