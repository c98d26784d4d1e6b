"""Form of the reports of counters, which hosts and imports may lack. Pure."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter
from pydantic import model_validator as checks

from experiments.common.counter_fixes import OPEN_RAPL, RAPL_GUIDE

_LARGEST: Final = 2.0**62
_SMALLEST: Final = 1e-9
"""Of a number that others are divided by."""
_Line = Annotated[str, Field(max_length=1000)]
_Number = Annotated[FiniteFloat, Field(ge=-_LARGEST, le=_LARGEST)]


def _refuse_tiny(number: float) -> float:
    if 0 < number < _SMALLEST:
        raise ValueError("it is too small a number")
    return number


_Divisor = Annotated[FiniteFloat, Field(ge=0, le=_LARGEST), AfterValidator(_refuse_tiny)]


def _blank_unless(*allowed: str) -> AfterValidator:
    """Return a validator that blanks texts that pages must not show."""
    return AfterValidator(lambda text: text if text in allowed else "")


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Row(_Form):
    """One quantity of a device: its value, or why it is absent."""

    name: _Line
    total: _Line
    unit: _Line = ""
    kind: _Line = ""
    device: _Line
    seconds: _Divisor
    absent: _Line = ""
    value: _Number = 0.0
    peak: _Number = 0.0
    limit: _Divisor = 0.0
    wraps: Annotated[int, Field(ge=0, le=1 << 62)] = 0
    trust: _Line = ""

    @checks(mode="after")
    def _is_complete(self) -> Self:
        fields = self.model_fields_set & {"absent", "value", "peak", "limit"}
        if fields != {"absent"} and (fields != {"value", "peak", "limit"} or not self.seconds):
            raise ValueError("it needs either a value with peak, limit and seconds, or why it is absent")
        return self


class _Report(_Form):
    """Report of one source of a host."""

    state: _Line
    title: _Line
    reason: _Line = ""
    fix: Annotated[_Line, _blank_unless(OPEN_RAPL)] = ""
    guide: Annotated[_Line, _blank_unless(RAPL_GUIDE)] = ""
    details: Annotated[str, Field(max_length=100_000)] = ""
    missing: Annotated[dict[_Line, _Line], Field(max_length=1000)] = {}
    is_slow: bool = False
    read_s: _Number = 0.0
    values: Annotated[list[_Row], Field(max_length=100_000)] = []


_REPORTS: Final = TypeAdapter(dict[_Line, dict[_Line, _Report]])


def checked_reports(data: Any) -> dict[str, Any]:
    """Return reports by host and source as they are. Raise pydantic.ValidationError."""
    return {
        host: {key: report.model_dump(exclude_unset=True) for key, report in reports.items()}
        for host, reports in _REPORTS.validate_python(data).items()
    }
