"""Every address of the site as the resolver knows it, and who is let in there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from django.contrib.admindocs.views import simplify_regex
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.resolvers import RoutePattern

PAGE_METHODS = ("GET", "POST")
REST_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def addresses() -> Iterator[str]:
    """Return the routes in the resolver's order, parameters as ``<name>``."""
    seen = {}
    for route in _routes("", get_resolver().url_patterns):
        seen["admin/" if route.startswith("admin/") else route] = None
    yield from seen


def _routes(before: str, patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        text = str(pattern.pattern)
        is_route = isinstance(pattern.pattern, RoutePattern)
        route = re.sub(r"<\w+:(\w+)>", r"<\1>", text) if is_route else simplify_regex(text).removeprefix("/")
        if isinstance(pattern, URLResolver):
            yield from _routes(before + route, pattern.url_patterns)
        else:
            yield before + route


def methods(address: str) -> tuple[str, ...]:
    return REST_METHODS if address.startswith("api/") else PAGE_METHODS


def filled(address: str, things: Mapping[str, Mapping[str, object]]) -> str:
    """Return the address with a real object for each parameter.

    `things` has them by the beginning of the address, or for all of it.
    """
    whole = address.removeprefix("api/v1/")
    objects = {**things.get(whole.split("<")[0], {}), **things.get(whole, {})}
    return "/" + re.sub(r"<(\w+)>", lambda match: str(objects[match[1]]), address)


def outcome(response: HttpResponseBase) -> str:
    """Return the letter of an answer by the table; '' for other methods."""
    status, target = response.status_code, response.headers.get("Location", "")
    if status == 401 or (status == 302 and target.split("?")[0] in (reverse("login"), reverse("admin:login"))):
        return "s"
    if status == 302 and target.split("?")[0] == reverse("account_reauthenticate"):
        return "r"
    return {403: "n", 404: "h", 405: "", 303: ""}.get(status, "i")
