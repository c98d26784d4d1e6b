"""``/api/v1/compare/``: two to eight trials, configurations or experiments side by side."""

from __future__ import annotations

from typing import Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.rest import schema
from dashboard.api.rest.filtering import clean, one_of, refuse_unknown
from experiments.models import Measurement
from experiments.selectors.compared_members import FEWEST, MOST
from experiments.selectors.comparison import compare

_MEMBER: Final = {"type": "string", "pattern": r"^(e:[-a-zA-Z0-9_]{1,100}|[ct]:[0-9]{1,18})$"}
_PARAMETERS: Final = [
    OpenApiParameter(
        "of",
        {"type": "array", "items": _MEMBER, "minItems": FEWEST, "maxItems": MOST, "uniqueItems": True},
        required=True,
        description="`e:slug`, `c:key` or `t:key`; two to eight.",
    ),
    OpenApiParameter("baseline", _MEMBER, description="One of them; the first when left out."),
    OpenApiParameter(
        "at",
        {"type": "integer", "minimum": 0},
        description="Position among the common points, from 0; left out, where what decides changed most.",
    ),
    OpenApiParameter("scope", str, enum=Measurement.Scope.values, description="Traffic that the metrics are about."),
]


class CompareView(APIView):
    """The same comparison as the page /compare/ shows."""

    @extend_schema(parameters=_PARAMETERS, responses={200: OpenApiTypes.OBJECT, **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Differences of configuration and environment, and every metric with ratio, interval, test and effect size."""
        refuse_unknown(request, {each.name for each in _PARAMETERS})
        scope = one_of(request, "scope", Measurement.Scope.values)
        tokens = [t for text in request.query_params.getlist("of") for t in text.split(",")]
        baseline, at = clean(request, "baseline"), clean(request, "at")
        return Response(compare(request.user, tokens, baseline=baseline, at=at, scope=scope).to_dict())
