"""The hosts of one trial over time, fetched after its page: the samples of a long run take longer to read than a page may."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.panels.trial.host_charts import host_views
from dashboard.panels.trial.host_samples import NoSamples, samples_of
from dashboard.requests.lookup import find_trial
from experiments.models import Trial


@require_GET
def hosts(request: HttpRequest, pk: int) -> HttpResponse:
    """The panel of a trial's hosts, or the reason why there is nothing to draw."""
    return render(request, "trial/_hosts.html", _panel(find_trial(request, pk)))


def _panel(trial: Trial) -> dict[str, Any]:
    try:
        samples = samples_of(trial)
    except NoSamples as none:
        return {"why": str(none)}
    return {"views": host_views(samples, trial), "samples": samples, "hosts": len(samples.hosts) + samples.omitted}
