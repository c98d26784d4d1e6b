"""``?fields=a,b``: answers with some fields only; and read-only serializers."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from django.db.models import Model
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from dashboard.api.rest.filtering import refuse_unknown
from experiments.errors import alternatives

NAME: Final = "fields"
Row = TypeVar("Row", bound=Model)


def parameter(serializer: type[serializers.Serializer[Any]]) -> OpenApiParameter:
    """Return the description of ``fields`` for answers of ``serializer``."""
    names = {"type": "array", "items": {"type": "string", "enum": list(serializer().get_fields())}, "minItems": 1}
    words = "Names of fields, separated by commas: the answer has only these."
    return OpenApiParameter(NAME, names, explode=False, style="form", description=words)


def chosen(request: Request, serializer: type[serializers.Serializer[Any]]) -> list[str] | None:
    """Return the requested fields; None for all. Raise ValidationError."""
    if NAME not in request.query_params:
        return None
    all_names = list(serializer().get_fields())
    names = [name.strip() for text in request.query_params.getlist(NAME) for name in text.split(",")]
    if unknown := [name for name in names if name not in all_names]:
        raise ValidationError({NAME: [f"{unknown[0][:60]!r} is not a field{alternatives(unknown[0], all_names)}"]})
    return [name for name in all_names if name in names]


class RowSerializer(serializers.ModelSerializer[Row]):
    """Read-only serializer of a model."""

    def get_extra_kwargs(self) -> dict[str, Any]:
        return {name: {"read_only": True} for name in self.Meta.fields}


class Sparse(serializers.Serializer[Any]):
    """Serializer of only those fields that the context's ``fields`` name."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        names = self.context.get(NAME)
        return fields if names is None else {name: fields[name] for name in fields if name in names}


def refuse_others(request: Request) -> None:
    """Refuse query parameters other than ``fields``. Raise ValidationError."""
    refuse_unknown(request, {NAME})
