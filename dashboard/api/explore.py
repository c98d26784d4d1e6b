"""``/api/v1/compare/`` and ``explore/``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from dashboard.api.background import BackgroundTaskSerializer, accepted
from dashboard.api.rest import schema
from dashboard.api.rest.filtering import clean, described, one_of, refuse_empty, refuse_unknown
from dashboard.api.trials.rows import FileRenderer
from dashboard.background.exports import FORMATS, exported
from dashboard.filters import ConfigurationFilter
from dashboard.requests.explore import AXES, NAMES, ORDERS, ROWS, cells_as_data, parse_question
from experiments.models import BackgroundTask, Measurement
from experiments.selectors.compared_members import FEWEST, MOST
from experiments.selectors.comparison import compare
from experiments.selectors.explorer import flagged, pivot

_MEMBER: Final = {"type": "string", "pattern": r"^(e:[-a-zA-Z0-9_]{1,100}|[ct]:[0-9]{1,18})$"}
_COMPARED: Final = [
    OpenApiParameter(
        "of",
        {"type": "array", "items": _MEMBER, "minItems": FEWEST, "maxItems": MOST, "uniqueItems": True},
        required=True,
        description="`e:slug`, `c:key` or `t:key`; two to eight.",
    ),
    OpenApiParameter("baseline", _MEMBER, description="One of them; the first by default."),
    OpenApiParameter(
        "at",
        {"type": "integer", "minimum": 0},
        description="Position among the common points, from 0; by default the point where the deciding metric changed most.",
    ),
    OpenApiParameter("scope", str, enum=Measurement.Scope.values, description="Traffic that the metrics are about."),
]


class CompareView(APIView):
    """The comparison of the page /compare/."""

    @extend_schema(parameters=_COMPARED, responses={200: OpenApiTypes.OBJECT, **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Compare configurations, environments and metrics."""
        refuse_unknown(request, {parameter.name for parameter in _COMPARED})
        scope = one_of(request, "scope", Measurement.Scope.values)
        tokens = [t for text in request.query_params.getlist("of") for t in text.split(",")]
        baseline, at = clean(request, "baseline"), clean(request, "at")
        return Response(compare(request.user, tokens, baseline=baseline, at=at, scope=scope).to_dict())


_AXES: Final = {
    "y": "Metric of the vertical axis; `elapsed_s` by default.",
    "x": "Parameter or metric of the horizontal axis; `hosts` by default.",
    "colour": "Parameter that separates the series.",
    "facet": "Parameter that separates the panels.",
    "scope": "Traffic that the metrics are about, `all` or `mpi`.",
    "columns": "Metrics of the table, separated by commas.",
    "order": "Order of the table: `hosts`, `name`, or newest first.",
}
_WORDS: Final = {"scope": Measurement.Scope.values, "order": [name for name in ORDERS if name]}
_PARAMETERS: Final = sorted(
    [
        *described(ConfigurationFilter),
        *(OpenApiParameter(name, str, enum=_WORDS.get(name), description=_AXES[name]) for name in AXES),
    ],
    key=lambda parameter: parameter.name,
)


class ExploreView(APIView):
    """The pivot of the page /explore/ as data."""

    @extend_schema(parameters=_PARAMETERS, responses={200: OpenApiTypes.OBJECT, **schema.errors(400)})
    def get(self, request: Request) -> Response:
        """Return the cells of the pivot with their numbers of configurations and trials."""
        refuse_unknown(request, NAMES)
        refuse_empty(request, ConfigurationFilter)
        question = parse_question(request.user, request._request.GET)
        # Always pooled: each cell has its number of configurations.
        query, matched = replace(question.query, pooled=True, published_apart=False), question.counts()
        pivoted = pivot(question.configurations, query)
        return Response(
            {
                "x": query.x,
                "y": query.y,
                "colour": query.colour or None,
                "facet": query.facet or None,
                "configurations": matched.total,
                "flagged_left_out": flagged(question.configurations, query),
                "cut": pivoted.cut,
                "cells": cells_as_data(pivoted),
            }
        )


class ExploreExportView(APIView):
    """Matching configurations, trials or measurements as a file."""

    renderer_classes = (JSONRenderer, FileRenderer)

    @extend_schema(
        parameters=[
            *_PARAMETERS,
            OpenApiParameter("rows", str, enum=list(ROWS), description="Content of a row; configurations by default."),
            OpenApiParameter("every", bool, description="Of trials, also those that enter no statistics."),
            OpenApiParameter("form", str, "path", enum=list(FORMATS)),
        ],
        responses={
            (200, "text/csv"): OpenApiTypes.BINARY,
            (200, "application/json"): {"type": "array", "items": {"type": "object", "additionalProperties": {}}},
            (200, "application/jsonl"): OpenApiTypes.BINARY,
            (200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY,
            (200, "application/csvm+json"): {"type": "object", "additionalProperties": {}},
            202: BackgroundTaskSerializer,
            **schema.errors(400, 404, 429),
        },
    )
    def get(self, request: Request, form: str) -> Any:
        """Export matching rows as a file; `csvm` defines the columns.

        A large table is made in the background: 202 with the URL of the task.
        """
        if form not in FORMATS:
            raise NotFound(f"There is no export {form}; there are {', '.join(FORMATS)}.")
        refuse_unknown(request, NAMES | {"rows", "every"})
        refuse_empty(request, ConfigurationFilter)
        made = exported(request.user, request._request.GET, form, request.build_absolute_uri("/").rstrip("/"))
        return accepted(made, request) if isinstance(made, BackgroundTask) else made
