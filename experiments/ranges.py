"""Swept values as people write them: lists, ``2..12``, ``2..12 step 2`` (or ``2..12/2``), doublings ``1..64 x2``. Pure."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

MAX_VALUES: Final = 1000
LONGEST_ITEM: Final = 200
_RANGE = re.compile(
    r"^(?P<first>[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))\s*\.\.\s*(?P<last>[+-]?[0-9]*\.?[0-9]+)\s*"
    r"(?:(?:step\s+|/\s*)(?P<step>[0-9]*\.?[0-9]+)|[x×*]\s*(?P<factor>[0-9]*\.?[0-9]+))?$"
)
_NUMBER = re.compile(r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$")


def expand_values(written: Any, *, text: bool = False) -> list[Any]:
    """Return the list of values that ``written`` stands for.

    A list is taken item by item (items may be ranges themselves), a string is split at commas; a value may stand more than once, for
    parameters that advance together. With ``text`` the values are words, kept as they are: no range, and ``007`` is not 7.
    Raises ValueError with a reader's sentence.
    """
    items = written if isinstance(written, list) else str(written).split(",") if isinstance(written, str) else [written]
    values: list[Any] = []
    for item in items:
        values.extend(_expand_item(item, text))
        if len(values) > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES} values")
    if not values:
        example = "" if text else " or a range such as 2..12 step 2"
        raise ValueError(f"no values; write a list such as [{'a, b' if text else '1, 2, 4'}]{example}")
    return values


def _expand_item(item: Any, is_text: bool) -> list[Any]:
    if not isinstance(item, str):
        if isinstance(item, dict | list) or item is None:
            raise ValueError(f"{item!r} is not a value")
        return [item]
    text = item.strip()
    if not text:
        return []
    if len(text) > LONGEST_ITEM:
        raise ValueError(f"{text[:20]!r}… is no value: longer than {LONGEST_ITEM} characters")
    if is_text:
        return [text]
    match = _RANGE.match(text)
    return _expand_range(match) if match else [_number_or_text(text)]


def _expand_range(match: re.Match[str]) -> list[Any]:
    first, last = Decimal(match["first"]), Decimal(match["last"])
    step, factor = match["step"], match["factor"]
    if last < first:
        raise ValueError(f"the range {match.group()!r} ends before it starts")
    if step is not None and Decimal(step) <= 0:
        raise ValueError(f"the step of {match.group()!r} must be positive")
    if factor is not None and (Decimal(factor) <= 1 or first <= 0):
        raise ValueError(f"{match.group()!r} must start above 0 and grow by more than 1")
    values: list[Any] = []
    current = first
    while current <= last:
        values.append(_number(current))
        if len(values) > MAX_VALUES:
            raise ValueError(f"{match.group()!r} has more than {MAX_VALUES} values")
        current = current * Decimal(factor) if factor else current + Decimal(step or 1)
    return values


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _number_or_text(text: str) -> Any:
    return _number(Decimal(text)) if _NUMBER.match(text) else text
