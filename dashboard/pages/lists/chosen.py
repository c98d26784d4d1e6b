"""Changes of rows ticked in a list, after a confirmation page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from analysis.numbers import plural
from dashboard.requests.idempotency import idempotent_redirect
from experiments.errors import RepositoryError

MOST: Final = 200
"""Rows that are changed within one request."""
SLUG: Final = re.compile(r"[-a-zA-Z0-9_]{1,100}", re.ASCII)
NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_LONGEST_QUERY: Final = 4000
_FIELDS: Final = ("add", "remove", "reason")
"""Form fields of changes."""


@dataclass(frozen=True, slots=True)
class TickedRow:
    """A ticked row with its model and the ``obstacle`` to a change."""

    token: str
    thing: Any
    name: str
    about: str
    state: str
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class ListChange:
    """A change of several rows. ``make`` returns 0 or False if it was made already."""

    title: str
    button: str
    consequence: str | Callable[[], str]
    done: str
    obstacle: Callable[[Any, Any], str]
    make: Callable[[Any, Mapping[str, Any]], object]
    undo: str = ""
    """URL name of the inverse change."""
    read_fields: Callable[[Mapping[str, str]], Mapping[str, Any]] = field(default=lambda texts: {})
    """Reads the form fields of the change. Raise ValueError with what is wrong."""
    fields: str = ""
    """Template of the form fields."""


@dataclass(frozen=True, slots=True)
class TickedList:
    """A list with ticks; ``find`` returns the visible rows of tokens."""

    noun: str
    url_name: str
    title: str
    prefix: str
    find: Callable[[Any, Sequence[str]], Sequence[TickedRow]]
    token: re.Pattern[str]

    @property
    def nouns(self) -> str:
        return self.title.lower()

    def count(self, number: int) -> str:
        """Return '1 history' or '2 histories'."""
        return plural(number, self.noun, self.nouns)


def view(ticked: TickedList, change: ListChange) -> Callable[[HttpRequest], HttpResponse]:
    """Return the view that shows and makes a change of ticked rows."""

    @require_http_methods(["GET", "HEAD", "POST"])
    def page(request: HttpRequest) -> HttpResponse:
        return answer(request, ticked, change)

    return page


def answer(request: HttpRequest, ticked: TickedList, change: ListChange) -> HttpResponse:
    """Show the effects on the ticked rows; on POST change them."""
    sent = request.POST if request.method == "POST" else request.GET
    query = sent.get("back", "")[:_LONGEST_QUERY]
    back = f"{reverse(ticked.url_name)}?{query}".rstrip("?")
    tokens, wrong = read_tokens(ticked, sent.getlist("of"))
    if wrong:
        messages.error(request, wrong, extra_tags="bad")
        return redirect(back)
    rows = [
        replace(row, obstacle=change.obstacle(request.user, row.thing)) for row in ticked.find(request.user, tokens)
    ]
    possible = [row for row in rows if not row.obstacle]
    why, texts = "", {name: sent.get(name, "") for name in _FIELDS}
    if request.method == "POST":
        try:
            values = {**change.read_fields(texts), "author": request.user}
        except ValueError as error:
            why = str(error)
        else:

            def make() -> HttpResponseRedirect:
                _make(request, ticked, change, possible, values, query, unchanged=len(tokens))
                return HttpResponseRedirect(back)

            return idempotent_redirect(request, make)
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
        "known": texts,
        "place": ticked.url_name,
    }
    return render(request, "lists/chosen.html", context, status=422 if why else 200)


def read_tokens(ticked: TickedList, texts: Sequence[str]) -> tuple[list[str], str]:
    """Return the ticked tokens, each once without prefix, and an error."""
    tokens = dict.fromkeys(
        text.strip().removeprefix(ticked.prefix) for value in texts for text in value.split(",") if text.strip()
    )
    if not tokens:
        return [], f"Tick the {ticked.nouns} first."
    if len(tokens) > MOST:
        return [], f"At most {MOST} {ticked.nouns} are changed at once; these are {len(tokens)}."
    for text in tokens:
        if not ticked.token.fullmatch(text):
            return [], f"{text[:40]!r} names no {ticked.noun}."
    return list(tokens), ""


def _make(
    request: HttpRequest,
    ticked: TickedList,
    change: ListChange,
    rows: Sequence[TickedRow],
    values: Mapping[str, Any],
    query: str,
    *,
    unchanged: int,
) -> None:
    changed, refusal = [], ""
    for row in rows:
        try:
            if change.make(row.thing, values) not in (0, False):  # 0: another request made it meanwhile
                changed.append(row)
        except RepositoryError as error:  # a quota is used up, or the row was changed meanwhile
            refusal = str(error)
    unchanged -= len(changed)
    if changed:
        words = change.done.format(count=ticked.count(len(changed)))
        if change.undo:
            of = ",".join(row.token for row in changed)
            undo = {"words": words, "address": reverse(change.undo), "of": of, "back": query}
            words = render_to_string("lists/_undo.html", undo, request)
        messages.success(request, words, extra_tags="ok")
    if unchanged:
        words = f"{ticked.count(unchanged)} unchanged."
        messages.warning(request, f"{words} {refusal}".strip(), extra_tags="warn")
