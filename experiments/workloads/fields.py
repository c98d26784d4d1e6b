"""Fields of workload parameters, and types of the quantities in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo

from experiments.common.quantities import DURATION, SIZE, Dimension


def parameter(
    default: Any,
    title: str,
    description: str | None = None,
    *,
    unit: str = "",
    choices: Sequence[Any] | None = None,
    **limits: Any,
) -> Any:
    """Return the field of a parameter; ``limits`` are pydantic's."""
    extra: dict[str, Any] = {"unit": unit} | ({} if choices is None else {"enum": list(choices)})
    return Field(default, title=title, description=description, json_schema_extra=extra, **limits)


def choices_of(field: FieldInfo) -> Sequence[Any]:
    """Return the values that a parameter can have if they are listed."""
    extra = field.json_schema_extra
    if isinstance(extra, Mapping) and isinstance(listed := extra.get("enum"), list):
        return listed
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def reader(dimension: Dimension) -> Callable[[Any], Any]:
    """Return a function that reads text with a unit, and keeps other values."""
    return lambda value: dimension.parse(value) if isinstance(value, str) else value


Bytes = Annotated[int, BeforeValidator(reader(SIZE))]
"""A size in bytes: ``4 MB`` is 4 000 000, ``4 MiB`` is 4 194 304, a bare number is bytes."""
Seconds = Annotated[float, BeforeValidator(reader(DURATION))]
"""A time in seconds: ``200 ms``, ``10 s``, a bare number is seconds."""
