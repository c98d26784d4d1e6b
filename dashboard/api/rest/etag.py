"""ETags and 304 answers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from django.http.response import HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from dashboard.api.rest import schema

if TYPE_CHECKING:
    from rest_framework.decorators import ViewSetAction

PARAMETER = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The `ETag` of an earlier answer: 304 if unchanged."
)
NOT_MODIFIED = {304: OpenApiResponse(description="Unchanged since the answer with this `ETag`.")}


def row_action(
    answer: Any, *parameters: OpenApiParameter, codes: Sequence[int] = (400, 404, 409)
) -> Callable[[schema.View], ViewSetAction[schema.View]]:
    """Declare an action that reads a part of one row and answers with an ETag."""
    answers = {200: answer, **NOT_MODIFIED}
    return schema.row_action("get", answers, codes, parameters=[PARAMETER, *parameters], **schema.UNFILTERED)


def of(data: Any) -> str:
    """Return the ETag of an answer, a digest of its content."""
    text = json.dumps(data, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def not_modified(request: Request, etag: str) -> HttpResponseBase | None:
    """Return 304 if the client has the answer with this ETag, else None."""
    answer: HttpResponseBase | None = get_conditional_response(request._request, etag=etag)
    if answer is not None:
        answer.headers["ETag"] = etag
    return answer


def answer(request: Request, data: Any) -> HttpResponseBase:
    """Return data with its ETag, or 304 if the client has it."""
    etag = of(data)
    return not_modified(request, etag) or Response(data, headers={"ETag": etag})
