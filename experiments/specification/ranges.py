"""Swept values: lists, ``2..12``, ``2..12 step 2``, ``2..12/2``, ``1..64 x2``.

The values of a range may have units: ``1 KiB..4 MiB x4``, ``100..300 step 100 Mbit/s``.
Mappings mean the same: ``{from: 2, to: 12, step: 2}``, ``{choose: [ring, tree]}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from experiments.common.quantities import common_dimension

MAX_VALUES: Final = 1000
LONGEST_ITEM: Final = 200
_LARGEST: Final = Decimal("1e18")
"""Largest value of a range with units, in base units: beyond it decimals would be rounded."""
_SIGNED = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_UNSIGNED = r"[0-9]*\.?[0-9]+"
_UNIT = r"[A-Za-zµ%][A-Za-zµ/]{0,9}"
_RANGE = re.compile(
    rf"^(?P<first>{_SIGNED})\s*(?P<first_unit>{_UNIT})?\s*\.\.\s*(?P<last>{_SIGNED})\s*(?P<last_unit>{_UNIT})?\s*"
    rf"(?:(?:(?:step\s+|/\s*)(?P<step>{_UNSIGNED})|[x×*]\s*(?P<factor>{_UNSIGNED}))\s*(?P<unit>{_UNIT})?)?$"
)
_NUMBER = re.compile(r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?$")


def expand_values(written: Any, *, text: bool = False) -> list[Any]:
    """Return the list of values of ``written``. Raise ValueError.

    A list is taken item by item (items may be ranges themselves), a string is split at commas; a value may occur more than once, for
    parameters that advance together. With ``text`` the values are words without ranges, and ``007`` is not 7.
    """
    if isinstance(written, Mapping):
        written = as_written(written)
    items = written if isinstance(written, list) else str(written).split(",") if isinstance(written, str) else [written]
    values: list[Any] = []
    for item in items:
        values.extend(_expand_item(item, text))
        if len(values) > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES} values")
    if not values:
        example = "a, b" if text else "2, 4, 8 or a range such as 2..12/2"
        raise ValueError(f"no values: enter a list such as {example}")
    return values


def as_written(written: Mapping[str, Any]) -> Any:
    """Return a mapping as a list or the text of a range."""
    if written.keys() == {"choose"} and isinstance(written["choose"], list):
        return written["choose"]
    if {"choose", "explore"} <= written.keys():
        raise ValueError("sizes are chosen from a range such as 1..64 or 8..64 step 8, not from a list")
    if not {"from", "to"} <= written.keys() <= {"from", "to", "step", "explore"}:
        raise ValueError("must be a list, a range, {from: 32, to: 256, step: 8} or {choose: [a, b]}")
    step = f" step {written['step']}" if "step" in written else ""
    return f"{written['from']}..{written['to']}{step}"


def _expand_item(item: Any, is_text: bool) -> list[Any]:
    if not isinstance(item, str):
        if isinstance(item, dict | list) or item is None:
            raise ValueError(f"{item!r} is not a value")
        return [item]
    text = item.strip()
    if not text:
        return []
    if len(text) > LONGEST_ITEM:
        raise ValueError(f"{text[:20]!r}… is not a value: longer than {LONGEST_ITEM} characters")
    if is_text:
        return [text]
    match = _RANGE.match(text)
    if match is None and re.match(r"[0-9].*\.\.", text):
        raise ValueError(f"{text!r} is not a range: write 1..8, 1..8 step 2 or 1..8 x2")
    return _expand_range(match) if match else [_number_or_text(text)]


def _expand_range(match: re.Match[str]) -> list[Any]:
    if match["first_unit"] or match["last_unit"] or match["unit"]:
        return _expand_quantities(match)
    step, factor = match["step"], match["factor"]
    values = _steps(
        match.group(),
        *(Decimal(match["first"]), Decimal(match["last"])),
        *(Decimal(step or 1), Decimal(factor) if factor else None),
    )
    return [_number(value) for value in values]


def _expand_quantities(match: re.Match[str]) -> list[Any]:
    """Return the values as text, in the largest written unit that divides them.

    A number without a unit has the next one that is written after it, the step also that of the last value.
    """
    text, step, factor = match.group(), match["step"], match["factor"]
    last_unit = match["last_unit"] or match["unit"]
    if last_unit is None:
        raise ValueError(f"the last value of {text!r} needs a unit too")
    if factor is None and match["unit"] is None and match["first_unit"] not in (None, last_unit):
        raise ValueError(f"{text!r} needs a step with its unit, as in 'step 1 {last_unit}', or a factor, as in 'x2'")
    units = [match["first_unit"] or last_unit, last_unit, match["unit"] or last_unit]
    try:
        dimension = common_dimension(units)
    except ValueError as error:
        raise ValueError(f"{error} in the range {text!r}") from None
    factors = [dimension.factor(unit) or Decimal(1) for unit in units]
    first, last = Decimal(match["first"]) * factors[0], Decimal(match["last"]) * factors[1]
    if max(abs(first), abs(last)) > _LARGEST:
        raise ValueError(f"{text!r} is too large for a {dimension.name}")
    values = _steps(text, first, last, Decimal(step or 1) * factors[2], Decimal(factor) if factor else None)
    written = sorted(dict(zip(units, factors, strict=True)).items(), key=lambda unit: -unit[1])

    def written_as(value: Decimal) -> str:
        unit, size = next(((u, f) for u, f in written if value % f == 0), written[-1])
        return f"{(value / size).normalize():f} {unit}"

    return [written_as(value) for value in values]


def _steps(text: str, first: Decimal, last: Decimal, step: Decimal, factor: Decimal | None) -> list[Decimal]:
    if last < first:
        raise ValueError(f"the range {text!r} ends before it starts")
    if step <= 0:
        raise ValueError(f"the step of {text!r} must be positive")
    if factor is not None and (factor <= 1 or first <= 0):
        raise ValueError(f"{text!r} must start above 0 and grow by more than 1")
    values: list[Decimal] = []
    current = first
    while current <= last:
        values.append(current)
        if len(values) > MAX_VALUES:
            raise ValueError(f"{text!r} has more than {MAX_VALUES} values")
        current = current + step if factor is None else current * factor
    return values


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _number_or_text(text: str) -> Any:
    return _number(Decimal(text)) if _NUMBER.match(text) else text
