"""Serializers of answer, findings and diagnosis."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analysis.conclusions import Answer, Fact, Finding
from analysis.conclusions.diagnosis import Curve
from analysis.conclusions.rules.report import Verdict
from analysis.scaling import ObserverEffect, ScalingRow, Suggestion, TimeRow, WireRow
from analysis.scaling.models import Misfit
from dashboard.api.rest.schema import dataclass_schema
from dashboard.api.serializers import ExperimentDetailSerializer, ResultTrialSerializer

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer"}
_NUMBER: Final[Schema] = {"type": "number"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
_ANY: Final[Schema] = {"type": "object", "additionalProperties": True}


def _object(**members: Schema) -> Schema:
    return {"type": "object", "properties": members, "required": list(members)}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _or_null(shape: Schema) -> Schema:
    return {"anyOf": [shape, {"type": "null"}]}


def _with(shape: Schema, **members: Schema) -> Schema:
    properties = {**shape["properties"], **members}
    return {**shape, "properties": properties, "required": list(properties)}


_ANSWER: Final = _with(dataclass_schema(Answer), asks=_TEXT)
_REPORT: Final = _object(
    name=_TEXT,
    where=_ANY,
    verdict=dataclass_schema(Verdict),
    findings=_list(dataclass_schema(Finding)),
    cannot_tell=_list(_TEXT),
    slices=_list(_ANY),
)
_WHOLE_REPORT: Final = _with(_REPORT, slices=_list(_REPORT))
_ESTIMATE: Final = _object(
    value=_NUMBER_OR_NULL, low=_NUMBER_OR_NULL, high=_NUMBER_OR_NULL, method={"type": ["string", "null"]}
)
_FIT: Final = _object(
    model=_TEXT,
    title=_TEXT,
    metric=_TEXT,
    formula=_TEXT,
    aicc=_NUMBER_OR_NULL,
    cv_error=_NUMBER_OR_NULL,
    values=_WHOLE,
    measured=_list(_NUMBER),
    parameters={"type": "object", "additionalProperties": _or_null(_ESTIMATE)},
    best_size=_or_null(_ESTIMATE),
    misfit=dataclass_schema(Misfit),
)
_MODEL: Final = _object(
    metric=_TEXT,
    chosen={"type": ["string", "null"]},
    criterion=_TEXT,
    reason=_TEXT,
    extrapolated={"type": "boolean"},
    fits=_list(_FIT),
    curves=_list(dataclass_schema(Curve)),
)
_SLICE: Final = _object(
    where=_ANY,
    rows=_list(dataclass_schema(ScalingRow)),
    time=_list(dataclass_schema(TimeRow)),
    wire=_list(dataclass_schema(WireRow)),
    models={"type": "object", "additionalProperties": _MODEL},
    next=_list(dataclass_schema(Suggestion)),
)


def _shaped(shape: Schema, **options: Any) -> Any:
    """Return a field that the OpenAPI document describes by ``shape``."""
    base = serializers.ListField if shape.get("type") == "array" else serializers.DictField
    return extend_schema_field(shape)(type("ShapedField", (base,), {}))(**options)


class FindingsSerializer(serializers.Serializer[Any]):
    """Answer, facts, verdict, findings and limitations."""

    answer = _shaped(_ANSWER)
    facts = _shaped(_list(dataclass_schema(Fact)))
    name = serializers.CharField()
    where = serializers.DictField()
    verdict = _shaped(dataclass_schema(Verdict))
    findings = _shaped(_list(dataclass_schema(Finding)))
    cannot_tell = serializers.ListField(child=serializers.CharField())
    slices = _shaped(_list(_REPORT))


class DiagnosisSerializer(serializers.Serializer[Any]):
    """The numbers behind the findings."""

    stamp = serializers.CharField(help_text="Changes when another configuration completes.")
    answer = _shaped(_ANSWER)
    facts = _shaped(_list(dataclass_schema(Fact)))
    report = _shaped(_WHOLE_REPORT)
    trials = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=("strong", "weak"))
    axis = serializers.CharField()
    slices = _shaped(_list(_SLICE))
    slices_left_out = serializers.IntegerField()
    next_queued = serializers.IntegerField(help_text="Trials that queueing the suggested points would add.")
    observer = _shaped(_list(_with(dataclass_schema(ObserverEffect), parameters=_ANY)))


class ResultSerializer(serializers.Serializer[Any]):
    """An experiment with everything measured."""

    answer = _shaped(_or_null(_ANSWER), allow_null=True)
    experiment = ExperimentDetailSerializer()
    predictions = serializers.ListField(child=serializers.DictField())
    trials = ResultTrialSerializer(many=True)
