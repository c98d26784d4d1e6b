"""Saved views: named query strings of lists and the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from dashboard.filters import ExperimentFilter, HistoryFilter, ListFilter, TrialPageFilter
from dashboard.filters.fields import first_error
from dashboard.requests.explore import parse_question
from dashboard.requests.lookup import without
from dashboard.requests.trials import parse_trial_question
from experiments.errors import CannotExplore
from experiments.models import SavedView

MOST: Final = 12
"""ListViews shown above a list."""
MOST_OF_USER: Final = 100
_LONGEST_NAME: Final = 80
_LONGEST_QUERY: Final = 4000
_ALL: Final[Mapping[str, str]] = {
    SavedView.Page.EXPLORE: "All configurations",
    SavedView.Page.EXPERIMENTS: "All experiments",
    SavedView.Page.TRIALS: "All trials",
    SavedView.Page.HISTORIES: "All histories",
}
_FILTERS: Final[Mapping[str, type[ListFilter]]] = {
    SavedView.Page.EXPERIMENTS: ExperimentFilter,
    SavedView.Page.TRIALS: TrialPageFilter,
    SavedView.Page.HISTORIES: HistoryFilter,
}


@dataclass(frozen=True, slots=True)
class ListView:
    """A view above its list; ``on``: shown now, ``mine``: owned by the user."""

    view: SavedView
    on: bool
    mine: bool


@dataclass(frozen=True, slots=True)
class ListViews:
    """The views above a list whose query string is ``query``."""

    page: str
    everything: str
    all_query: str
    """Query string of everything: the explorer opens on one workload."""
    query: str
    rows: Sequence[ListView]

    @property
    def here(self) -> ListView | None:
        """The user's own view that the list shows."""
        return next((row for row in self.rows if row.on and row.mine), None)


def views_of(request: HttpRequest, page: str) -> ListViews:
    """Return the user's views, then shared ones of each owner in turn."""
    turn = Window(RowNumber(), partition_by="owner", order_by=["name", "pk"])
    ordered = _visible(request.user).filter(page=page).annotate(mine=Q(owner=request.user.pk), turn=turn)
    rows = ordered.order_by("-mine", "turn", "name", "pk")[:MOST]
    position = ("after", "before") if page == SavedView.Page.TRIALS else ("page",)  # not part of a view
    query = without(request.GET, *position)
    views = [ListView(view, view.query == query, view.owner_id == request.user.pk) for view in rows]
    all_query = "workload=" if page == SavedView.Page.EXPLORE else ""
    return ListViews(page, _ALL[page], all_query, query, views)


def _visible(user: Any) -> QuerySet[SavedView]:
    return SavedView.objects.filter(Q(owner=user.pk) | Q(shared=True))


def _address(page: str, query: str) -> str:
    return f"{reverse(page)}?{query}".rstrip("?")


@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Save a query string under a name; the user's view of that name is replaced."""
    page = request.POST.get("page", SavedView.Page.EXPLORE)
    if page not in _ALL:
        raise Http404
    name, query = request.POST.get("name", "").strip(), request.POST.get("query", "")
    wrong = _wrong_query(request, page, query)
    if why := wrong or _wrong_name(name):
        messages.error(request, why, extra_tags="bad")
        return redirect(_address(page, "" if wrong else query))
    user: Any = request.user
    with transaction.atomic():
        # The lock serialises concurrent requests of the user.
        get_user_model()._default_manager.select_for_update(no_key=True).get(pk=user.pk)
        others = SavedView.objects.filter(owner=request.user.pk).exclude(page=page, name=name)
        if others.count() >= MOST_OF_USER:
            messages.error(request, f"You have {MOST_OF_USER} saved views. Delete one first.", extra_tags="bad")
            return redirect(_address(page, query))
        view, is_new = SavedView.objects.update_or_create(
            owner_id=request.user.pk,
            page=page,
            name=name,
            defaults={"query": query, "shared": bool(request.POST.get("shared"))},
        )
    words = "is saved" if is_new else "is updated"
    messages.success(request, f"The view {view.name!r} {words}.", extra_tags="ok")
    return redirect(view)


def _wrong_name(name: str) -> str:
    if not name:
        return "A view needs a name."
    return f"The name of a view has at most {_LONGEST_NAME} characters." if len(name) > _LONGEST_NAME else ""


def _wrong_query(request: HttpRequest, page: str, query: str) -> str:
    if len(query) > _LONGEST_QUERY:
        return f"A view has at most {_LONGEST_QUERY} characters of filters."
    params = QueryDict(query)
    try:
        if page == SavedView.Page.EXPLORE:
            parse_question(request.user, params)
            return ""
        if page == SavedView.Page.TRIALS:
            parse_trial_question(request.user, params)
    except CannotExplore as error:
        return str(error)
    filters = _FILTERS[page].of_page(params, SavedView.objects.none())
    if filters.is_valid():
        return ""
    name, sentence = first_error(filters.errors)
    return f"{filters.form[name].label}: {sentence}"


@require_GET
def view(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect from the permalink of a view to its list."""
    saved = get_object_or_404(_visible(request.user), pk=pk)
    return redirect(_address(saved.page, saved.query))


@require_POST
def rename(request: HttpRequest, pk: int) -> HttpResponse:
    """Rename a view of the user; its permalink stays."""
    saved = get_object_or_404(SavedView, pk=pk, owner=request.user.pk)
    name = request.POST.get("name", "").strip()
    wrong = _wrong_name(name)
    if not wrong:
        saved.name, saved.shared = name, bool(request.POST.get("shared"))
        try:
            with transaction.atomic():
                saved.save(update_fields=["name", "shared"])
        except IntegrityError:
            wrong = f"Another view of yours has the name {name!r}."
    if wrong:
        messages.error(request, wrong, extra_tags="bad")
    return redirect(saved)


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a view of the user; the message offers to restore it."""
    saved = get_object_or_404(SavedView, pk=pk, owner=request.user.pk)
    words = render_to_string("lists/_forgotten.html", {"view": saved}, request)
    saved.delete()
    messages.success(request, words, extra_tags="ok")
    return redirect(_address(saved.page, saved.query))
