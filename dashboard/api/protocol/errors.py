"""Every error of REST has one shape: ``{"errors": [{"path", "message"}]}``, with ``line`` where YAML was sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from rest_framework.response import Response
from rest_framework.views import exception_handler

from dashboard.requests.seats import COME_AGAIN_S, Busy
from experiments.errors import (
    BadBundle,
    FieldError,
    InvalidSpec,
    KeyOfAnother,
    LastMaintainer,
    NotPlain,
    ReadOnly,
    ReportChanged,
    StaleTrial,
    Tampered,
)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn a known error into its answer; a surprise stays one (500)."""
    if isinstance(error, InvalidSpec):
        return Response({"errors": [entry(each) for each in error.errors]}, status=400)
    if isinstance(error, BadBundle):
        return Response({"errors": [{"path": "", "message": str(error)}]}, status=400)
    if isinstance(error, KeyOfAnother | LastMaintainer | NotPlain | ReadOnly | ReportChanged | StaleTrial | Tampered):
        return Response({"errors": [{"path": "", "message": str(error)}]}, status=409)
    if isinstance(error, Busy):
        again = {"Retry-After": str(COME_AGAIN_S)}
        return Response({"errors": [{"path": "", "message": str(error)}]}, status=429, headers=again)
    response = exception_handler(error, context)
    if response is not None:
        response.data = {"errors": list(_entries(response.data))}
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """A surprise, after it was logged: JSON to who asked REST, the page to others."""
    if not request.path_info.startswith("/api/"):
        return defaults.server_error(request)
    message = "Rankwire could not answer this; the reason is in its log."
    return JsonResponse({"errors": [{"path": "", "message": message}]}, status=500)


def entry(error: FieldError) -> dict[str, Any]:
    """Return one of the ``errors`` of an answer."""
    plain: dict[str, Any] = {"path": error.path, "message": error.message}
    return plain if error.line is None else {**plain, "line": error.line}


def _entries(detail: Any, path: str = "") -> Iterator[dict[str, str]]:
    """Flatten the framework's nested details; ``detail`` and ``non_field_errors`` belong to no field."""
    if isinstance(detail, dict):
        for name, value in detail.items():
            own = "" if name in {"detail", "non_field_errors", "__all__"} else str(name)
            yield from _entries(value, ".".join(part for part in (path, own) if part))
    elif isinstance(detail, list | tuple):
        for value in detail:
            yield from _entries(value, path)
    else:
        yield {"path": path, "message": str(detail)}
