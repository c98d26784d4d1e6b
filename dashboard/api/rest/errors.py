"""Error answers: problem documents of REST and error pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework.response import Response
from rest_framework.views import exception_handler

from dashboard.requests.concurrency_limits import RETRY_AFTER_S, Busy
from dashboard.requests.problems import PROBLEM, entry, problem, refusal, whole
from experiments.common import outage
from experiments.errors import (
    AccountUnchanged,
    BadBundle,
    CannotCompare,
    CannotExplore,
    CannotExport,
    IdempotencyConflict,
    InvalidSpec,
    LastMaintainer,
    LastSuperuser,
    NotPlain,
    ProgramInUse,
    ProjectInUse,
    ReadOnly,
    ReportChanged,
    StaleTrial,
    StoreUnavailable,
    Tampered,
)

_LONGEST_HOST: Final = 100
_UNMATCHED: Final = re.compile(r"No .+ matches the given query\.")
"""Django's own words for a missing row."""
_CONFLICTS: Final = (
    AccountUnchanged,
    IdempotencyConflict,
    LastMaintainer,
    LastSuperuser,
    NotPlain,
    ProgramInUse,
    ProjectInUse,
    ReadOnly,
    ReportChanged,
    StaleTrial,
    Tampered,
)
"""Conflicts with the current state (409)."""


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turn a known error into its answer; any other is a 500."""
    if isinstance(error, InvalidSpec):
        return _answer(400, [entry(field_error) for field_error in error.errors])
    if isinstance(error, CannotExplore):
        return _answer(400, [{"path": error.field, "message": str(error)}])
    if isinstance(error, CannotCompare | CannotExport):
        return _answer(400, [{"path": "of", "message": str(error)}])
    for kinds, status in ((BadBundle, 400), (_CONFLICTS, 409)):
        if isinstance(error, kinds):
            return _answer(status, [whole(error)])
    if isinstance(error, Busy | StoreUnavailable):
        status = 429 if isinstance(error, Busy) else 503
        return _answer(status, [whole(error)], headers={"Retry-After": str(RETRY_AFTER_S)})
    if isinstance(error, Http404) and _UNMATCHED.fullmatch(str(error)):
        return _answer(404, [whole("This does not exist, or you do not have access to it.")])
    response = exception_handler(error, context)
    if response is not None:
        response.data = problem(response.status_code, list(_entries(response.data)))
        response.content_type = PROBLEM
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an unhandled exception: 503 in an outage, else 500; JSON below ``/api/``."""
    if (reason := outage.outage_of(error := sys.exc_info()[1])) is not None and error is not None:
        reason.note(error)
        return unavailable(request, reason.sentence)
    if not request.path_info.startswith("/api/"):
        return defaults.server_error(request)
    message = "Rankwire could not answer this; the reason is in its log."
    return refusal(500, [whole(message)])


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a request that Django refuses; for an unknown host, name the setting."""
    sentence = "The request was not understood."
    if isinstance(exception, DisallowedHost):
        host = request.META.get("HTTP_HOST", "")[:_LONGEST_HOST]
        sentence = (
            f"Rankwire does not answer to the host name {host}. The administrator adds it to RANKWIRE_ALLOWED_HOSTS."
        )
    if request.path_info.startswith("/api/"):
        return refusal(400, [whole(sentence)])
    return HttpResponse(_page("This address cannot be answered", sentence), status=400)


def unavailable(request: HttpRequest, sentence: str) -> HttpResponse:
    """Return a 503 with Retry-After; the outage is logged once, not per request."""
    response: HttpResponse
    if request.path_info.startswith("/api/"):
        response = refusal(503, [whole(sentence)])
    else:
        response = HttpResponse(
            _page(
                "Rankwire is not available",
                f"{sentence} Load the page again in a few seconds. Running trials continue.",
            ),
            status=503,
        )
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    response._has_been_logged = True  # type: ignore[attr-defined]  # read by django.utils.log.log_response
    return response


def _page(title: str, sentence: str) -> str:
    return render_to_string("parts/refusal.html", {"title": title, "sentence": sentence})


def _answer(status: int, errors: Sequence[dict[str, Any]], headers: dict[str, str] | None = None) -> Response:
    return Response(problem(status, errors), status=status, headers=headers, content_type=PROBLEM)


def _entries(detail: Any, path: str = "") -> Iterator[dict[str, str]]:
    """Yield the framework's nested details with their paths."""
    if isinstance(detail, dict):
        for name, value in detail.items():
            segment = "" if name in {"detail", "non_field_errors", "__all__"} else str(name)
            yield from _entries(value, ".".join(part for part in (path, segment) if part))
    elif isinstance(detail, list | tuple):
        for value in detail:
            yield from _entries(value, path)
    else:
        yield {"path": path, "message": str(detail)}
