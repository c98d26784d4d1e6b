"""The list of trials, and changes of ticked trials: run again, cancel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from analysis import numbers
from dashboard.charts.parts import Scale
from dashboard.filters import TrialPageFilter
from dashboard.labels import parameters_sentence, trial_role
from dashboard.pages.lists.chosen import NUMBER, ListChange, TickedList, TickedRow, answer
from dashboard.pages.lists.views import views_of
from dashboard.panels.experiment.excluded_trials import swept_of
from dashboard.requests.keyset import InvalidPosition, Slice, slice_of
from dashboard.requests.lookup import query_value, without
from dashboard.requests.trials import SORTS, TrialQuestion, parse_trial_question, trial_header
from experiments.access import (
    may_cancel,
    may_run_again,
    may_submit_somewhere,
    read_roles,
    visible_experiments,
    visible_trials,
)
from experiments.errors import CannotExplore
from experiments.metrics import HEADLINE, described
from experiments.models import Configuration, Experiment, Measurement, SavedView, Trial
from workers import queue

PER_PAGE: Final = 50
COUNTED: Final = 1000
"""Counting stops at this number of matches, as it is expensive."""
_OF_PAGES: Final = ("after", "before")


@require_GET
def trials(request: HttpRequest) -> HttpResponse:
    """Show one page of the list; htmx requests get only the list."""
    try:
        context = _answer(request)
    except (CannotExplore, InvalidPosition) as error:
        none = TrialPageFilter.of_page(QueryDict(), Trial.objects.none())
        context = {"why": str(error), "filters": none, "sort": "", "columns": (), "offered": _offered(())}
    context |= {"place": "trials", "headline": HEADLINE, "views": views_of(request, SavedView.Page.TRIALS)}
    template = "lists/_trials.html" if request.htmx else "lists/trials.html"  # type: ignore[attr-defined]
    return render(request, template, context, status=400 if "why" in context and not request.htmx else 200)  # type: ignore[attr-defined]


@require_GET
def of_configuration(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect from the short URL in charts to the trials of a configuration."""
    seen = Configuration.objects.filter(experiment__in=visible_experiments(request.user))
    configuration = get_object_or_404(seen.select_related("experiment"), pk=pk)
    query = {"experiment": configuration.experiment.slug, "configuration": configuration.hash}
    # Points of the explorer link to exactly their trials.
    query |= {name: text for name in ("counted", "scope") if (text := query_value(request, name))}
    return redirect(f"{reverse('trials')}?{urlencode(query)}")


def _answer(request: HttpRequest) -> dict[str, Any]:
    question = parse_trial_question(request.user, request.GET)
    page = slice_of(
        question.listing, after=query_value(request, "after"), before=query_value(request, "before"), most=PER_PAGE
    )
    matched = question.filters.matching.order_by()[: COUNTED + 1].count()
    columns = question.columns if request.GET.getlist("columns") else ()
    return {
        "filters": question.filters,
        "page": page,
        "matched": min(matched, COUNTED),
        "beyond": matched > COUNTED,
        "sort": question.sort,
        "columns": columns,
        "offered": _offered(question.columns),
        "query": without(request.GET, *_OF_PAGES),
        "resort": without(request.GET, *_OF_PAGES, "sort"),
        "none_yet": not page.rows and not visible_trials(request.user).exists(),
        "may_change": may_submit_somewhere(request.user),
        **_table(page, question),
    }


def _offered(columns: Sequence[str]) -> dict[str, Any]:
    ticks = [(name, described(name).label, name in columns) for name in HEADLINE]
    return {"ticks": ticks, "others": ",".join(name for name in columns if name not in HEADLINE)}


def _table(page: Slice, question: TrialQuestion) -> dict[str, Any]:
    experiments = Experiment.objects.in_bulk({trial.experiment_id for trial in page.rows})
    values = _values(page.rows, question.columns)
    scales = {
        metric: Scale.of(
            [row_values[metric] for row_values in values.values() if metric in row_values], described(metric).unit
        )
        for metric in question.columns
    }
    return {
        "heads": {name: trial_header(name, question.sort) for name in SORTS},
        "metrics": [trial_header(name, question.sort, unit=scales[name].unit or "count") for name in question.columns],
        "rows": [_row(trial, experiments[trial.experiment_id], values[trial.pk], scales) for trial in page.rows],
        "has_several_clusters": len({trial.cluster_id for trial in page.rows}) > 1,
    }


def _values(rows: Sequence[Trial], metrics: Sequence[str]) -> Mapping[int, dict[str, float]]:
    measurements = Measurement.objects.filter(
        trial__in=[t.pk for t in rows], metric__in=metrics, scope=Measurement.Scope.ALL
    )
    values: dict[int, dict[str, float]] = defaultdict(dict)
    for trial, metric, value in measurements.values_list("trial_id", "metric", "value"):
        values[trial][metric] = value
    return values


def _row(
    trial: Trial, experiment: Experiment, values: Mapping[str, float], scales: Mapping[str, Scale]
) -> dict[str, Any]:
    point = parameters_sentence(trial.configuration.parameters, swept_of(experiment))
    return {
        "trial": trial,
        "experiment": experiment,
        "name": f"{point}, {trial_role(trial.kind, trial.repetition, trial.attempt)}",
        "is_set_aside": trial.superseded or not trial.configuration.in_design,
        "cells": [
            (
                f"{described(metric).label}, {scale.unit}" if scale.unit else described(metric).label,
                numbers.significant(scale(values[metric])) if metric in values else numbers.NOTHING,
            )
            for metric, scale in scales.items()
        ],
    }


def _against_rerun(user: Any, trial: Trial) -> str:
    experiment = trial.experiment
    if experiment.published or experiment.is_imported:
        return "was not measured here"
    if not trial.is_over:
        return "has not ended"
    if trial.superseded:
        return "was replaced by a newer attempt"
    allowed = may_run_again(user, trial)
    return "" if allowed else "can be run again only by maintainers and the owner of its experiment"


def _against_cancelling(user: Any, trial: Trial) -> str:
    if trial.is_over:
        return "has ended"
    if trial.cancel_requested_at is not None:
        return "is being cancelled"
    if trial.experiment.published or not may_cancel(user, trial.experiment):
        return "can be cancelled only by maintainers and the owner of its experiment"
    return ""


CHANGES: Final = {
    "again": ListChange(
        "Run again",
        "Run {count} again",
        "Each is queued as a new attempt. The old attempt is superseded and leaves the statistics.",
        "{count} queued again.",
        _against_rerun,
        lambda trial, _: queue.run_again(trial),
    ),
    "cancel": ListChange(
        "Cancel",
        "Cancel {count}",
        "They give no result; the other trials of their experiments run as planned.",
        "{count} cancelled.",
        _against_cancelling,
        lambda trial, _: trial.cancel(),
    ),
}


def _find(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    related = ("experiment__project", "configuration")
    trials = visible_trials(user, Trial.objects.select_related(*related)).filter(pk__in=tokens)
    by_number = {str(trial.pk): trial for trial in trials}
    read_roles(user, (trial.experiment.project for trial in by_number.values()))
    return [_ticked_row(by_number[token]) for token in tokens if token in by_number]


def _ticked_row(trial: Trial) -> TickedRow:
    point = parameters_sentence(trial.configuration.parameters, swept_of(trial.experiment))
    name = f"{point}, {trial_role(trial.kind, trial.repetition, trial.attempt)}"
    return TickedRow(f"t:{trial.pk}", trial, name, f"#{trial.pk}, {trial.experiment.name}", trial.state)


TICKED_TRIALS: Final = TickedList("trial", "trials", "Trials", "t:", _find, NUMBER)


@require_http_methods(["GET", "HEAD", "POST"])
def chosen(request: HttpRequest, change: str) -> HttpResponse:
    """Run the ticked trials again, or cancel them."""
    if change not in CHANGES:
        raise Http404
    return answer(request, TICKED_TRIALS, CHANGES[change])
