"""``/api/v1/history/``: configurations with a history, and one of them over time."""

from __future__ import annotations

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import checked, clean, described, refuse_empty, refuse_unknown
from dashboard.filters import HistoryFilter
from experiments.metrics import is_metric
from experiments.models import Configuration
from experiments.selectors.history import history_of
from experiments.selectors.history_list import histories, histories_with_steps, with_histories

FEW: Final = 10
MOST: Final = 50
"""Histories in one answer; each is read and analysed."""

_WHOLE: Final = {"type": "integer", "minimum": 0, "maximum": 10**11 - 1}
_LIST: Final = [
    *described(HistoryFilter),
    OpenApiParameter("limit", _WHOLE, description=f"At most {MOST}; {FEW} by default."),
    OpenApiParameter("offset", _WHOLE, description="How many of the newest to skip."),
]


class HistoriesView(APIView):
    """Configurations with enough trials on one cluster for a step to be found."""

    @extend_schema(
        operation_id="history_list", parameters=_LIST, responses={200: OpenApiTypes.OBJECT, **schema.errors(400)}
    )
    def get(self, request: Request) -> Response:
        """List histories of elapsed time; `more` is true if others follow."""
        refuse_unknown(request, {parameter.name for parameter in _LIST})
        refuse_empty(request, HistoryFilter)
        filters = checked(HistoryFilter(request.query_params, with_histories(request.user)))
        limit, offset = _whole(request, "limit", FEW, MOST), _whole(request, "offset", 0, 2**31 - 1)
        rows, more = histories(filters.qs, first=offset, most=limit, ordering=filters.order)
        listed = [
            row for row in histories_with_steps(request.user, rows) if row.history.flagged or not filters.only_flagged
        ]
        return Response({"results": [row.to_dict() for row in listed], "more": more})


def _whole(request: Request, name: str, default: int, most: int) -> int:
    if name not in request.query_params:
        return default
    text = clean(request, name)
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise ValidationError({name: ["is not a whole number"]})
    return min(int(text), most)


class HistoryView(APIView):
    """Trials of a configuration on a cluster, oldest first, with steps between them."""

    @extend_schema(
        parameters=[OpenApiParameter("metric", str, description="`elapsed_s` by default.")],
        responses={200: OpenApiTypes.OBJECT, **schema.errors(400, 404)},
    )
    def get(self, request: Request, configuration: str, cluster: str) -> Response:
        """Return values, steps with simultaneous changes, and baseline."""
        refuse_unknown(request, {"metric"})
        metric = clean(request, "metric") or "elapsed_s"
        if not is_metric(metric):
            raise ValidationError({"metric": ["is not a metric"]})
        try:
            return Response(history_of(request.user, configuration, cluster, metric).to_dict())
        except Configuration.DoesNotExist:
            raise NotFound("No visible trial of this configuration on this cluster is in the statistics.") from None
