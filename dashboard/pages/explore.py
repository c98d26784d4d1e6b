"""Explorer: filters, the pivot as charts, its table and exports."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from analysis import numbers
from dashboard.background.exports import FORMATS, exported
from dashboard.charts.parts import Scale
from dashboard.labels import parameter_label, value_words, workload_title
from dashboard.pages.lists.views import views_of
from dashboard.requests.explore import (
    ORDERS,
    SCALES,
    STATISTICS,
    Presentation,
    Question,
    coloured,
    label,
    options,
    panels,
    panels_left_out,
    parse_question,
    table_of,
)
from dashboard.requests.lookup import without
from experiments.access import visible_experiments
from experiments.errors import CannotExplore
from experiments.metrics import described
from experiments.models import BackgroundTask, Measurement, SavedView, Trial
from experiments.models.states import measured
from experiments.selectors.explorer import ConfigurationCounts, TableRow, flagged, pivot, swept, table_rows

PER_PAGE = 10
EXPORT_FORMS = (
    ("csv", "CSV"),
    ("json", "JSON"),
    ("jsonl", "JSON Lines"),
    ("parquet", "Parquet"),
    ("csvm", "Column definitions"),
)


@require_GET
def explore(request: HttpRequest) -> HttpResponse:
    """Show the pivot, of the workload that was measured last by default.

    htmx requests get only the answer.
    """
    if not request.GET and (workload := _measured_last(request.user)):
        return redirect(f"{reverse('explore')}?{urlencode({'workload': workload})}")
    try:
        context = _answer(request)
    except CannotExplore as error:
        context = {"why": str(error), "query_string": ""}
    context |= {"place": "explore", "given": request.GET, "views": views_of(request, SavedView.Page.EXPLORE)}
    if request.htmx and request.htmx.target == "answer":  # type: ignore[attr-defined]
        return render(request, "explore/_answer.html", context)
    if "why" in context:
        return render(request, "explore/wrong.html", context, status=400)
    return render(request, "explore/page.html", context)


def _answer(request: HttpRequest) -> dict[str, Any]:
    question = parse_question(request.user, request.GET)
    matched = question.counts()
    if "colour" not in request.GET:
        question = coloured(question, matched)
    query, look = question.query, question.look
    pivoted = pivot(question.configurations, query)
    paginator = Paginator(table_of(question), PER_PAGE)
    paginator.count = matched.total  # counted with the filters
    page = paginator.get_page(request.GET.get("page"))
    configurations = list(page.object_list)
    return {
        "query": query,
        "filters": question.filters.form,
        "look": look,
        "matched": matched,
        "trials": sum(cell.trials for cell in pivoted.cells),
        "cut": pivoted.cut,
        "flagged": flagged(question.configurations, query),
        "scatter": pivoted.is_scatter,
        "charts": panels(pivoted, question),
        "across": {"y": described(query.y).label, "x": label(query.x)},
        "panels_left_out": panels_left_out(pivoted),
        "page": page,
        "table": _table(table_rows(configurations, look.columns, query.scope), swept(configurations), look),
        "query_string": without(request.GET, "page"),
        "pins": f"explore colour={query.colour}&{without(request.GET, 'page', 'colour', 'order')}",
        "exported": [
            (name, value) for name, values in QueryDict(without(request.GET, "page")).lists() for value in values
        ],
        "export_forms": EXPORT_FORMS,
        "choices": _choices(matched, question),
    }


def _measured_last(user: Any) -> str | None:
    experiments = visible_experiments(user, by_keys=True).filter(published=False)
    ended = Trial.objects.filter(measured(), experiment__in=experiments, ended_at__isnull=False)
    return ended.order_by("-ended_at").values_list("experiment__workload", flat=True).first()


def _choices(matched: ConfigurationCounts, question: Question) -> dict[str, Any]:
    values = question.filters.form.cleaned_data
    folded = [value for name, value in values.items() if value and name != "workload"]
    return {
        **options(matched, question.query),
        "workloads": _counted(
            [(slug, workload_title(slug), n) for slug, n in matched.any_workload], values["workload"]
        ),
        "of": ", ".join(map(workload_title, values["workload"])) or "All workloads",
        "folded": len(folded),
        "experiments": values["experiment"],
        "clusters": _counted(matched.clusters, values["cluster"]),
        "statistics": STATISTICS,
        "scales": SCALES,
        "scopes": Measurement.Scope.choices,
        "orders": [(name, title) for name, (title, _) in ORDERS.items()],
    }


def _counted(counted: list[tuple[str, str, int]], chosen: list[str]) -> list[tuple[str, str, int, bool]]:
    there = {value for value, _, _ in counted}
    missing = [(value, value, 0) for value in chosen if value not in there]
    return [(value, name, count, value in chosen) for value, name, count in [*counted, *missing]]


def _table(rows: list[TableRow], parameters: list[str], look: Presentation) -> dict[str, Any]:
    heads, scales = [], []
    for metric in look.columns:
        description = described(metric)
        scale = Scale.of([row.values[metric][1] for row in rows if metric in row.values], description.unit)
        heads.append((metric, description.label, scale.unit))
        scales.append(scale)
    return {
        "parameters": [parameter_label(name) for name in parameters],
        "metrics": heads,
        "rows": [_row(row, parameters, look, scales) for row in rows],
    }


def _row(row: TableRow, parameters: list[str], look: Presentation, scales: list[Scale]) -> dict[str, Any]:
    configuration = row.configuration
    values_by_name = {"hosts": configuration.hosts, **configuration.parameters}
    most, cells = max((values[0] for values in row.values.values()), default=0), []
    for metric, scale in zip(look.columns, scales, strict=True):
        values = row.values.get(metric)
        if values is None:
            cells.append((numbers.NOTHING, "", 0))
            continue
        n, middle, low, high = values
        ends = numbers.between(scale(low), scale(high), digits=4) if n > 1 else ""
        cells.append((numbers.significant(scale(middle)), ends, n if n < most else 0))
    return {
        "configuration": configuration,
        "experiment": configuration.experiment,
        "workload": workload_title(configuration.experiment.workload),
        "parameters": [
            value_words(name, values_by_name[name]) if name in values_by_name else numbers.NOTHING
            for name in parameters
        ],
        "cells": cells,
        "n": most,
    }


@require_GET
def export(request: HttpRequest, form: str) -> HttpResponse | StreamingHttpResponse:
    """Export the whole table; a large one redirects to its background task."""
    if form not in FORMATS:
        raise Http404
    try:
        made = exported(request.user, request.GET, form, request.build_absolute_uri("/").rstrip("/"))
    except CannotExplore as error:
        return render(request, "explore/wrong.html", {"place": "explore", "why": str(error)}, status=400)
    return redirect(made) if isinstance(made, BackgroundTask) else made
