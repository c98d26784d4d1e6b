"""NUL, which PostgreSQL keeps in no text and nobody means: what holds it ends here, before any view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from rest_framework.views import APIView

from dashboard.requests.problems import entry, refusal
from experiments.common.storable import storable
from experiments.errors import FieldError

NUL: Final = "\0"


class NulMiddleware:
    """An address with NUL in it names nothing: 404. From the query and the form of a page NUL is dropped; REST, strict about what
    it is asked, refuses it at its name. REST's bodies need nothing here: their readers refuse what cannot be stored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        # Replaced, not dropped: with one character less the address could name another thing.
        request.path, request.path_info = storable(request.path), storable(request.path_info)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> HttpResponse | None:
        if issubclass(getattr(view, "cls", object), APIView):
            return _refusal(request.GET)
        request.GET = _without_nul(request.GET)  # type: ignore[assignment]  # not to be changed either
        if request.method == "POST":
            request.POST = _without_nul(request.POST)  # type: ignore[assignment]
        return None


def _refusal(query: QueryDict) -> HttpResponse | None:
    wrong = [name for name, texts in query.lists() if NUL in name or any(NUL in text for text in texts)]
    errors = [entry(FieldError(name.replace(NUL, ""), "Null characters are not allowed.")) for name in wrong]
    return refusal(400, errors) if errors else None


def _without_nul(given: QueryDict) -> QueryDict:
    pairs = [(name, text) for name, texts in given.lists() for text in texts]
    if not any(NUL in part for pair in pairs for part in pair):
        return given
    clean = QueryDict(mutable=True, encoding=given.encoding)
    for name, text in pairs:
        clean.appendlist(name.replace(NUL, ""), text.replace(NUL, ""))
    clean._mutable = False
    return clean
