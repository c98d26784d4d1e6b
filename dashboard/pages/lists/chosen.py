"""What is done with the rows that somebody ticked in a list: first what would happen to which of them, then doing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode

from analysis.numbers import plural
from dashboard.requests.idempotency import idempotent_redirect
from experiments.errors import RepositoryError

MOST: Final = 200
"""Rows that are changed while the sender waits."""
_LONGEST_QUERY: Final = 4000
_FIELDS: Final = ("add", "remove", "reason")
"""What changes may need to know besides."""


@dataclass(frozen=True, slots=True)
class Row:
    """One of the ticked: ``thing`` is its model, ``obstacle`` why nothing can be done to it, '' where nothing speaks against it."""

    token: str
    thing: Any
    name: str
    about: str
    state: str
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that can be done with several rows. ``make`` returns 0 or False where it was done already."""

    title: str
    button: str
    consequence: str
    done: str
    obstacle: Callable[[Any, Any], str]
    make: Callable[[Any, Mapping[str, Any]], object]
    undo: str = ""
    """Name of the address that takes it back."""
    settle: Callable[[Mapping[str, str]], Mapping[str, Any]] = field(default=lambda given: {})
    """Reads what the change needs to know besides. Raise ValueError with what is wrong."""
    fields: str = ""
    """Template of the fields that it needs."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """What a list holds: ``find`` returns the rows of these tokens that a person may see."""

    noun: str
    place: str
    title: str
    prefix: str
    find: Callable[[Any, Sequence[str]], Sequence[Row]]
    is_token: Callable[[str], bool]

    @property
    def nouns(self) -> str:
        return self.title.lower()

    def count(self, number: int) -> str:
        """'1 history', '2 histories'."""
        return plural(number, self.noun, self.nouns)


def answer(request: HttpRequest, ticked: Ticked, change: Change) -> HttpResponse:
    """What would happen to the chosen rows; on POST it is done to those it can be done to, and the list tells how many."""
    given = request.POST if request.method == "POST" else request.GET
    query = given.get("back", "")[:_LONGEST_QUERY]
    back = f"{reverse(ticked.place)}?{query}".rstrip("?")
    tokens, wrong = read_tokens(ticked, given.getlist("of"))
    if wrong:
        messages.error(request, wrong, extra_tags="bad")
        return redirect(back)
    rows = [_judged(row, change.obstacle(request.user, row.thing)) for row in ticked.find(request.user, tokens)]
    possible = [row for row in rows if not row.obstacle]
    why, known = "", {name: given.get(name, "") for name in _FIELDS}
    if request.method == "POST":
        try:
            settled = {**change.settle(known), "author": request.user}
        except ValueError as error:
            why = str(error)
        else:
            made = _made(request, ticked, change, possible, len(tokens), settled)
            return idempotent_redirect(request, lambda: made(back))
    context = {
        "ticked": ticked,
        "change": change,
        "rows": [*possible, *(row for row in rows if row.obstacle)],
        "possible": possible,
        "missing": len(tokens) - len(rows),
        "button": change.button.format(count=ticked.count(len(possible))),
        "back": back,
        "query": query,
        "why": why,
        "known": known,
        "place": ticked.place,
    }
    return render(request, "lists/chosen.html", context, status=422 if why else 200)


def read_tokens(ticked: Ticked, texts: Sequence[str]) -> tuple[list[str], str]:
    """Return what was ticked, each once and without its prefix, and what is wrong with that, '' where nothing is."""
    named = dict.fromkeys(
        text.strip().removeprefix(ticked.prefix) for value in texts for text in value.split(",") if text.strip()
    )
    if not named:
        return [], f"Tick the {ticked.nouns} that are meant first."
    if len(named) > MOST:
        return [], f"At most {MOST} {ticked.nouns} are changed at once; these are {len(named)}."
    for text in named:
        if not ticked.is_token(text):
            return [], f"{text[:40]!r} names no {ticked.noun}."
    return list(named), ""


def _judged(row: Row, obstacle: str) -> Row:
    return Row(row.token, row.thing, row.name, row.about, row.state, obstacle)


def _made(
    request: HttpRequest, ticked: Ticked, change: Change, rows: Sequence[Row], asked: int, settled: Mapping[str, Any]
) -> Callable[[str], HttpResponseRedirect]:
    def make(back: str) -> HttpResponseRedirect:
        done, refused = [], ""
        for row in rows:
            try:
                if change.make(row.thing, settled) not in (0, False):  # 0 where somebody was quicker
                    done.append(row)
            except RepositoryError as error:  # a quota is used up, or it is no longer as it was
                refused = str(error)
        if done:
            messages.success(request, _words(ticked, change, done, back), extra_tags="ok")
        if left := asked - len(done):
            words = f"{ticked.count(left)} left as {'it was' if left == 1 else 'they were'}."
            messages.warning(request, f"{words} {refused}".strip(), extra_tags="warn")
        return HttpResponseRedirect(back)

    return make


def _words(ticked: Ticked, change: Change, done: Sequence[Row], back: str) -> str:
    """How many, and the way back where there is one."""
    words = change.done.format(count=ticked.count(len(done)))
    if not change.undo:
        return words
    of = {"of": ",".join(row.token for row in done), "back": back.partition("?")[2]}
    return format_html('{} <a href="{}?{}">Undo</a>', words, reverse(change.undo), urlencode(of))
