"""Idempotency of forms (by token) and of REST (by ``Idempotency-Key``)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from experiments.errors import FieldError, InvalidSpec, QuotaExceeded, RepositoryError
from experiments.models import ApiToken, IdempotencyKey

FIELD: Final = "once"
"""Name of the form's token, which is new in each page."""
HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_PATTERN: Final = "^[!-~]{1,100}$"
_LONGEST_TOKEN: Final = 100
PARAMETER: Final = OpenApiParameter(
    HEADER,
    {"type": "string", "pattern": _PATTERN},
    OpenApiParameter.HEADER,
    description="A key of your choice for each request. Repeated within a day, it changes nothing and returns the first answer with "
    f"the header `{REPLAYED}: true`.",
)


def idempotent_response(request: Request, act: Callable[[], Response]) -> Response:
    """Return the answer of ``act``, or the first answer to the same key.

    Raise InvalidSpec for an invalid key, IdempotencyConflict for the key of another request, and what ``act`` raises.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not re.fullmatch(_PATTERN.strip("^$"), key):
        raise InvalidSpec([FieldError(HEADER, "is 1 to 100 visible characters of ASCII")])
    # Keys are per token: tokens of one user may see different objects.
    caller = f"token {request.auth.pk}" if isinstance(request.auth, ApiToken) else "browser"
    fingerprint = json.dumps([request.method, request.get_full_path(), request.data], default=str)
    answer, replayed = IdempotencyKey.once(request.user, f"rest {caller} {key}", fingerprint, lambda: _answer_of(act()))
    headers = {REPLAYED: "true"} if replayed else {}
    return Response(answer["body"], status=answer["status"], headers=answer["headers"] | headers)


def _answer_of(response: Response) -> dict[str, Any]:
    location = {name: response.headers[name] for name in ("Location",) if name in response.headers}
    body = json.loads(JSONRenderer().render(response.data))
    return {"status": response.status_code, "headers": location, "body": body}


def redirect_or_refuse(
    request: HttpRequest, act: Callable[[], HttpResponseRedirect], back: Any, words: Callable[[Any], str] = str
) -> HttpResponseRedirect:
    """Return `idempotent_redirect`; show a RepositoryError's words at ``back``."""
    try:
        return idempotent_redirect(request, act)
    except QuotaExceeded as error:
        messages.error(request, error.reason, extra_tags="bad quota")
    except RepositoryError as error:
        messages.error(request, words(error), extra_tags="bad")
    return redirect(back)


def idempotent_redirect(request: HttpRequest, act: Callable[[], HttpResponseRedirect]) -> HttpResponseRedirect:
    """Return the redirect of ``act``, or the first one of the same form."""
    token = request.POST.get(FIELD, "")[:_LONGEST_TOKEN]
    if not token:
        return act()
    sent = sorted((name, values) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken")
    # Other values in the same form are another request.
    fingerprint = json.dumps([request.path, sent])
    answer, replayed = IdempotencyKey.once(request.user, f"page {fingerprint}", fingerprint, lambda: {"url": act().url})
    if replayed:
        messages.info(request, "Duplicate submission ignored. Reload the page to submit again.")
    return HttpResponseRedirect(answer["url"])
