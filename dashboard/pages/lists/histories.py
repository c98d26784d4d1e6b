"""The list of histories: configurations with enough trials, and flagged ones."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analysis.numbers import percent_change
from dashboard.filters import HistoryFilter
from dashboard.labels import parameters_sentence, telling, workload_title
from dashboard.pages.lists.views import views_of
from dashboard.requests.columns import Columns, sort_header
from dashboard.requests.lookup import asked, without
from experiments.access import may_submit_somewhere
from experiments.metrics import described
from experiments.models import SavedView
from experiments.selectors.history_list import FEWEST, METRIC, Kept, histories, standing, with_histories

PER_PAGE = 10
FLAGGED_PER_PAGE = 50
"""Histories that a page of flagged ones analyses: flags need all trials, so each page costs the
same, however few it shows."""
LAST_PAGE = 100_000
_HEADS = (
    ("workload", "Configuration", ""),
    ("hosts", "Hosts", ""),
    ("trials", "Trials", "-"),
    ("newest", "Newest", "-"),
)
"""Sortable columns with the direction of the first click."""
COLUMNS: Final = Columns(
    {
        "standing": "Standing",
        "cluster": "Cluster",
        "hosts": "Hosts",
        "trials": "Trials",
        "level": "Latest level",
        "range": "95 % of further trials",
        "step": "Last step",
        "newest": "Newest",
    },
    usual=("standing", "cluster", "hosts", "trials", "level", "step", "newest"),
)


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """Show one page of the list; htmx requests get only the list."""
    filters = HistoryFilter.of_page(request.GET, with_histories(request.user))
    text = asked(request, "page")
    number = min(int(text), LAST_PAGE) if text.isdecimal() and len(text) < 10 and int(text) else 1
    flagged = filters.only_flagged
    most = FLAGGED_PER_PAGE if flagged else PER_PAGE
    first = (number - 1) * most
    rows, more = histories(filters.matching, first=first, most=most, ordering=filters.order)
    context = {
        "place": "explore",
        "views": views_of(request, SavedView.Page.HISTORIES),
        "rows": [history_row(entry) for entry in standing(request.user, rows) if entry.history.flagged or not flagged],
        "judged": (first + 1, first + len(rows)) if flagged and rows else None,
        "earlier": number - 1,
        "later": number + 1 if more else 0,
        "filters": filters,
        "heads": {name: sort_header(name, title, filters.order, first=first) for name, title, first in _HEADS},
        **COLUMNS.of_page(request),
        "query": without(request.GET, "page"),
        "resort": without(request.GET, "page", "ordering"),
        "may_change": may_submit_somewhere(request.user),
        "metric": described(METRIC),
        "fewest": FEWEST,
    }
    template = "history/_list.html" if request.htmx else "history/index.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def history_row(entry: Kept) -> dict[str, Any]:
    """Return a history in words."""
    configuration, history = entry.configuration, entry.history
    last = history.changes[-1] if history.changes else None
    return {
        "kept": entry,
        "cluster": configuration.experiment.cluster,
        "workload": workload_title(configuration.experiment.workload),
        "parameters": parameters_sentence(configuration.parameters, telling(configuration.parameters)),
        "last": last,
        "percent": percent_change(last.ratio) if last else "",
    }
