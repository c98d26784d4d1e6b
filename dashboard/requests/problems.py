"""Problem documents (RFC 9457), the format of all REST errors."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from django.http import JsonResponse

from experiments.common.storable import storable
from experiments.errors import FieldError

PROBLEM: Final = "application/problem+json"
"""The media type of a problem document."""


def problem(status: int, errors: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of an error; ``detail`` is its first sentence."""
    errors = storable(errors)  # a message may quote text that is no UTF-8
    first = ": ".join(part for part in (errors[0]["path"], errors[0]["message"]) if part)
    more = "" if len(errors) == 1 else f" ({len(errors) - 1} more)"
    return {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": f"{first}{more}",
        "errors": list(errors),
    }


def refusal(status: int, errors: Sequence[dict[str, Any]]) -> JsonResponse:
    """Return an error without Django REST framework."""
    return JsonResponse(problem(status, errors), status=status, content_type=PROBLEM)


def whole(message: object) -> dict[str, Any]:
    """Return an error of a whole request as one of the ``errors``."""
    return {"path": "", "message": str(message)}


def entry(error: FieldError) -> dict[str, Any]:
    """Return one of the ``errors`` of an answer."""
    plain: dict[str, Any] = {"path": error.path, "message": error.message}
    return plain if error.line is None else {**plain, "line": error.line}
