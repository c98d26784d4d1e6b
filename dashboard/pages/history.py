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

from analysis.catalogue import METRICS
from analysis.numbers import changes
from dashboard.labels import parameter_label, telling, value_words, workload_title
from dashboard.panels.history import history_chart, load_words, status_words
from dashboard.requests.lookup import query_value
from experiments import workloads
from experiments.access import may_submit
from experiments.metrics import described, in_order, is_metric
from experiments.models import Configuration, ExpectedChange
from experiments.selectors.history import ConfigurationHistory, expect, history_of, trials_of
from experiments.specification.parameters import CLUSTER_PARAMETERS, LINK_PARAMETERS


@require_GET
def history(request: HttpRequest, configuration: str, cluster: str) -> HttpResponse:
    """Show the history of a configuration (hash) on a cluster (slug)."""
    metric = query_value(request, "metric") or "elapsed_s"
    if not is_metric(metric):
        return _metric_by_label(request, configuration, cluster, metric)
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
        "load": load_words(record),
        "metric": description,
        "status": status_words(record.history),
        "metrics": [described(name).label for name in in_order({*record.metrics, metric}) if is_metric(name)],
        "settings": _settings(record.configuration),
        "chart": history_chart(record) if record.entries else None,
        "pins": f"history {urlencode({'configuration': configuration, 'cluster': cluster, 'metric': metric})}",
        "changes": _changes(record),
    }
    return render(request, "history/page.html", context)


def _metric_by_label(request: HttpRequest, configuration: str, cluster: str, label: str) -> HttpResponse:
    """Redirect to the metric with a label, or to the default one with an error."""
    try:
        names = history_of(request.user, configuration, cluster, "elapsed_s").metrics
    except Configuration.DoesNotExist:
        raise Http404 from None
    address = reverse("history", args=[configuration, cluster])
    for name in in_order({*METRICS, *names}):
        if is_metric(name) and described(name).label.casefold() == label.casefold():
            return redirect(f"{address}?{urlencode({'metric': name})}")
    recorded = any(label in (name, described(name).label) for name in names)
    why = f"“{label[:80]}” is no longer a metric of any program" if recorded else f"No metric is called “{label[:80]}”"
    messages.error(request, f"{why}. Choose a metric of the list.", extra_tags="bad")
    return redirect(address)


def _settings(configuration: Configuration) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings by group: those that the experiment sweeps, then the others.

    In a group those of the link that differ from their defaults come first, then the order of the declaration.
    """
    parameters, experiment = configuration.parameters, configuration.experiment
    swept, workload = experiment.specification.get("sweep") or {}, workloads.find(experiment.workload)
    of_program = workload.parameters_type.model_fields if workload else {}
    changed = [name for name in telling(parameters) if name in LINK_PARAMETERS]
    declared = [*CLUSTER_PARAMETERS, *of_program, *changed, *LINK_PARAMETERS, *parameters]
    groups: dict[str, list[str]] = {"Swept": [], "Size": [], "Program": [], "Link": []}
    for name in (name for name in dict.fromkeys(declared) if name in parameters):
        group = "Link" if name in LINK_PARAMETERS else "Size" if name in CLUSTER_PARAMETERS else "Program"
        groups["Swept" if name in swept else group].append(name)
    return [
        (
            title,
            [
                (parameter_label(name, experiment.workload), value_words(name, parameters[name], experiment.workload))
                for name in names
            ],
        )
        for title, names in groups.items()
        if names
    ]


def _changes(record: ConfigurationHistory) -> list[dict[str, Any]]:
    rows = []
    for change in record.history.changes:
        entry, ends = record.entries[change.index], change.ratio_interval
        percent, *bounds = changes(change.ratio, *((ends.low, ends.high) if ends else ()))
        row = {"change": change, "entry": entry, "percent": percent, "interval": " to ".join(bounds)}
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
