"""Network what-if: experiments over several links, predictions and named networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from analysis.numbers import plural
from analysis.sensitivity import Link
from dashboard.background import replays
from dashboard.background.replays import no_replay
from dashboard.charts.network import Named
from dashboard.labels import workload_title
from dashboard.panels.network.form import read, rows_from, rows_of
from dashboard.panels.network.predictions import one, predictions_of
from dashboard.panels.network.table import as_file
from dashboard.panels.network.what_if import what_if
from dashboard.panels.new.network_draft import can_study_network, emulates_links
from dashboard.requests.idempotency import idempotent_redirect, redirect_or_refuse
from dashboard.requests.lookup import find_experiment
from experiments.access import may_describe_clusters, may_predict, may_run_more, visible_experiments
from experiments.errors import FieldError, InvalidSpec, RepositoryError
from experiments.models import Experiment, Network, Prediction, Trial
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.experiments import configuration_rows, progress_of, running_trials, waiting
from experiments.selectors.network import make_prediction, network_studies, network_study_of
from experiments.selectors.predictions import visible_predictions
from experiments.selectors.queue_forecast import Outlook, outlooks
from workers import queue

PER_PAGE = 20
_MOST_OWN: Final = 3
_MOST_SEARCHED: Final = 20
"""Own experiments that are listed, of the newest."""


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """List the experiments over enough links, newest first, each with its answer."""
    studies = network_studies(request.user)
    page = Paginator(studies, PER_PAGE).get_page(request.GET.get("page"))
    experiments = list(page.object_list)
    answers, progress = answers_of(experiments), progress_of(experiments)
    rows = [
        {
            "experiment": experiment,
            "workload": workload_title(experiment.workload),
            "answer": answers.get(experiment.pk),
            "progress": progress[experiment.pk],
        }
        for experiment in experiments
    ]
    context = {"place": "network", "page": page, "rows": rows, "own": _to_study(request.user, studies)}
    return render(request, "network/index.html", context)


def _to_study(user: Any, studies: QuerySet[Experiment]) -> list[Experiment]:
    """Return the user's newest experiments whose programs ran on several hosts."""
    on_several_hosts = Trial.objects.counted().filter(configuration__hosts__gt=1).values("experiment")
    candidates = visible_experiments(user).filter(owner=user, pk__in=on_several_hosts)
    newest = (
        candidates.exclude(pk__in=studies.order_by().values("pk")).select_related("cluster").order_by("-created_at")
    )
    return [experiment for experiment in newest[:_MOST_SEARCHED] if emulates_links(experiment)][:_MOST_OWN]


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show predictions for other networks from the trials of one experiment."""
    experiment = find_experiment(request, slug)
    progress = progress_of([experiment])[experiment.pk]
    live: dict[str, Any] = {"experiment": experiment, "progress": progress, "left_s": None}
    if not progress.is_over:
        outlook = outlooks(waiting(), list(running_trials())).get(experiment.pk, Outlook())
        live |= {"left_s": outlook.left_s, "starts_in_s": outlook.starts_in_s}
    if request.htmx and request.htmx.target == "live":  # type: ignore[attr-defined]
        # After the last trial the page has an answer, charts and sliders.
        return HttpResponseClientRefresh() if progress.is_over else render(request, "network/_live.html", live)
    rows = configuration_rows(experiment, ())
    study = network_study_of(experiment)
    context = {
        "no_replay": no_replay(experiment, study),
        "may_follow": progress.is_over and can_study_network(experiment, rows),
        "place": "network",
        **live,
        "workload": workload_title(experiment.workload),
        "may_predict": may_predict(request.user, experiment),
        "may_check": may_run_more(request.user, experiment),
        "predictions": predictions_of(experiment, request.user),
        **what_if(study, [Named(named.name, named.link) for named in Network.objects.all()]),
    }
    return render(request, "network/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def networks(request: HttpRequest) -> HttpResponse:
    """Show the named networks; on POST save them or show errors (422)."""
    may_edit = may_describe_clusters(request.user)
    context = {"place": "network", "may_edit": may_edit}
    if request.method != "POST":
        return render(request, "network/networks.html", context | {"rows": rows_of(Network.objects.all())})
    if not may_edit:
        raise PermissionDenied
    rows = rows_from(*(request.POST.getlist(name) for name in ("name", "delay", "rate")))
    new_networks = read(rows)
    if new_networks is None:
        return render(request, "network/networks.html", context | {"rows": rows}, status=422)
    Network.replace_all(new_networks)
    messages.success(request, f"Saved: {plural(len(new_networks), 'network')}.", extra_tags="ok")
    return redirect("networks")


_LONGEST: Final = 200
"""Characters of a slider's position in the query string."""


@require_POST
def keep(request: HttpRequest, slug: str) -> HttpResponse:
    """Store the prediction for the sliders; on request queue checking trials.

    A replay redirects to its background task.
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
        # Keep the positions of the sliders.
        sliders = {
            name: text[:_LONGEST] for name in ("delay", "rate", "loss", "at") if (text := request.POST.get(name))
        }
        return redirect(f"{reverse('network', args=[experiment.slug])}?{urlencode(sliders)}")


def _store(request: HttpRequest, experiment: Experiment, at: str, *, check: bool) -> HttpResponseRedirect:
    with transaction.atomic():
        prediction = make_prediction(experiment, link_of(request.POST), at, author=request.user).keep()
        queued = queue.check_prediction(prediction, author=request.user) if check else 0
    words = f"{plural(queued, 'trial')} queued to check it." if queued else "Prediction saved."
    messages.success(request, words, extra_tags="ok")
    return redirect(prediction)


@require_GET
def table(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Export all predictions of one experiment as CSV."""
    experiment = find_experiment(request, slug)
    return as_file(visible_predictions(request.user).filter(experiment=experiment), f"{slug}-predictions")


@require_GET
def prediction(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one prediction with its evidence and the trials that check it."""
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
    """Queue more trials that check a prediction."""
    prediction = get_object_or_404(visible_predictions(request.user).select_related("experiment__project"), pk=pk)
    if not _may_check(request, prediction.experiment):
        raise PermissionDenied

    def checked() -> HttpResponseRedirect:
        queued = queue.check_prediction(prediction, author=request.user)
        messages.success(request, f"{plural(queued, 'trial')} queued to check it.", extra_tags="ok")
        return redirect(prediction)

    return redirect_or_refuse(request, checked, prediction, _sentences)


def _may_check(request: HttpRequest, experiment: Experiment) -> bool:
    return may_predict(request.user, experiment) and may_run_more(request.user, experiment)


def link_of(sent: Mapping[str, str]) -> Link:
    """Return the link of the sliders. Raise InvalidSpec."""
    try:
        return Link(*(float(sent.get(name, "")) for name in ("delay", "rate", "loss")))
    except ValueError:
        raise InvalidSpec([FieldError("link", "needs a delay in s, a rate in bit/s and a loss as numbers")]) from None


def _sentences(error: RepositoryError) -> str:
    """Return the sentences of an error, without names of buttons as fields."""
    if not isinstance(error, InvalidSpec):
        return str(error)
    return " ".join(
        field_error.message if field_error.path in {"check", "predictor"} else f"{field_error}."
        for field_error in error.errors
    )
