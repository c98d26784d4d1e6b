"""Shapes of a trial's free records, for those parts that pages and analyses read."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, Field, FiniteFloat, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from experiments.common.storable import problems
from experiments.metrics import LARGEST
from experiments.specification.yaml_lines import MAX_BYTES

_Item = TypeVar("_Item")
Items = Annotated[list[_Item], FailFast()]
"""A list that is refused at its first wrong item: millions of errors would fill the memory."""
_DEEPEST: Final = 12
_LONGEST: Final = 2 * MAX_BYTES
"""Characters of JSON, which escapes letters of other alphabets."""
_MOST_VALUES: Final = 2000
"""Of facts that lists read, those of a configuration once for each trial: an empty list takes 20 times the memory of its text."""
_LONGEST_CLUSTER: Final = 16_000
"""Of the facts of a cluster: pages list all clusters."""
Finite = Annotated[FiniteFloat, Field(ge=-LARGEST, le=LARGEST)]
_Cell = str | bool | int | FiniteFloat | None
_Number = int | Finite | None


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class _CertificateRow(_Shape):
    """A requested and a measured property of one direction of the link."""

    quantity: str
    source: str
    target: str
    unit: str
    asked: _Number = None
    achieved: _Number = None
    interval: Annotated[list[Finite | int], Field(min_length=2, max_length=2)] | None = None
    kept: bool | None = None
    tolerance: str = ""


class _RoundTrips(_Shape):
    source: str
    target: str
    probes: int = 0
    min_s: _Number = None
    p05_s: _Number = None
    median_s: _Number = None
    p95_s: _Number = None
    max_s: _Number = None


def _check_moment(text: str) -> str:
    if text and datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


class _Certificate(_Shape):
    kept: bool
    measured_at: Annotated[str, AfterValidator(_check_moment)] = ""
    rows: Items[_CertificateRow] = []
    round_trips: Items[_RoundTrips] = []
    reasons: Items[str] = []
    earlier: Items[str] = []
    attempts: int = 1
    duration_s: _Number = None


class _MetricSource(_Shape):
    trust: str
    metrics: Items[str]


class _Conditions(_Shape):
    cores: int | None = None
    hosts: Items[str] = []
    disturbances: Items[str] = []
    mpi_tools: Items[str] = []
    world: str = ""
    back_end: str = ""
    link_asked: str = ""
    oversubscription: str = ""
    transport: str = ""
    messages_by: str = ""
    placement: str = ""
    different_hosts: str = ""
    placement_findings: dict[str, str] = {}
    metric_sources: dict[str, _MetricSource] = {}


class _Parameters(_Shape):
    """Parameters of a configuration, without those of the link."""

    hosts: Annotated[int, Field(ge=0)] = 1
    ranks_per_host: Annotated[int, Field(ge=1)] = 1


def _check_depth(value: Any, levels: int) -> None:
    if levels < 0:
        raise PydanticCustomError("shape", "nested too deeply")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(item, levels - 1)


def _check_length(value: Any, most: int = _LONGEST) -> Any:
    if len(json.dumps(value)) > most:
        raise PydanticCustomError("shape", "longer than {most} characters", {"most": most})
    return value


def _count(value: Any) -> int:
    return 1 + sum(map(_count, value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()))


def _check_few(value: Any) -> Any:
    if _count(value) > _MOST_VALUES:
        raise PydanticCustomError("shape", "more than {most} values", {"most": _MOST_VALUES})
    return value


def _check_cluster(value: Any) -> Any:
    return _check_length(value, _LONGEST_CLUSTER)


def _check_plain(value: Any) -> Any:
    if (first := next(problems(value), None)) is not None:
        raise PydanticCustomError("shape", "{where}: {what}", {"where": first.path[:80], "what": first.message})
    return value


def _shaped(kind: Any) -> Callable[[Any], Any]:
    adapter = TypeAdapter(kind)

    def check(value: Any) -> Any:
        _check_depth(value, _DEEPEST)
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            path = ".".join(str(part)[:80] for part in first["loc"])
            raise PydanticCustomError("shape", "{where}: {what}", {"where": path, "what": first["msg"]}) from None
        return value

    return check


_Object = dict[str, Any]
Facts = Annotated[_Object, AfterValidator(_shaped(_Object))]
"""Recorded facts by name, shown unchanged."""
ClusterFacts = Annotated[Facts, AfterValidator(_check_cluster)]
ShortFacts = Annotated[Facts, AfterValidator(_check_length), AfterValidator(_check_few)]
"""Facts that lists read of each of their rows."""
Specification = Annotated[Facts, AfterValidator(_check_length), AfterValidator(_check_plain)]
"""A specification within the limits of those that are submitted here: pydantic would report each of a million names."""
Parameters = Annotated[ShortFacts, AfterValidator(_shaped(_Parameters))]
Conditions = Annotated[_Object, AfterValidator(_shaped(_Conditions))]
Certificate = Annotated[_Object | None, AfterValidator(_shaped(_Certificate | None))]
Tables = Annotated[_Object, AfterValidator(_shaped(dict[str, Items[dict[str, _Cell]]]))]
