"""The result parts of an experiment, fetched after its page: their models take longer than a page may."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from dashboard.panels.parts import Measured, parts_of
from experiments.access import may_describe_clusters, visible_experiments
from experiments.selectors.diagnosis import answers_of


@require_GET
def parts(request: HttpRequest, slug: str) -> HttpResponse:
    """Every part that the data fit; the address holds the reader's own targets."""
    experiment = get_object_or_404(visible_experiments(request.user).select_related("cluster"), slug=slug)
    answer = answers_of([experiment]).get(experiment.pk)
    question = answer.question if answer is not None else ""
    shown = parts_of(Measured.of(experiment), request.GET.dict(), question)
    context = {"experiment": experiment, "parts": shown, "may_describe": may_describe_clusters(request.user)}
    return render(request, "parts/_parts.html", context)
