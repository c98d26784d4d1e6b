"""The list of histories, and marking the last step of ticked ones as expected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from analysis.numbers import change
from analysis.statistics.changes import Change
from dashboard.filters import HistoryFilter
from dashboard.labels import parameters_sentence, telling, workload_title
from dashboard.pages.lists.chosen import NUMBER, ListChange, TickedList, TickedRow, view
from dashboard.pages.lists.views import views_of
from dashboard.panels.history import status_words
from dashboard.requests.columns import Columns, sort_header
from dashboard.requests.lookup import query_value, without
from experiments.access import may_submit, may_submit_somewhere
from experiments.metrics import described
from experiments.models import Cluster, ExpectedChange, SavedView, Trial
from experiments.selectors.history import expect
from experiments.selectors.history_list import (
    FEWEST,
    METRIC,
    ListedHistory,
    histories,
    histories_with_steps,
    named,
    with_histories,
)

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
        "standing": "Status",
        "cluster": "Cluster",
        "hosts": "Hosts",
        "trials": "Trials",
        "level": "Latest level",
        "range": "95 % of further trials",
        "step": "Last step",
        "newest": "Newest",
    },
    usual=("standing", "cluster", "trials", "level", "step", "newest"),
)


@require_GET
def index(request: HttpRequest) -> HttpResponse:
    """Show one page of the list; htmx requests get only the list."""
    filters = HistoryFilter.of_page(request.GET, with_histories(request.user))
    text = query_value(request, "page")
    number = min(int(text), LAST_PAGE) if text.isdecimal() and len(text) < 10 and int(text) else 1
    flagged = filters.only_flagged
    most = FLAGGED_PER_PAGE if flagged else PER_PAGE
    first = (number - 1) * most
    rows, more = histories(filters.matching, first=first, most=most, ordering=filters.order)
    listed = [entry for entry in histories_with_steps(request.user, rows) if entry.history.flagged or not flagged]
    values = defaultdict(set)
    for entry in listed:
        for name, value in entry.configuration.parameters.items():
            values[entry.configuration.experiment.workload, name].add(repr(value))
    context = {
        "place": "histories",
        "views": views_of(request, SavedView.Page.HISTORIES),
        "rows": [history_row(entry, values) for entry in listed],
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


def history_row(entry: ListedHistory, values: Mapping[tuple[str, str], Collection[str]]) -> dict[str, Any]:
    """Return a history in words.

    ``values`` are those of the listed histories by workload and parameter.
    """
    configuration, history = entry.configuration, entry.history
    names, workload = telling(configuration.parameters), configuration.experiment.workload
    differing = [name for name in names if name == "hosts" or len(values[workload, name]) > 1]
    last = history.changes[-1] if history.changes else None
    return {
        "kept": entry,
        "cluster": configuration.experiment.cluster,
        "workload": workload_title(workload),
        "parameters": parameters_sentence(configuration.parameters, names),
        "differing": parameters_sentence(configuration.parameters, differing),
        "status": status_words(history),
        "last": last,
        "percent": change(last.ratio) if last else "",
    }


@dataclass(frozen=True, slots=True)
class _Stepped:
    """A history with the first trial after its last step, if it has one."""

    entry: ListedHistory
    first: Trial | None

    @property
    def last(self) -> Change | None:
        return self.entry.history.changes[-1] if self.entry.history.changes else None

    @property
    def cluster(self) -> Cluster:
        return cast("Cluster", self.entry.configuration.experiment.cluster)  # a history is of a cluster

    def get_absolute_url(self) -> str:
        return reverse("history", args=[self.entry.configuration.hash, self.cluster.slug])


def _against(user: Any, history: _Stepped) -> str:
    if history.first is None:
        return "has no step"
    allowed = may_submit(user, history.first.experiment.project)
    return "" if allowed else "can be marked only by submitters and maintainers of that trial's project"


def _against_marking(user: Any, history: _Stepped) -> str:
    if history.last is not None and history.last.expected:
        return "is marked as expected already"
    return _against(user, history)


def _against_clearing(user: Any, history: _Stepped) -> str:
    if history.last is not None and not history.last.expected:
        return "is not marked as expected"
    return _against(user, history)


def _reason(texts: Mapping[str, str]) -> Mapping[str, Any]:
    if not (reason := texts["reason"].strip()):
        raise ValueError("Enter the reason why the change is expected.")
    return {"reason": reason}


EXPECTED: Final = ListChange(
    "Mark as expected",
    "Mark the last step of {count} as expected",
    "Expected steps are not flagged. The histories do not change.",
    "The last step of {count} is marked as expected.",
    _against_marking,
    lambda history, values: expect(history.first, METRIC, values["reason"], values["author"]),
    undo="histories-unexpected",
    read_fields=_reason,
    fields="lists/_reason.html",
)
UNEXPECTED: Final = ListChange(
    "Remove the mark",
    "Remove the mark of {count}",
    "Their last steps are flagged again.",
    "The last step of {count} is no longer marked as expected.",
    _against_clearing,
    lambda history, _: ExpectedChange.objects.filter(trial=history.first, metric=METRIC).delete()[0],
)


def _find(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    listed = {str(entry.configuration.pk): entry for entry in histories_with_steps(user, named(user, map(int, tokens)))}
    entries = [listed[token] for token in tokens if token in listed]
    trials = Trial.objects.select_related("experiment__project").in_bulk(
        [entry.stepped_at for entry in entries if entry.stepped_at is not None]
    )
    return [_ticked_row(_Stepped(entry, trials.get(entry.stepped_at))) for entry in entries]


def _ticked_row(history: _Stepped) -> TickedRow:
    configuration = history.entry.configuration
    title = workload_title(configuration.experiment.workload)
    name = f"{title}, {parameters_sentence(configuration.parameters, telling(configuration.parameters))}"
    step = "no step" if history.last is None else f"last step {change(history.last.ratio)} from {history.last.label}"
    state = "look" if history.entry.history.flagged else "expected"
    return TickedRow(f"c:{configuration.pk}", history, name, f"on {history.cluster.name}, {step}", state)


TICKED_HISTORIES: Final = TickedList("history", "histories", "Histories", "c:", _find, NUMBER)


expected = view(TICKED_HISTORIES, EXPECTED)
unexpected = view(TICKED_HISTORIES, UNEXPECTED)
