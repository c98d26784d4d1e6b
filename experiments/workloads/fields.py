"""Field types of workload parameters that people write with a unit."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from experiments.pure.quantities import DURATION, SIZE, Dimension


def _reader(dimension: Dimension) -> BeforeValidator:
    def read(value: Any) -> Any:
        return dimension.parse(value) if isinstance(value, str) else value

    return BeforeValidator(read)


Bytes = Annotated[int, _reader(SIZE)]
"""A size in bytes: ``4 MB`` is 4 000 000, ``4 MiB`` is 4 194 304, a bare number is bytes."""
Seconds = Annotated[float, _reader(DURATION)]
"""A time in seconds: ``200 ms``, ``10 s``, a bare number is seconds."""
