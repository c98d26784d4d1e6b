"""``/api/v1/metrics/``: the catalogue: what every number is called, its unit, which direction is better, and its definition."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.catalogue import METRICS, Direction, Section, Shape
from dashboard.api.rest import schema
from dashboard.api.rest.filtering import refuse_unknown


class MetricSerializer(serializers.Serializer[Any]):
    """One metric. `unit` is for readers: `1` for a count or factor, `share` for a ratio that is read in per cent."""

    id = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field, not the option of fields
    unit = serializers.CharField()
    direction = serializers.ChoiceField(choices=get_args(Direction), help_text="Which is better.")
    definition = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # a field, not the option of fields
    section = serializers.ChoiceField(choices=get_args(Section))
    headline = serializers.BooleanField()
    shape = serializers.ChoiceField(choices=get_args(Shape), help_text="Curves and tables are in `trials/ID/wire/`.")


class MetricsView(APIView):
    """The catalogue."""

    @extend_schema(operation_id="metrics_list", responses={200: MetricSerializer(many=True), **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Every metric of the catalogue, in its order; figures of programs are with their workloads."""
        refuse_unknown(request, set())
        return Response(MetricSerializer([asdict(metric) for metric in METRICS.values()], many=True).data)
