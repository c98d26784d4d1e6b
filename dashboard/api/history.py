"""``/api/v1/history/<configuration>/<cluster>/``: one configuration over time."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api import schema
from dashboard.api.filtering import clean, refuse_unknown
from experiments.history import history_of
from experiments.metrics import is_metric
from experiments.models import Configuration


class HistoryView(APIView):
    """The trials of a configuration on a cluster, oldest first, with the steps between them."""

    @extend_schema(
        parameters=[OpenApiParameter("metric", str, description="`elapsed_s` when left out.")],
        responses={200: OpenApiTypes.OBJECT, **schema.errors(400, 404)},
    )
    def get(self, request: Request, configuration: str, cluster: str) -> Response:
        """Values, steps with what changed at the same trial, baseline, and whether a reader should look."""
        refuse_unknown(request, {"metric"})
        metric = clean(request, "metric") or "elapsed_s"
        if not is_metric(metric):
            raise ValidationError({"metric": ["is no metric"]})
        try:
            return Response(history_of(request.user, configuration, cluster, metric).to_dict())
        except Configuration.DoesNotExist:
            raise NotFound("No counted trial of this configuration on this cluster, or none for you to see.") from None
