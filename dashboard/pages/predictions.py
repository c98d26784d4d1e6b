"""Predictions of Network what-if: keep what the sliders show, have it checked, and the address of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from analysis.numbers import plural
from analysis.sensitivity import Link
from dashboard.background import replays
from dashboard.labels import workload_title
from dashboard.panels.network.predictions import one
from dashboard.panels.network.table import as_file
from dashboard.requests.idempotency import idempotent_redirect
from dashboard.requests.lookup import find_experiment
from experiments.access import may_predict, may_run_more
from experiments.errors import FieldError, InvalidSpec, RepositoryError
from experiments.models import Experiment, Prediction
from experiments.selectors.network import foretell
from experiments.selectors.predictions import visible_predictions
from workers import queue

_LONGEST: Final = 200
"""Of a slider's position in the address: a combination in words is the longest."""


@require_POST
def keep(request: HttpRequest, slug: str) -> HttpResponse:
    """Keep the prediction for the link of the sliders, made here from the trials, and on request queue the trials that check it.

    A replay is made by a worker, and leads to the page that tells how far it is.
    """
    experiment = find_experiment(request, slug)
    checking = "check" in request.POST
    if not may_predict(request.user, experiment) or (checking and not may_run_more(request.user, experiment)):
        raise PermissionDenied
    at = request.POST.get("at", "")
    try:
        if request.POST.get("predictor") == Prediction.Predictor.REPLAY:
            return redirect(replays.ask(request.user, experiment, link_of(request.POST), at, check=checking))
        return idempotent_redirect(request, lambda: _store(request, experiment, at, check=checking))
    except RepositoryError as error:
        messages.error(request, _sentences(error), extra_tags="bad")
        # The sliders stay where they were.
        sliders = {
            name: text[:_LONGEST] for name in ("delay", "rate", "loss", "at") if (text := request.POST.get(name))
        }
        return redirect(f"{reverse('network', args=[experiment.slug])}?{urlencode(sliders)}")


def _store(request: HttpRequest, experiment: Experiment, at: str, *, check: bool) -> HttpResponseRedirect:
    with transaction.atomic():
        prediction = foretell(experiment, link_of(request.POST), at, author=request.user).keep()
        queued = queue.check_prediction(prediction, author=request.user) if check else 0
    told = f"{plural(queued, 'trial')} queued to check it." if queued else "Kept."
    messages.success(request, told, extra_tags="ok")
    return redirect(prediction)


@require_GET
def table(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """All predictions of one experiment as CSV."""
    experiment = find_experiment(request, slug)
    return as_file(visible_predictions(request.user).filter(experiment=experiment), f"{slug}-predictions")


@require_GET
def page(request: HttpRequest, pk: int) -> HttpResponse:
    """One prediction: what it says, what it was made of, and what trials said since."""
    prediction = get_object_or_404(visible_predictions(request.user).select_related("experiment__project"), pk=pk)
    experiment = prediction.experiment
    context = {
        "place": "network",
        "experiment": experiment,
        "workload": workload_title(experiment.workload),
        "may_check": _may_check(request, experiment),
        **one(prediction),
    }
    return render(request, "network/prediction.html", context)


@require_POST
def check(request: HttpRequest, pk: int) -> HttpResponse:
    """Queue the trials that check a prediction, or more of them."""
    prediction = get_object_or_404(visible_predictions(request.user).select_related("experiment__project"), pk=pk)
    if not _may_check(request, prediction.experiment):
        raise PermissionDenied

    def checked() -> HttpResponseRedirect:
        queued = queue.check_prediction(prediction, author=request.user)
        messages.success(request, f"{plural(queued, 'trial')} queued to check it.", extra_tags="ok")
        return redirect(prediction)

    try:
        return idempotent_redirect(request, checked)
    except RepositoryError as error:
        messages.error(request, _sentences(error), extra_tags="bad")
    return redirect(prediction)


def _may_check(request: HttpRequest, experiment: Experiment) -> bool:
    return may_predict(request.user, experiment) and may_run_more(request.user, experiment)


def link_of(sent: Mapping[str, str]) -> Link:
    """The link of the sliders. Raise InvalidSpec for what is none."""
    try:
        return Link(*(float(sent.get(name, "")) for name in ("delay", "rate", "loss")))
    except ValueError:
        raise InvalidSpec([FieldError("link", "needs a delay in s, a rate in bit/s and a loss as numbers")]) from None


def _sentences(error: RepositoryError) -> str:
    """Without the field of a refused check or replay, which is the button or the choice itself."""
    if not isinstance(error, InvalidSpec):
        return str(error)
    return " ".join(each.message if each.path in {"check", "predictor"} else f"{each}." for each in error.errors)
