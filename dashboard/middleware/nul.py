"""Refusal of NUL characters, which PostgreSQL cannot store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from rest_framework.views import APIView

from dashboard.middleware.front import refuse
from dashboard.requests.problems import entry, refusal
from experiments.common.storable import storable
from experiments.errors import FieldError

NUL: Final = "\0"
_SENTENCE: Final = "Null characters are not allowed."


class NulMiddleware:
    """Answers 404 to NUL in a path and 400 to NUL in a query or form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Replaced, not removed: a shorter path could name another object.
        request.path, request.path_info = storable(request.path), storable(request.path_info)
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        is_rest = issubclass(getattr(view, "cls", object), APIView)
        texts = dict(request.GET.lists())
        if request.method == "POST" and not is_rest:
            texts |= dict(request.POST.lists())
        wrong = [name for name, values in texts.items() if any(NUL in text for text in (name, *values))]
        if not wrong:
            return None
        if is_rest:
            return refusal(400, [entry(FieldError(name.replace(NUL, ""), _SENTENCE)) for name in wrong])
        return refuse(request, 400, _SENTENCE)
