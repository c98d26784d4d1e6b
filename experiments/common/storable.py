"""Plain data that PostgreSQL, JSON and pages can hold. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from experiments.common import budget
from experiments.errors import FieldError

MAX_DEPTH: Final = 8
MAX_FIELDS: Final = 300
MAX_ITEMS: Final = 10_000
"""Limits of the check, whose cost grows with the number of fields."""
MOST_NAMES: Final = 100_000
"""Of one object: each may be an error of its own."""
LARGEST_INTEGER: Final = 2**63 - 1
_ODD: Final = re.compile("[\0\ud800-\udfff]")


def problems(data: Any, path: str = "", depth: int = 0) -> Iterator[FieldError]:
    """Yield errors of data that cannot be stored.

    These are text with NUL or lone surrogates, integers beyond 64 bits, deep nesting, and too many fields.
    """
    budget.check()
    most, things = (MAX_FIELDS, "fields") if isinstance(data, Mapping) else (MAX_ITEMS, "items")
    if depth > MAX_DEPTH:
        yield FieldError(path, "nested too deeply")
    elif isinstance(data, Mapping | list | tuple) and len(data) > most:
        yield FieldError(path, f"holds {len(data)} {things}; the most is {most}")
    elif isinstance(data, Mapping):
        for name, value in data.items():
            if not isinstance(name, str):
                yield FieldError(path, f"the field name {_short(name)} is not text")
            elif not is_storable_text(name):
                yield FieldError(path, f"the field name {name[:40]!r} holds characters that are not text")
            else:
                yield from problems(value, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(data, list | tuple):
        for index, value in enumerate(data):
            yield from problems(value, f"{path}.{index}", depth + 1)
    elif isinstance(data, str) and not is_storable_text(data):
        yield FieldError(path, "holds characters that are not text (NUL or half of a pair)")
    elif isinstance(data, float) and not math.isfinite(data):
        yield FieldError(path, f"must be a finite number, not {data}")
    elif isinstance(data, int) and abs(data) > LARGEST_INTEGER:
        yield FieldError(path, "is too large a number")


def distinct_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object. Raise ValueError for bad names."""
    if len(pairs) > MOST_NAMES:
        raise ValueError(f"an object has {len(pairs)} names")
    distinct: dict[str, Any] = {}
    for name, value in pairs:
        if name in distinct:
            raise ValueError(f"{name!r} is given twice")
        distinct[name] = value
    return distinct


def is_storable_text(text: str) -> bool:
    """Return whether PostgreSQL accepts the text: no NUL, no lone surrogate."""
    return _ODD.search(text) is None


def storable(value: Any) -> Any:
    """Return data for PostgreSQL: odd characters become U+FFFD, NaN becomes None."""
    if isinstance(value, str):
        return _ODD.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {storable(name): storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _short(value: Any) -> str:
    return "(a huge number)" if isinstance(value, int) and abs(value) > LARGEST_INTEGER else repr(value)[:40]
