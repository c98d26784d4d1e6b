"""Changes of an experiment: reruns, more repetitions, recommended trials, edits."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from analysis.numbers import plural
from dashboard.background import changes
from dashboard.pages.new import form_context, typed_yaml
from dashboard.panels.new.draft import draft_from_post, posted_draft
from dashboard.requests.idempotency import redirect_or_refuse
from dashboard.requests.lookup import find_experiment, query_value
from experiments.access import may_prioritise, may_run_more, may_submit, restricted_field
from experiments.errors import FieldError, InvalidSpec, StaleTrial
from experiments.models import BackgroundTask, Experiment, Priority
from experiments.revision import MorePoints, plan_points
from experiments.selectors.changed_programs import last_program, replaced_file
from experiments.selectors.diagnosis import cached_diagnosis
from experiments.specification import parse
from workers import queue

MOST_REPETITIONS = 100


@require_POST
def rerun(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue every trial without a result again."""
    return _queued(request, _changeable(request, slug), lambda e: changes.rerun_failed(request.user, e))


@require_POST
def repeat_disturbed(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue a repeat of each slowed trial that counts, unless its program changed."""
    experiment = _changeable(request, slug)
    if changed := replaced_file(experiment, last_program(experiment.trials.current())):
        why = f"The file {changed[0]} changed after the last trial: repeats would run another program. Clone the experiment."
        messages.error(request, why, extra_tags="bad")
        return redirect(experiment)
    return _queued(request, experiment, lambda e: changes.repeat_disturbed(request.user, e))


@require_POST
def go_on(request: HttpRequest, slug: str) -> HttpResponse:
    """Release the trials of a held experiment."""
    return _queued(request, _changeable(request, slug), queue.resume)


@require_POST
def prioritise(request: HttpRequest, slug: str) -> HttpResponse:
    """Set the priority of queued trials within the project."""
    experiment = find_experiment(request, slug)
    if experiment.published or not may_prioritise(request.user, experiment):
        raise PermissionDenied
    chosen = next((option for option in Priority if str(option.value) == request.POST.get("priority")), None)
    if chosen is None:
        messages.error(request, "There is no such priority.", extra_tags="bad")
    else:
        experiment.prioritise(chosen)
        messages.success(request, f"{chosen.label} priority among the experiments of this project.", extra_tags="ok")
    return redirect(experiment)


@require_POST
def repeat(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue more repetitions of every configuration."""
    text = request.POST.get("count", "")
    count = int(text) if text.isdecimal() and len(text) < 4 else 0
    experiment = _changeable(request, slug)
    if not 1 <= count <= MOST_REPETITIONS:
        messages.error(request, f"Enter a number of repetitions from 1 to {MOST_REPETITIONS}.", extra_tags="bad")
        return redirect(experiment)
    return _queued(request, experiment, lambda e: changes.repeat(request.user, e, count))


@require_POST
def next_points(request: HttpRequest, slug: str) -> HttpResponse:
    """Queue the recommended trials if they are still those of the page."""
    experiment = _changeable(request, slug)

    def plan() -> MorePoints:
        diagnosis, fresh = cached_diagnosis(experiment)
        # Queued trials make the diagnosis stale: a second press of the button queues nothing.
        same = diagnosis is not None and fresh and diagnosis.stamp == request.POST.get("stamp")
        more = plan_points(experiment, diagnosis.suggested) if diagnosis is not None and same else None
        if more is None:
            raise StaleTrial("The recommendation has changed. Check the new one below.")
        return more

    return _queued(request, experiment, lambda e: queue.add_points(e, plan, author=request.user))


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the form; on POST save the next version or show errors (422)."""
    experiment, refusal = _changeable(request, slug), None
    draft = experiment.specification
    if (version := query_value(request, "version")).isdecimal():
        draft = {**draft, "parameters": {**(draft.get("parameters") or {}), "version": int(version[:9])}}
    if request.method == "POST":
        draft = draft_from_post(request.POST)
        try:
            spec = parse(posted_draft(request.POST, max_trials=settings.MAX_TRIALS), max_trials=settings.MAX_TRIALS)
            if not may_submit(request.user, experiment.project, specification := spec.to_dict()):
                field = restricted_field(specification) or "workload"
                raise InvalidSpec([FieldError(field, f"you may not start this {field} in this project")])
            count = queue.revise(experiment, spec, author=request.user)
        except InvalidSpec as error:
            refusal = error
        else:
            words = f"Revision {experiment.version}: {plural(count, 'trial')} queued."
            if spec.goal is not None and not count:
                words = f"Revision {experiment.version}: the goal decides whether a round of more trials starts."
            messages.success(request, words, extra_tags="ok queued")
            return redirect(experiment)
    context = form_context(request.user, dict(draft), refusal, editing=experiment)
    context |= typed_yaml(request, refusal, context["error"])
    context["place"] = "experiments"
    return render(request, "new/page.html", context, status=422 if refusal else 200)


def _changeable(request: HttpRequest, slug: str) -> Experiment:
    experiment = find_experiment(request, slug)
    if experiment.published or not may_run_more(request.user, experiment):
        raise PermissionDenied
    return experiment


def _queued(
    request: HttpRequest, experiment: Experiment, change: Callable[[Experiment], int | BackgroundTask]
) -> HttpResponse:
    """Make a change once and redirect to the experiment, or to its background task."""

    def made() -> HttpResponseRedirect:
        queued = change(experiment)
        if isinstance(queued, BackgroundTask):
            return redirect(queued)
        messages.success(request, f"{plural(queued, 'trial')} queued.".capitalize(), extra_tags="ok queued")
        return redirect(experiment)

    return redirect_or_refuse(request, made, experiment)
