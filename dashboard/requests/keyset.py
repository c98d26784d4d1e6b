"""Keyset pagination: pages by the last row of the previous one, fast at any depth."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Model, Q, QuerySet

_LONGEST: Final = 400


class InvalidPosition(ValueError):
    """A position in a query string is invalid; the text is for the user."""


@dataclass(frozen=True, slots=True)
class Key:
    """The sort key of a list; ``read`` parses its values in URLs."""

    column: str
    descending: bool = False
    read: Callable[[Any], Any] = int


@dataclass(frozen=True, slots=True)
class Listing:
    """The rows of a list: those with a key, then those ``without``.

    They are two queries, so that the first can use an index.
    """

    key: Key
    valued: QuerySet[Any]
    without: QuerySet[Any] | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """One page with the positions of its neighbours, or ''."""

    rows: Sequence[Any]
    earlier: str = ""
    later: str = ""


def slice_of(listing: Listing, *, after: str, before: str, most: int) -> Slice:
    """Return the page at a position, by default the first. Raise InvalidPosition."""
    if after and before:
        raise InvalidPosition("Give either after or before, not both.")
    position = _read(before or after, listing.key)
    back = bool(before)
    rows: list[Any] = []
    for part in _parts(listing, position, back=back):
        rows += part[: most + 1 - len(rows)]
        if len(rows) > most:
            break
    more, rows = len(rows) > most, rows[:most]
    if not rows:
        return Slice([])
    if back:
        rows.reverse()
    has_earlier, has_later = (more, True) if back else (bool(after), more)
    ends = [_position(row, listing.key) for row in (rows[0], rows[-1])]
    return Slice(rows, ends[0] if has_earlier else "", ends[1] if has_later else "")


def _parts(listing: Listing, position: tuple[Any, int] | None, *, back: bool) -> list[QuerySet[Any]]:
    """Return the querysets after a position (``back``: before it), nearest first."""
    key = listing.key
    rising = key.descending == back
    by_key, by_pk = key.column if rising else f"-{key.column}", "pk" if back else "-pk"
    valued = listing.valued.order_by(by_key) if key.column == "pk" else listing.valued.order_by(by_key, by_pk)
    beyond = [valued]
    without = listing.without
    if position is not None:
        value, pk = position
        tie = Q(pk__gt=pk) if back else Q(pk__lt=pk)
        if value is None:
            without = None if without is None else without.filter(tie)
        elif key.column == "pk":
            beyond = [valued.filter(Q(pk__gt=pk) if rising else Q(pk__lt=pk))]
        else:
            # Two queries: of one with OR, the planner cannot estimate the rows and leaves the index.
            sign = "gt" if rising else "lt"
            ties = valued.filter(tie, **{key.column: value})
            beyond = [ties, valued.filter(**{f"{key.column}__{sign}": value})]
    rest = [] if without is None else [without.order_by(by_pk)]
    if position is not None and position[0] is None:
        return [*rest, *beyond] if back else rest
    return beyond if back else [*beyond, *rest]


def _position(row: Model, key: Key) -> str:
    value = getattr(row, key.column, None)
    text = json.dumps([value, row.pk], default=str)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(text: str, key: Key) -> tuple[Any, int] | None:
    if not text:
        return None
    try:
        if len(text) > _LONGEST:
            raise ValueError
        value, pk = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
        pk = int(pk)
        if not 0 <= pk < 2**63:
            raise ValueError
        return None if value is None else key.read(value), pk
    except (ValueError, TypeError, ArithmeticError, UnicodeError):
        raise InvalidPosition("There is no such page in this order. Start with the first page.") from None
