"""Buttons of the rounds of a goal: pause, resume, one more."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from analysis.numbers import plural
from dashboard.panels.experiment.rounds import TYPED, budget_of
from dashboard.requests.idempotency import redirect_or_refuse
from dashboard.requests.lookup import find_experiment
from experiments.access import may_cancel, may_run_more
from experiments.errors import InvalidSpec
from experiments.models import Experiment
from experiments.specification.goal import Budget
from workers import queue, rounds


@require_POST
def pause(request: HttpRequest, slug: str) -> HttpResponse:
    """Pause the rounds: running trials end, and no other starts."""
    experiment = _cancellable(request, slug)
    return redirect_or_refuse(request, lambda: _paused(experiment), experiment)


@require_POST
def resume(request: HttpRequest, slug: str) -> HttpResponse:
    """Resume paused rounds."""
    experiment = _repeatable(request, slug)

    def resumed() -> HttpResponseRedirect:
        queue.resume_rounds(experiment)
        return redirect(experiment)

    return redirect_or_refuse(request, resumed, experiment)


@require_POST
def more(request: HttpRequest, slug: str) -> HttpResponse:
    """Add a budget and run one more round."""
    experiment = _repeatable(request, slug)
    try:
        budget = budget_of(request.POST)
    except InvalidSpec:  # the dialog opens again with the typed texts
        typed = {f"{TYPED}{name}": text[:100] for name, text in request.POST.items() if name in Budget.model_fields}
        return redirect(f"{experiment.get_absolute_url()}?{urlencode(typed)}")

    def started() -> HttpResponseRedirect:
        queued = rounds.one_more_round(experiment, budget, author=request.user)
        messages.success(request, f"{plural(queued, 'trial')} queued.".capitalize(), extra_tags="ok queued")
        return redirect(experiment)

    return redirect_or_refuse(request, started, experiment)


def _cancellable(request: HttpRequest, slug: str) -> Experiment:
    experiment = find_experiment(request, slug)
    if experiment.published or not may_cancel(request.user, experiment):
        raise PermissionDenied
    return experiment


def _repeatable(request: HttpRequest, slug: str) -> Experiment:
    experiment = find_experiment(request, slug)
    if experiment.published or not may_run_more(request.user, experiment):
        raise PermissionDenied
    return experiment


def _paused(experiment: Experiment) -> HttpResponseRedirect:
    experiment.pause_rounds()
    return redirect(experiment)
