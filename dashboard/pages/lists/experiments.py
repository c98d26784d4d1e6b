"""The list of experiments and the search box."""

from __future__ import annotations

from typing import Final

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from dashboard.filters import ExperimentFilter
from dashboard.pages.lists.views import views_of
from dashboard.panels.experiment.list_rows import experiment_rows
from dashboard.requests.columns import Columns, sort_header
from dashboard.requests.lookup import asked, without
from experiments.access import may_submit_somewhere, visible_deleted, visible_experiments, visible_trials
from experiments.models import Experiment, SavedView

PER_PAGE = 25
NEWEST = "-created_at"
_CHANGES = (("experiments-tag", "Tag"), ("experiments-archive", "Archive"), ("experiments-delete", "Delete"))
_CHANGES_BACK = (("experiments-tag", "Tag"), ("experiments-restore", "Restore"), ("experiments-delete", "Delete"))
COLUMNS: Final = Columns(
    {
        "sweep": "Sweep",
        "elapsed": "Elapsed over sweep",
        "state": "State",
        "trials": "Trials",
        "project": "Project",
        "owner": "Owner",
        "date": "Date",
    },
    usual=("sweep", "elapsed", "state", "trials", "date"),
)


@require_GET
def experiments(request: HttpRequest) -> HttpResponse:
    """Show one page of the list; htmx requests get only the table."""
    visible = visible_experiments(request.user, Experiment.objects.select_related("cluster", "owner", "project"))
    filters = ExperimentFilter.of_page(request.GET, visible)
    page = Paginator(filters.matching, PER_PAGE).get_page(request.GET.get("page"))
    sort = asked(request, "ordering") or NEWEST
    context = {
        "place": "experiments",
        "views": views_of(request, SavedView.Page.EXPERIMENTS),
        "page": page,
        "rows": experiment_rows(list(page.object_list)),
        "filters": filters,
        "heads": {
            "name": sort_header("name", "Experiment", sort),
            "created_at": sort_header("created_at", "Date", sort, first="-"),
        },
        **COLUMNS.of_page(request),
        "query": without(request.GET, "page"),
        "resort": without(request.GET, "page", "ordering"),
        "may_change": may_submit_somewhere(request.user),
        "deleted": len(visible_deleted(request.user)),
        "changes": _CHANGES_BACK if asked(request, "archived") else _CHANGES,
    }
    template = "experiments/_table.html" if request.htmx else "experiments/page.html"  # type: ignore[attr-defined]
    return render(request, template, context)


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """Redirect to a trial by number, an experiment by name, or the filtered list."""
    text = asked(request, "q")
    number = text.lower().removeprefix("trial").strip(" #")
    if number.isdecimal() and len(number) < 18 and visible_trials(request.user).filter(pk=int(number)).exists():
        return redirect("trial", pk=int(number))
    exact = list(visible_experiments(request.user).filter(Q(slug=text) | Q(name__iexact=text))[:2]) if text else []
    if len(exact) == 1:
        return redirect(exact[0])
    return redirect(f"{reverse('experiments')}?{urlencode({'q': text})}" if text else "experiments")
