"""Network what-if: the experiments that have the data, the page of one experiment, and the named networks."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseClientRefresh

from analysis.numbers import plural
from dashboard.background.replays import no_replay
from dashboard.charts.network import Named
from dashboard.labels import workload_title
from dashboard.panels.network.form import read, rows_from, rows_of
from dashboard.panels.network.predictions import predictions_of
from dashboard.panels.network.what_if import what_if
from dashboard.panels.new.network_draft import asks_of_network
from dashboard.requests.lookup import find_experiment
from experiments.access import may_describe_clusters, may_predict, may_run_more
from experiments.models import Network
from experiments.selectors.diagnosis import answers_of
from experiments.selectors.experiments import configuration_rows, progress_of, running_trials, waiting
from experiments.selectors.network import network_studies, network_study_of
from experiments.selectors.queue_forecast import Outlook, outlooks

PER_PAGE = 20


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """The experiments over enough links, newest first, each with its answer."""
    page = Paginator(network_studies(request.user), PER_PAGE).get_page(request.GET.get("page"))
    experiments = list(page.object_list)
    answers, progress = answers_of(experiments), progress_of(experiments)
    rows = [
        {
            "experiment": each,
            "workload": workload_title(each.workload),
            "answer": answers.get(each.pk),
            "progress": progress[each.pk],
        }
        for each in experiments
    ]
    return render(request, "network/index.html", {"place": "network", "page": page, "rows": rows})


@require_GET
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """What the trials of one experiment say about other networks, or how to get those that do; while they run, how far they are."""
    experiment = find_experiment(request, slug)
    progress = progress_of([experiment])[experiment.pk]
    live: dict[str, Any] = {"experiment": experiment, "progress": progress, "left_s": None}
    if not progress.is_over:
        live["left_s"] = outlooks(waiting(), list(running_trials())).get(experiment.pk, Outlook()).left_s
    if request.htmx and request.htmx.target == "live":  # type: ignore[attr-defined]
        # With the last trial the page has an answer, charts and sliders that it had not.
        return HttpResponseClientRefresh() if progress.is_over else render(request, "network/_live.html", live)
    rows = configuration_rows(experiment, ())
    study = network_study_of(experiment)
    context = {
        "no_replay": no_replay(experiment, study),
        "may_follow": asks_of_network(experiment, rows),
        "place": "network",
        **live,
        "workload": workload_title(experiment.workload),
        "may_predict": may_predict(request.user, experiment),
        "may_check": may_run_more(request.user, experiment),
        "predictions": predictions_of(experiment, request.user),
        **what_if(study, [Named(each.name, each.link) for each in Network.objects.all()]),
    }
    return render(request, "network/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def networks(request: HttpRequest) -> HttpResponse:
    """The table; on POST keep it, or show the errors at their rows with status 422."""
    may_edit = may_describe_clusters(request.user)
    context = {"place": "network", "may_edit": may_edit}
    if request.method != "POST":
        return render(request, "network/networks.html", context | {"rows": rows_of(Network.objects.all())})
    if not may_edit:
        raise PermissionDenied
    rows = rows_from(*(request.POST.getlist(name) for name in ("name", "delay", "rate")))
    kept = read(rows)
    if kept is None:
        return render(request, "network/networks.html", context | {"rows": rows}, status=422)
    Network.replace_all(kept)
    messages.success(request, f"Saved: {plural(len(kept), 'network')}.", extra_tags="ok")
    return redirect("networks")
