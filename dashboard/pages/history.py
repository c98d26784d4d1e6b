"""History of a configuration: steps, simultaneous changes, and expected ones."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from analysis.numbers import percent_change
from dashboard.charts.history import Level, over_time
from dashboard.charts.panel import Chart
from dashboard.labels import parameter_label, value_words, workload_title
from dashboard.requests.lookup import query_value
from experiments.access import may_submit
from experiments.metrics import described, in_order, is_metric
from experiments.models import Configuration, ExpectedChange
from experiments.selectors.history import ConfigurationHistory, expect, history_of, trials_of


@require_GET
def history(request: HttpRequest, configuration: str, cluster: str) -> HttpResponse:
    """Show the history of a configuration (hash) on a cluster (slug)."""
    metric = query_value(request, "metric") or "elapsed_s"
    if not is_metric(metric):
        raise Http404
    try:
        record = history_of(request.user, configuration, cluster, metric)
    except Configuration.DoesNotExist:
        raise Http404 from None
    description = described(metric)
    workload = record.configuration.experiment.workload
    context = {
        "place": "histories",
        "workload": workload_title(workload),
        "found": record,
        "metric": description,
        "metrics": [(name, described(name).label) for name in in_order({*record.metrics, metric})],
        "parameters": [
            (parameter_label(name, workload), value_words(name, value, workload))
            for name, value in record.configuration.parameters.items()
        ],
        "chart": _chart(record, description) if record.entries else None,
        "changes": _changes(record),
    }
    return render(request, "history/page.html", context)


def _chart(record: ConfigurationHistory, description: Any) -> Chart:
    changes, baseline = record.history.changes, record.history.baseline
    stops = [*(change.index for change in changes), len(record.entries)]
    medians = [*(change.before.median for change in changes), baseline.summary.median if baseline else 0.0]
    levels = [Level(first, stop - 1, median) for first, stop, median in zip([0, *stops], stops, medians, strict=False)]
    limits = None
    if baseline and baseline.low is not None and baseline.high is not None:
        limits = (baseline.low, baseline.high)
    figure = over_time(
        [entry.value for entry in record.entries],
        [f"trial {entry.trial}, {entry.ended_at:%Y-%m-%d %H:%M}" for entry in record.entries],
        levels,
        quantity=description.label,
        unit=description.unit,
        limits=limits,
        trials=[entry.trial for entry in record.entries],
    )
    title, subtitle = f"{description.label}, trial by trial", "band: 95 % of further trials of the baseline"
    return Chart("history", title, figure, subtitle=subtitle)


def _changes(record: ConfigurationHistory) -> list[dict[str, Any]]:
    rows = []
    for change in record.history.changes:
        entry, ends = record.entries[change.index], change.ratio_interval
        interval = f"{percent_change(ends.low)} to {percent_change(ends.high)}" if ends else ""
        row = {"change": change, "entry": entry, "percent": percent_change(change.ratio), "interval": interval}
        rows.append({**row, "mark": record.expected.get(entry.trial)})
    return rows


@require_POST
def mark(request: HttpRequest, configuration: str, cluster: str) -> HttpResponse:
    """Mark a step as expected with a reason, or remove the mark."""
    metric, trial = request.POST.get("metric", ""), request.POST.get("trial", "")
    reason = request.POST.get("reason", "").strip()
    if not is_metric(metric) or not trial.isdecimal() or len(trial) > 18:
        raise Http404
    first = get_object_or_404(
        trials_of(request.user, configuration, cluster).select_related("experiment__project"), pk=int(trial)
    )
    if not may_submit(request.user, first.experiment.project):
        raise PermissionDenied
    if "remove" in request.POST:
        ExpectedChange.objects.filter(trial=first, metric=metric).delete()
    elif reason:
        expect(first, metric, reason, request.user)
    else:
        messages.error(request, "Enter the reason why the change is expected.", extra_tags="bad")
    return redirect(f"{reverse('history', args=[configuration, cluster])}?{urlencode({'metric': metric})}")
