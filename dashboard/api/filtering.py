"""The filters of dashboard/filters.py on a list, strict about names."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from dashboard.filters import unknown_names

_OF_THE_PAGE: Final = frozenset({"limit", "offset"})


class StrictFilterBackend(DjangoFilterBackend):  # type: ignore[misc]
    """Refuses unknown names: a misspelt filter must not answer with everything."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        known = self.get_filterset_class(view, queryset).base_filters
        unknown = unknown_names(request.query_params, known, besides=_OF_THE_PAGE)
        if unknown:
            names = ", ".join(sorted(known))
            raise ValidationError({name: [f"is not a filter; known: {names}"] for name in unknown})
        found: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return found
