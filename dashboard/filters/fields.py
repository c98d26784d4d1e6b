"""Fields, widgets and filters of query strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django_filters.fields import IsoDateTimeField
from drf_spectacular.utils import extend_schema_field

from experiments.errors import CannotExplore
from experiments.metrics import is_metric, why_not_metric
from experiments.selectors.conditions import condition, read_conditions
from experiments.specification.expressions import Expression


class SearchInput(forms.TextInput):
    """A search field."""

    input_type = "search"


class LazySelect(forms.Select):
    """A select with choices made on rendering; unknown values stay visible."""

    rows: QuerySet[Any]
    """Of the list, set by its filters."""

    def __init__(self, nothing: str, offered: Callable[[QuerySet[Any]], list[tuple[str, str]]]) -> None:
        super().__init__()
        self._nothing, self._offered = nothing, offered

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        choices = [("", self._nothing), *self._offered(self.rows)]
        options = {option for option, _ in choices}
        self.choices = [*choices, *((text, text) for text in value if text not in options)]
        return super().optgroups(name, value, attrs)


class TruthSelect(forms.Select):
    """A select for true and false with own words in the query string."""

    def __init__(self, nothing: str, yes: tuple[str, str], no: tuple[str, str]) -> None:
        super().__init__(choices=[("", nothing), no, yes])
        self._values = {yes[0]: True, no[0]: False}

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> bool | str:
        text = str(data.get(name, ""))
        return self._values.get(text.lower(), text)

    def format_value(self, value: Any) -> list[str]:
        return [word for word, meant in self._values.items() if meant is value]


class TickBox(forms.CheckboxInput):
    """A checkbox with the value 1."""

    def __init__(self) -> None:
        super().__init__(attrs={"value": "1"}, check_test=lambda text: str(text).lower() in ("1", "true", "on"))

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        return str(data.get(name, ""))


class TruthField(forms.NullBooleanField):
    """Field for true, false or no value."""

    widget = forms.TextInput

    _MEANT: ClassVar = {"": None, "1": True, "true": True, "on": True, "0": False, "false": False}

    def to_python(self, value: Any) -> Any:
        try:
            return self._MEANT[str("" if value is None else value).strip().lower()]
        except KeyError:
            raise ValidationError("Enter true or false.") from None

    def validate(self, value: Any) -> None:
        """Accept all results of `to_python`."""


class TruthFilter(django_filters.BooleanFilter):  # type: ignore[misc]
    """Filter by true or false."""

    field_class = TruthField


class DayInput(forms.DateInput):
    """Input of a day."""

    input_type = "date"

    def format_value(self, value: Any) -> str:
        return str(value or "")[:10]


class SeveralValues(forms.TextInput):
    """Input of all values of a name in the query string, of which the first is drawn."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        return [text for text in data.getlist(name) if text.strip()]

    def format_value(self, value: Any) -> str:
        return value[0] if value else ""


class AnyOfFilter(django_filters.Filter):  # type: ignore[misc]
    """Filter by any of several values."""

    field_class = forms.Field

    def __init__(self, **options: Any) -> None:
        super().__init__(lookup_expr="in", widget=SeveralValues, **options)
        # Their fields are those of experiments, in lists of other rows too.
        words = {"type": "array", "items": {"type": "string"}, "description": options["help_text"]}
        extend_schema_field(words)(self)


class MomentField(IsoDateTimeField):  # type: ignore[misc]
    """A moment in UTC: PostgreSQL refuses offsets beyond 16 hours."""

    default_error_messages: ClassVar = {"invalid": "Enter a date, or a date and time, such as 2026-11-20."}

    def clean(self, value: Any) -> datetime | None:
        moment: datetime | None = super().clean(value)
        try:
            return None if moment is None else moment.astimezone(UTC)
        except OverflowError:
            raise ValidationError("Enter a date and time in the years 1 to 9999.") from None


class MomentFilter(django_filters.Filter):  # type: ignore[misc]
    """Filter by a moment."""

    field_class = MomentField

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        described = {"type": "string", "format": "date-time", "description": options["help_text"]}
        extend_schema_field(described)(self)


class ConditionsField(forms.CharField):
    """Field for conditions in the expression language."""

    def __init__(self, *, to_sql: Callable[[Expression, str], Q] = condition, **options: Any) -> None:
        super().__init__(**options)
        self._to_sql = to_sql

    def clean(self, value: Any) -> Expression | None:
        text = super().clean(value)
        try:
            return read_conditions(text, self._to_sql) if text else None
        except CannotExplore as error:
            # As a parameter, because the sentence may contain a percent sign.
            raise ValidationError("%(why)s", params={"why": str(error)}) from None


class ConditionsFilter(django_filters.Filter):  # type: ignore[misc]
    """Filter by conditions."""

    field_class = ConditionsField


def require_metric(name: str) -> None:
    """Raise ValidationError unless ``name`` is a metric."""
    if not is_metric(name):
        raise ValidationError("%(why)s.", params={"why": why_not_metric(name)})


def first_error(errors: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """Return the name and the sentence of the first error."""
    name, sentences = next(iter(errors.items()))
    return name, str(sentences[0])


class Order(django_filters.OrderingFilter):  # type: ignore[misc]
    """The order of a list, with ties broken by the primary key for stable pages."""

    def filter(self, rows: QuerySet[Any], value: Any) -> QuerySet[Any]:
        ordered: QuerySet[Any] = super().filter(rows, value)
        return ordered.order_by(*ordered.query.order_by, "pk") if value else ordered


class _OrderOrMetric(django_filters.fields.ChoiceField):  # type: ignore[misc]
    """A choice of an order, or ``metric:NAME``."""

    def valid_value(self, value: Any) -> bool:
        is_metric_order, name, _ = metric_order(str(value))
        if is_metric_order:
            require_metric(name)
        is_valid = is_metric_order or bool(super().valid_value(value))
        if not is_valid and is_metric(metric := str(value).removeprefix("-")):
            sign = "-" if str(value).startswith("-") else ""
            raise ValidationError("%(why)s", params={"why": f"Write {sign}metric:{metric} to order by this metric."})
        return is_valid


class MetricOrder(Order):
    """The order of a list of trials, in which a metric leaves the rows as they are.

    `dashboard.requests.trials.by_metric` sorts the pages.
    """

    field_class = _OrderOrMetric

    def filter(self, rows: QuerySet[Any], value: Any) -> QuerySet[Any]:
        return rows if value and any(metric_order(word)[0] for word in value) else super().filter(rows, value)


def metric_order(order: str) -> tuple[bool, str, bool]:
    """Return whether an order is by a metric, its name, and whether it descends."""
    word, prefix, name = order.removeprefix("-").partition("metric:")
    return bool(prefix) and not word, name, order.startswith("-")
