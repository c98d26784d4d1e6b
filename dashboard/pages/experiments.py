"""The list of experiments: filter, words, pages; and the search box, which leads here or to a trial."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from dashboard.experiment.list_rows import experiment_rows
from dashboard.lookup import asked
from experiments import workloads
from experiments.access import visible_experiments, visible_trials
from experiments.models import FAILED, UNFINISHED, Experiment, Trial
from experiments.selectors import find_experiments

PER_PAGE = 25
STATES = (
    ("", "Any state"),
    ("unfinished", "Running or waiting"),
    ("failed", "With failed trials"),
    ("over", "Finished"),
)
SOURCES = (("", "Measured and published"), ("own", "Measured here"), ("published", "Published"))


@require_GET
def experiments(request: HttpRequest) -> HttpResponse:
    """One page of the list; a refresh by htmx gets the table alone."""
    wanted = {name: asked(request, name) for name in ("q", "workload", "state", "source")}
    published = {"own": False, "published": True}.get(wanted["source"])
    matching = find_experiments(text=wanted["q"], workload=wanted["workload"], published=published)
    visible = visible_experiments(request.user, matching)
    page = Paginator(_in_state(visible, wanted["state"]), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "place": "experiments",
        "page": page,
        "rows": experiment_rows(list(page.object_list)),
        "asked": wanted,
        "query": urlencode({name: value for name, value in wanted.items() if value}),
        "workloads": workloads.registry(),
        "states": STATES,
        "sources": SOURCES,
    }
    template = "experiments/_table.html" if request.htmx else "experiments/page.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _in_state(among: QuerySet[Experiment], state: str) -> QuerySet[Experiment]:
    current = Trial.objects.current()
    unfinished = current.filter(state__in=UNFINISHED).values("experiment_id")
    if state == "unfinished":
        return among.filter(pk__in=unfinished)
    if state == "failed":
        bad = current.filter(state__in=FAILED).values("experiment_id")
        return among.filter(pk__in=bad)
    if state == "over":
        return among.exclude(pk__in=unfinished)
    return among


@require_GET
def search(request: HttpRequest) -> HttpResponse:
    """A trial by its number, an experiment by its exact name, else the list filtered by the words."""
    text = asked(request, "q")
    number = text.lower().removeprefix("trial").strip(" #")
    if number.isdecimal() and len(number) < 18 and visible_trials(request.user).filter(pk=int(number)).exists():
        return redirect("trial", pk=int(number))
    exact = list(visible_experiments(request.user).filter(Q(slug=text) | Q(name__iexact=text))[:2]) if text else []
    if len(exact) == 1:
        return redirect(exact[0])
    return redirect(f"{reverse('experiments')}?{urlencode({'q': text})}" if text else "experiments")
