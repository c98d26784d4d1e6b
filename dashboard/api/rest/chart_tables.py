"""Tables behind charts as JSON or CSV."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import one_of, refuse_unknown
from dashboard.charts.tables import ChartTables

NAME: Final = r"charts/(?P<name>[-a-zA-Z0-9_]+)"


class ChartSerializer(serializers.Serializer[Any]):
    """A chart of a page."""

    name = serializers.CharField()
    title = serializers.CharField()
    section = serializers.CharField()
    views = serializers.ListField(child=serializers.CharField(), help_text="Empty if there is only one.")


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": ["number", "string", "null"]}}})
class RowsField(serializers.ListField):
    """Values in the order of the columns; null for missing values."""


class ChartTableSerializer(serializers.Serializer[Any]):
    """The table behind a chart."""

    name = serializers.CharField()
    title = serializers.CharField()
    view = serializers.CharField(allow_null=True)
    columns = serializers.ListField(child=serializers.CharField())
    rows = RowsField()


PARAMETERS: Final = (
    OpenApiParameter("name", str, "path", description="As listed by `charts/`."),
    OpenApiParameter("view", str, description="One of the chart's views; by default the first."),
    OpenApiParameter("form", str, enum=["json", "csv"], description="`json` by default."),
)
RESPONSES: Final = {
    (200, "application/json"): ChartTableSerializer,
    (200, "text/csv"): OpenApiTypes.STR,
    **schema.errors(400, 404),
}


def table_answer(request: Request, charts: ChartTables, name: str) -> HttpResponse:
    """Return the table behind a chart. Raise ValidationError, NotFound."""
    refuse_unknown(request, {"view", "form"})
    form = one_of(request, "form", ("json", "csv"))
    try:
        table = charts.table(name, request.query_params.get("view"))
    except LookupError as error:
        raise NotFound(f"{str(error.args[0])[0].upper()}{str(error.args[0])[1:]}.") from None
    if form == "json":
        return Response(asdict(table))
    headers = {"Content-Disposition": f'attachment; filename="{charts.of.replace(" ", "-")}-{name}.csv"'}
    return HttpResponse(table.csv(), content_type="text/csv; charset=utf-8", headers=headers)
