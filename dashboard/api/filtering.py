"""What stands behind the question mark, strict about names: the filters of dashboard/filters.py, and single words."""

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
        filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        return filtered


def clean(request: Request, name: str) -> str:
    """The value of ``name``, trimmed; '' when it is not there."""
    return str(request.query_params.get(name, "")).strip()


def refuse_unknown(request: Request, known: set[str]) -> None:
    """A misspelt name must not answer with something else. Raise ValidationError."""
    wrong: dict[str, Any] = {
        name: [f"is not known here; known: {', '.join(sorted(known))}"]
        for name in request.query_params
        if name not in known
    }
    if wrong:
        raise ValidationError(wrong)
