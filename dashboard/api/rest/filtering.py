"""Query parameters, strict about names: filters of lists, and single values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, TypeVar

from django.db.models import Model, QuerySet
from django_filters import BooleanFilter, MultipleChoiceFilter, NumberFilter
from django_filters.rest_framework import DjangoFilterBackend
from django_filters.utils import translate_validation
from drf_spectacular.utils import OpenApiParameter
from rest_framework import mixins, viewsets
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.filters import ListFilter
from dashboard.filters.fields import AnyOfFilter, MomentFilter
from experiments.errors import alternatives

PAGE: Final = ("limit", "offset", "cursor")
Filters = TypeVar("Filters", bound=ListFilter)
Row = TypeVar("Row", bound=Model, covariant=True)


_NO_TEXT: Final = (BooleanFilter, NumberFilter, MultipleChoiceFilter, MomentFilter)


class StrictFilterBackend(DjangoFilterBackend):  # type: ignore[misc]
    """Filter backend that refuses unknown names."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        filters = self.get_filterset_class(view, queryset)
        refuse_unknown(request, {*filters.base_filters, *PAGE, *getattr(view, "more_parameters", ())})
        refuse_empty(request, filters)
        filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return filtered


def checked(filters: Filters) -> Filters:
    """Return valid filters. Raise ValidationError with the errors of all names."""
    if not filters.is_valid():
        raise translate_validation(filters.errors)
    return filters


def described(filters: type[ListFilter]) -> list[OpenApiParameter]:
    """Return the OpenAPI parameters of filters for a view that is no model's list."""
    return [
        OpenApiParameter(
            name,
            bool
            if isinstance(list_filter, BooleanFilter)
            else datetime
            if isinstance(list_filter, MomentFilter)
            else str,
            many=isinstance(list_filter, AnyOfFilter | MultipleChoiceFilter),
            enum=_fixed_choices(list_filter),
            description=list_filter.extra["help_text"],
        )
        for name, list_filter in filters.base_filters.items()
    ]


def _fixed_choices(described: Any) -> list[str] | None:
    choices = described.extra.get("choices")
    return None if choices is None or callable(choices) else [word for word, _ in choices]


def refuse_empty(request: Request, filters: type[ListFilter]) -> None:
    """Refuse typed filters without a value. Raise ValidationError."""
    wrong: dict[str, Any] = {
        name: ["is empty: give a value or leave it out"]
        for name, list_filter in filters.base_filters.items()
        if isinstance(list_filter, _NO_TEXT) and not all(text.strip() for text in request.query_params.getlist(name))
    }
    if wrong:
        raise ValidationError(wrong)


def clean(request: Request, name: str) -> str:
    """Return the trimmed value of ``name``; '' by default."""
    return str(request.query_params.get(name, "")).strip()


def one_of(request: Request, name: str, allowed: Sequence[str]) -> str:
    """Return the value of ``name``, by default the first. Raise ValidationError."""
    if name not in request.query_params:
        return allowed[0]
    value = clean(request, name)
    if value not in allowed:
        raise ValidationError({name: [f"must be one of {', '.join(allowed)}"]})
    return value


def refuse_unknown(request: Request, allowed: Collection[str]) -> None:
    """Refuse query parameters with unknown names. Raise ValidationError."""
    wrong: dict[str, Any] = {
        name: [f"is not known here{alternatives(name, sorted(allowed))}"]
        for name in request.query_params
        if name not in allowed
    }
    if wrong:
        raise ValidationError(wrong)


class ListViewSet(mixins.ListModelMixin, viewsets.GenericViewSet[Row]):
    """A list in pages with the query parameters ``list_parameters``."""

    list_parameters: ClassVar[tuple[str, ...]] = ()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        refuse_unknown(request, {*PAGE, *self.list_parameters})
        return super().list(request, *args, **kwargs)


class RowsViewSet(mixins.RetrieveModelMixin, ListViewSet[Row]):
    """A list in pages and each of its rows."""
