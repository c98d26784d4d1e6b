"""What is done with the trials that somebody ticked in the list: first what would happen to which of them, then doing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from analysis.numbers import plural
from dashboard.experiment.not_counted import swept_of
from dashboard.labels import parameters_sentence, trial_role
from dashboard.requests.idempotency import led_once
from experiments.access import may_cancel, may_run_more, visible_trials
from experiments.errors import RepositoryError
from experiments.models import Trial
from workers import queue

MOST: Final = 200
"""Trials that are changed while the sender waits."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that can be done with several trials. ``obstacle`` says why not with one of them, '' where nothing speaks against it."""

    title: str
    button: str
    consequence: str
    done: str
    obstacle: Callable[[Any, Trial], str]
    make: Callable[[Trial], object]


def _against_rerun(user: Any, trial: Trial) -> str:
    experiment = trial.experiment
    if experiment.published or experiment.is_imported:
        return "was not measured here"
    if not trial.is_over:
        return "is not over"
    if trial.superseded:
        return "was replaced by a newer attempt"
    return (
        ""
        if may_run_more(user, experiment)
        else "may be run again by maintainers and the owner of its experiment alone"
    )


def _against_cancelling(user: Any, trial: Trial) -> str:
    if trial.is_over:
        return "has ended"
    if trial.cancel_requested_at is not None:
        return "is being cancelled"
    if trial.experiment.published or not may_cancel(user, trial.experiment):
        return "may be cancelled by maintainers and the owner of its experiment alone"
    return ""


CHANGES: Final = {
    "again": Change(
        "Run again",
        "Run {count} again",
        "Each is queued as a new attempt. It replaces the old one, which stays as a superseded attempt and is no longer counted.",
        "{count} queued again.",
        _against_rerun,
        queue.run_again,
    ),
    "cancel": Change(
        "Cancel",
        "Cancel {count}",
        "They give no result; the other trials of their experiments run as planned.",
        "{count} cancelled.",
        _against_cancelling,
        Trial.cancel,
    ),
}


@require_http_methods(["GET", "HEAD", "POST"])
def chosen(request: HttpRequest, change: str) -> HttpResponse:
    """What would happen to the chosen trials; on POST it is done to those it can be done to, and the list tells how many."""
    if change not in CHANGES:
        raise Http404
    asked = CHANGES[change]
    given = request.POST if request.method == "POST" else request.GET
    back = f"{reverse('trials')}?{given.get('back', '')[:4000]}".rstrip("?")
    numbers, wrong = read_numbers(given.getlist("of"))
    if wrong:
        messages.error(request, wrong, extra_tags="bad")
        return redirect(back)
    trials = _found(request.user, numbers)
    rows = [(trial, _name(trial), asked.obstacle(request.user, trial)) for trial in trials]
    possible = [trial for trial, _, obstacle in rows if not obstacle]
    if request.method == "POST":
        return led_once(request, lambda: _made(request, asked, possible, len(numbers), back))
    context = {
        "place": "trials",
        "change": asked,
        "possible": [row for row in rows if not row[2]],
        "impossible": [row for row in rows if row[2]],
        "missing": len(numbers) - len(rows),
        "button": asked.button.format(count=plural(len(possible), "trial")),
        "back": back,
        "back_query": given.get("back", "")[:4000],
    }
    return render(request, "lists/chosen_trials.html", context)


def read_numbers(texts: Sequence[str]) -> tuple[list[int], str]:
    """Return the trials that were ticked (``t:NUMBER``), each once, and what is wrong with that, '' where nothing is."""
    named = dict.fromkeys(
        text.strip().removeprefix("t:") for value in texts for text in value.split(",") if text.strip()
    )
    if not named:
        return [], "Tick the trials that are meant first."
    if len(named) > MOST:
        return [], f"At most {MOST} trials are changed at once; these are {len(named)}."
    for text in named:
        if not (text.isascii() and text.isdecimal() and len(text) <= 18):
            return [], f"{text[:40]!r} is not the number of a trial."
    return [int(text) for text in named], ""


def _found(user: Any, numbers: Sequence[int]) -> list[Trial]:
    related = ("experiment__project", "configuration")
    trials = visible_trials(user, Trial.objects.select_related(*related)).filter(pk__in=numbers)
    by_number = {trial.pk: trial for trial in trials}
    return [by_number[number] for number in numbers if number in by_number]


def _name(trial: Trial) -> str:
    point = parameters_sentence(trial.configuration.parameters, swept_of(trial.experiment))
    return f"{point}, {trial_role(trial.kind, trial.repetition)}"


def _made(request: HttpRequest, change: Change, trials: Sequence[Trial], asked: int, back: str) -> HttpResponseRedirect:
    done, refused = 0, ""
    for trial in trials:
        try:
            done += change.make(trial) != 0  # how many were cancelled; nobody was quicker
        except RepositoryError as error:  # a quota is used up, or somebody was quicker
            refused = str(error)
    if done:
        messages.success(request, change.done.format(count=plural(done, "trial")), extra_tags="ok")
    if done < asked:
        words = f"{plural(asked - done, 'trial')} left as {'it was' if asked - done == 1 else 'they were'}."
        messages.warning(request, f"{words} {refused}".strip(), extra_tags="warn")
    return HttpResponseRedirect(back)
