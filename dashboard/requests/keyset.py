"""Pages of a list by the last row of the one before: as quick at any depth, and not shifted by new rows."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Model, Q, QuerySet

_LONGEST: Final = 400


class NoPlace(ValueError):
    """What an address names as a place in a list is none; its text is for the reader."""


@dataclass(frozen=True, slots=True)
class Key:
    """What a list is sorted by: a ``column`` or annotation of its rows, and how its values are read from an address."""

    column: str
    descending: bool = False
    read: Callable[[Any], Any] = int


@dataclass(frozen=True, slots=True)
class Listing:
    """The rows of a list in its order: those that have what it is ``key``ed by, then those ``without``, newest first.

    They are two queries, as an index can give the order of the first alone.
    """

    key: Key
    valued: QuerySet[Any]
    without: QuerySet[Any] | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """One page; ``earlier`` and ``later`` are the places of its neighbours, empty where there are none."""

    rows: Sequence[Any]
    earlier: str = ""
    later: str = ""


def slice_of(listing: Listing, *, after: str, before: str, most: int) -> Slice:
    """Return the page behind the place ``after``, or that before ``before``; the first when both are empty. Raise NoPlace."""
    if after and before:
        raise NoPlace("An address names the row before a page or the one behind it, not both.")
    place = _read(before or after, listing.key)
    back = bool(before)
    found: list[Any] = []
    for part in _parts(listing, place, back=back):
        found += part[: most + 1 - len(found)]
        if len(found) > most:
            break
    more, found = len(found) > most, found[:most]
    if not found:
        return Slice([])
    if back:
        found.reverse()
    has_earlier, has_later = (more, True) if back else (bool(after), more)
    ends = [_place(row, listing.key) for row in (found[0], found[-1])]
    return Slice(found, ends[0] if has_earlier else "", ends[1] if has_later else "")


def _parts(listing: Listing, place: tuple[Any, int] | None, *, back: bool) -> list[QuerySet[Any]]:
    """What lies behind a place (or ``back`` from it), nearest first."""
    key = listing.key
    rising = key.descending == back
    valued = listing.valued.order_by(*((key.column,) if rising else (f"-{key.column}",)), *_ties(key, back=back))
    without = listing.without
    if place is not None:
        value, pk = place
        tie = Q(pk__gt=pk) if back else Q(pk__lt=pk)
        if value is None:
            without = None if without is None else without.filter(tie)
        elif key.column == "pk":
            valued = valued.filter(Q(pk__gt=pk) if rising else Q(pk__lt=pk))
        else:
            # The first condition says less than the second, and an index can answer it.
            sign = "gt" if rising else "lt"
            valued = valued.filter(Q(**{f"{key.column}__{sign}e": value}))
            valued = valued.filter(Q(**{f"{key.column}__{sign}": value}) | Q(**{key.column: value}) & tie)
    rest = [] if without is None else [without.order_by("pk" if back else "-pk")]
    if place is not None and place[0] is None:
        return [*rest, valued] if back else rest
    return [valued] if back else [valued, *rest]


def _ties(key: Key, *, back: bool) -> tuple[str, ...]:
    return () if key.column == "pk" else ("pk" if back else "-pk",)


def _place(row: Model, key: Key) -> str:
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
        raise NoPlace("There is no such page of this list in this order; begin with the first.") from None
