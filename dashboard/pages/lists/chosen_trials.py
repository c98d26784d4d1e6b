"""Changes of ticked trials: run again, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from dashboard.labels import parameters_sentence, trial_role
from dashboard.pages.lists.chosen import NUMBER, ListChange, TickedList, TickedRow, answer
from dashboard.panels.experiment.excluded_trials import swept_of
from experiments.access import may_cancel, may_run_more, visible_trials
from experiments.models import Trial
from workers import queue


def _against_rerun(user: Any, trial: Trial) -> str:
    experiment = trial.experiment
    if experiment.published or experiment.is_imported:
        return "was not measured here"
    if not trial.is_over:
        return "has not ended"
    if trial.superseded:
        return "was replaced by a newer attempt"
    allowed = may_run_more(user, experiment)
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
    return [_row(by_number[token]) for token in tokens if token in by_number]


def _row(trial: Trial) -> TickedRow:
    point = parameters_sentence(trial.configuration.parameters, swept_of(trial.experiment))
    name = f"{point}, {trial_role(trial.kind, trial.repetition)}"
    return TickedRow(f"t:{trial.pk}", trial, name, f"#{trial.pk}, {trial.experiment.name}", trial.state)


TRIALS: Final = TickedList("trial", "trials", "Trials", "t:", _find, NUMBER)


@require_http_methods(["GET", "HEAD", "POST"])
def chosen(request: HttpRequest, change: str) -> HttpResponse:
    """Run the ticked trials again, or cancel them."""
    if change not in CHANGES:
        raise Http404
    return answer(request, TRIALS, CHANGES[change])
