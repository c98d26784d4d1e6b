"""Names and calculations as SQL over configurations; NULL without a value."""

from __future__ import annotations

import json
from typing import Any, Final

from django.db.models import Case, F, FloatField, IntegerField, JSONField, OuterRef, Subquery, TextField, Value, When
from django.db.models.expressions import Func
from django.db.models.fields import BooleanField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Collate
from django.db.models.lookups import Exact

from experiments.models import Measurement, Summary
from experiments.selectors.explorer_names import COLUMNS
from experiments.specification.expressions import LARGEST, SMALLEST

_FORMULAS: Final = {
    "+": "a + b",
    "-": "a - b",
    "*": "a * b",
    "/": "a / b",
    "//": "floor(a / b)",
    "%": "a - b * floor(a / b)",
}
"""The operations of `experiments.specification.expressions`, with the same rounding."""


class Computed(Func):
    """One operation on two numbers; NULL if it would fail and end the whole query."""

    output_field = FloatField()

    def __init__(self, sign: str, left: Any, right: Any) -> None:
        safe = [f"({name} = 0 OR abs({name}) BETWEEN {SMALLEST} AND {LARGEST})" for name in ("a", "b")]
        if sign in ("/", "//", "%"):
            safe.append("b <> 0")
        # Named operands are evaluated once.
        source = "(VALUES (%(expressions)s)) AS operands(a, b)"
        formula = f"(SELECT {_FORMULAS[sign]} FROM {source} WHERE {' AND '.join(safe)})"  # noqa: S608 (nothing from outside)
        super().__init__(left, right, template=formula)


class Negated(Func):
    template = "(- %(expressions)s)"
    output_field = FloatField()


class _Type(Func):
    function = "jsonb_typeof"
    output_field = TextField()


def parameter(name: str) -> Any:
    return KeyTransform(name, "parameters")


def medians(name: str, scope: str) -> Any:
    """Return the summaries of a metric for the configuration of the outer query."""
    return Summary.objects.filter(configuration=OuterRef("pk"), metric=name, scope=scope)


def measurements(name: str, scope: str) -> Any:
    """Return the values of a metric for the trial of the outer query."""
    return Measurement.objects.filter(trial=OuterRef("pk"), metric=name, scope=scope)


def number(name: str, scope: str, *, is_metric: bool) -> Any:
    """Return the value as a number; NULL for words. True and false are 1 and 0."""
    if is_metric:
        return Subquery(medians(name, scope).values("median"), output_field=FloatField())
    if name in COLUMNS:
        return Cast(F(name), FloatField())
    value = parameter(name)
    truth = Cast(Cast(Cast(value, BooleanField()), IntegerField()), FloatField())
    return Case(
        When(Exact(_Type(value), "number"), then=Cast(value, FloatField())),
        When(Exact(_Type(value), "boolean"), then=truth),
        output_field=FloatField(),
    )


def constant(value: float | None) -> Any:
    return Cast(Value(None if value is None else float(value)), FloatField())


def stored(value: float | str | bool) -> Any:
    """Return a constant as JSON, as a parameter stores it."""
    return Cast(Value(json.dumps(value)), JSONField())


def word(name: str) -> Any:
    """Return a parameter's text in code-point order; NULL for other values."""
    value = KeyTextTransform(name, "parameters")
    return Collate(
        Case(When(Exact(_Type(parameter(name)), "string"), then=value), output_field=TextField()),
        "C",
    )


def as_json(number: Any) -> Any:
    """Return a number as JSON, equal to a parameter of the same value."""
    return Func(number, function="to_jsonb", output_field=JSONField())


def anything(name: str) -> Any:
    """Return a parameter as JSON for comparison; true and false as 1 and 0."""
    value = parameter(name)
    return Case(
        When(Exact(_Type(value), "boolean"), then=as_json(number(name, "", is_metric=False))),
        default=value,
        output_field=JSONField(),
    )
