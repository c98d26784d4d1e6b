"""Fields of workload parameters, and types of what users write into them."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import core_schema

from experiments.common.quantities import DURATION, SIZE, Dimension


def parameter(default: Any, title: str, description: str, *, unit: str = "", **limits: Any) -> Any:
    """Return the field of a parameter; ``limits`` are those of pydantic: ge, gt, le, lt, max_length, pattern."""
    return Field(default, title=title, description=description, json_schema_extra={"unit": unit}, **limits)


def _reader(dimension: Dimension) -> BeforeValidator:
    def read(value: Any) -> Any:
        return dimension.parse(value) if isinstance(value, str) else value

    return BeforeValidator(read)


Bytes = Annotated[int, _reader(SIZE)]
"""A size in bytes: ``4 MB`` is 4 000 000, ``4 MiB`` is 4 194 304, a bare number is bytes."""
Seconds = Annotated[float, _reader(DURATION)]
"""A time in seconds: ``200 ms``, ``10 s``, a bare number is seconds."""


def _from_json(value: Any) -> Any:
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"cannot be read as JSON: {error}") from None
    return value


FromJson = BeforeValidator(_from_json)
"""Lists and mappings may be JSON text, as a form sends them."""


class AsWritten:
    """Checks plain data as ``kind``, and keeps them as they were written: parameters are stored and hashed."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        plain = TypeAdapter(source)

        def checked(value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Any:
            return _checked(plain.validate_python(value), check)

        return core_schema.no_info_wrap_validator_function(
            checked,
            handler.generate_schema(self.kind),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: value),
        )


def _checked(value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Any:
    try:
        check(value)
    except ValidationError as error:
        first = error.errors()[0]
        reason = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
        loc = () if "[key]" in first["loc"] else first["loc"]  # a reason against a name has it already
        place = ".".join(part for part in loc if isinstance(part, str) and part != "program")
        raise ValueError(f"{place}: {reason}" if place else reason) from None
    return value
