"""Requests that are sent twice are done once: by the token of the form that was drawn, in REST by the header ``Idempotency-Key``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from drf_spectacular.utils import OpenApiParameter
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from experiments.errors import FieldError, InvalidSpec
from experiments.models import ApiToken, IdempotencyKey

FIELD: Final = "once"
"""Of a form: drawn anew with each page, sent again by a second press of its button."""
HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_PATTERN: Final = "^[!-~]{1,100}$"
_LONGEST_TOKEN: Final = 100
PARAMETER: Final = OpenApiParameter(
    HEADER,
    {"type": "string", "pattern": _PATTERN},
    OpenApiParameter.HEADER,
    description="Of your choice, one for each request: sent again within a day it changes nothing and gives the first answer, with "
    f"the header `{REPLAYED}: true`.",
)


def idempotent_response(request: Request, act: Callable[[], Response]) -> Response:
    """Return the answer of ``act``; where the request came before with the same key, its first answer. Judge roles before.

    Raise InvalidSpec for what is no key, KeyOfAnother for one that came with another request, and what ``act`` raises.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return act()
    if not re.fullmatch(_PATTERN.strip("^$"), key):
        raise InvalidSpec([FieldError(HEADER, "is 1 to 100 visible characters of ASCII")])
    # Of two tokens of one person each has keys of its own: what one may see the other may not have to.
    caller = f"token {request.auth.pk}" if isinstance(request.auth, ApiToken) else "browser"
    asked = json.dumps([request.method, request.get_full_path(), request.data], default=str)
    answer, replayed = IdempotencyKey.once(request.user, f"rest {caller} {key}", asked, lambda: _kept(act()))
    headers = {REPLAYED: "true"} if replayed else {}
    return Response(answer["body"], status=answer["status"], headers=answer["headers"] | headers)


def _kept(response: Response) -> dict[str, Any]:
    location = {name: response.headers[name] for name in ("Location",) if name in response.headers}
    body = json.loads(JSONRenderer().render(response.data))
    return {"status": response.status_code, "headers": location, "body": body}


def idempotent_redirect(request: HttpRequest, act: Callable[[], HttpResponseRedirect]) -> HttpResponseRedirect:
    """Return where ``act`` leads; a second press of the same button leads there too, and does nothing else. Judge roles before.

    Raise what ``act`` raises.
    """
    token = request.POST.get(FIELD, "")[:_LONGEST_TOKEN]
    if not token:
        return act()
    sent = sorted((name, values) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken")
    # Who goes back and chooses otherwise has asked for something else, so what was chosen is part of the key.
    asked = json.dumps([request.path, sent])
    answer, replayed = IdempotencyKey.once(request.user, f"page {asked}", asked, lambda: {"url": act().url})
    if replayed:
        messages.info(
            request, "This was sent twice and done once. To do it again, ask from a page that is newly loaded."
        )
    return HttpResponseRedirect(answer["url"])
