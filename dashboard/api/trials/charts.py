"""``/api/v1/trials/ID/charts/``: the charts of a trial's page, and the table behind each."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from dashboard.api.rest import chart_tables, schema
from dashboard.api.rest.filtering import refuse_unknown
from dashboard.panels.trial.chart_tables import charts_of


class ChartActions:
    """Addresses of one trial. Mixed into its view set, whose ``get_object`` judges who may see it."""

    @extend_schema(
        operation_id="trials_charts_list",
        responses={200: chart_tables.ChartSerializer(many=True), **schema.errors(400, 404, 409)},
    )
    @action(detail=True, methods=["get"], pagination_class=None, filter_backends=[])
    def charts(self, request: Request, pk: str) -> Response:
        """The charts of the trial's page: the names under which their tables are asked for."""
        trial: Any = self.get_object()  # type: ignore[attr-defined]  # of the view set
        refuse_unknown(request, set())
        return Response(charts_of(trial).listed())

    @extend_schema(parameters=[*chart_tables.PARAMETERS], responses={**chart_tables.RESPONSES, **schema.errors(409)})
    @action(detail=True, methods=["get"], url_path=chart_tables.NAME, filter_backends=[])
    def chart(self, request: Request, pk: str, name: str) -> HttpResponse:
        """The table behind a chart: what it draws, as numbers in the units of its columns' names."""
        trial: Any = self.get_object()  # type: ignore[attr-defined]  # of the view set
        return chart_tables.table_answer(request, charts_of(trial), name)
