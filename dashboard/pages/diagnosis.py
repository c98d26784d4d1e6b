"""The diagnosis of an experiment as a fragment of its page: made when it is asked for, with the models of the charts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.pages.experiment import results_of
from dashboard.requests.lookup import find_experiment
from experiments.access import may_run_more
from experiments.selectors.diagnosis import diagnosis_of


@require_GET
def diagnosis(request: HttpRequest, slug: str) -> HttpResponse:
    """The diagnosis of the results as they are; charts come along with their models, out of band."""
    experiment = find_experiment(request, slug)
    diagnosis_of(experiment)
    context = {"experiment": experiment, **results_of(experiment), "out_of_band": True}
    context["may_change"] = not experiment.published and may_run_more(request.user, experiment)
    return render(request, "experiment/_diagnosis.html", context)
