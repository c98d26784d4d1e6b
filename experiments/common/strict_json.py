"""JSON of users, with numbers that PostgreSQL and other programs can hold. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from experiments.common.storable import LARGEST_INTEGER
from experiments.errors import FieldError, InvalidSpec

MOST_VALUES: Final = 2_000_000
"""Of one text: each takes about 100 bytes of memory, also an empty list, which is written with three."""


class _Refused(str):
    """A number as it is written that cannot be used."""

    __slots__ = ()

    @property
    def message(self) -> str:
        return "is too large a number" if self.lstrip("-")[:1].isdecimal() else f"{self} is not a number"


def require_few_values(text: str | bytes, most: int) -> None:
    """Raise ValueError for a text of more than ``most`` values, before it is parsed."""
    marks: Any = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if sum(map(text.count, marks)) > most:
        raise ValueError(f"it has more than {most} values")


def parse(text: str | bytes, *, most_values: int = MOST_VALUES, **hooks: Any) -> Any:
    """Return the value of a JSON text; ``hooks`` are those of ``json.loads``.

    Raise InvalidSpec at the field of an integer beyond 64 bits, an infinite number or NaN; ValueError or RecursionError for other
    text, and for more than ``most_values``.
    """
    require_few_values(text, most_values)
    refused: list[_Refused] = []

    def refuse(written: str) -> _Refused:
        refused.append(_Refused(written))
        return refused[-1]

    def whole(written: str) -> Any:
        is_short = len(written) <= 20 and abs(int(written)) <= LARGEST_INTEGER
        return int(written) if is_short else refuse(written)

    def decimal(written: str) -> Any:
        return value if math.isfinite(value := float(written)) else refuse(written)

    data = json.loads(text, **{"parse_int": whole, "parse_float": decimal, "parse_constant": refuse} | hooks)
    if refused:
        raise InvalidSpec([FieldError(_path_of(refused[0], data), refused[0].message)])
    return data


def _path_of(refused: _Refused, data: Any) -> str:
    """Return the path of a refused number, without recursion."""
    levels: list[Iterator[tuple[str, Any]]] = [iter([("", data)])]
    while levels:
        for path, value in levels[-1]:
            if value is refused:
                return path
            if isinstance(value, dict | list):
                levels.append(_items(path, value))
                break
        else:
            levels.pop()
    return ""


def _items(path: str, value: dict[str, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield f"{path}.{name}" if path else str(name), item
