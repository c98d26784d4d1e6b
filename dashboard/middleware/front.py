"""Limits of request bodies, sign-ins and processor time; headers of all answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import Resolver404, get_script_prefix, resolve, reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from psycopg.errors import DeadlockDetected, ForeignKeyViolation, QueryCanceled, UniqueViolation

from analysis.numbers import plural
from dashboard.requests.concurrency_limits import RETRY_AFTER_S, Busy
from dashboard.requests.problems import refusal, whole
from experiments.common import budget
from experiments.errors import StaleTrial

SIGN_INS_AT_ONCE: Final = 2
"""Per web process, with a password (0.1 s of a core), and through the provider (5 s without its answer)."""
MOST_ACCOUNT_BYTES: Final = 64 << 10
"""Body of a request of the account pages, which store a key as it was sent."""
_PROVIDER: Final = "/account/oidc/"
_COSTLY: Final = (
    *("login", "account_signup", "account_reauthenticate", "account_change_password", "account_set_password"),
)
"""Names of the URLs that hash a password."""
_BUNDLES: Final = ("import", "api:imports")
"""Names of the URLs that import results."""
_ADVICE: Final = {413: "Send less at once, or import a larger bundle with script/manage import on the server."}
"""Advice by status."""
PERMISSIONS_POLICY: Final = ", ".join(
    f"{name}=()" for name in ("camera", "microphone", "geolocation", "payment", "usb", "display-capture")
)


_CONFLICTS: Final = (UniqueViolation, ForeignKeyViolation, DeadlockDetected)
"""Errors of the database if two requests change the same rows at once; a row may also be gone."""
log = structlog.get_logger()


class FrontMiddleware:
    """Refuses large bodies (413) and many concurrent sign-ins (429); adds headers.

    GET of an address that only forms are sent to, as after an error, leads to the page above it.
    Answers are private: only the user's browser caches them, and revalidates them.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self._signing_in, self._at_provider = (threading.BoundedSemaphore(SIGN_INS_AT_ONCE) for _ in range(2))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with budget.seconds(settings.REQUEST_CPU_SECONDS):
            response = self._answer(request)
        if response.status_code == 405 and request.method == "GET" and not request.path_info.startswith("/api/"):
            response = HttpResponseRedirect(_page_above(request.path_info), status=303)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        if not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_cache=True)
        # A page and its htmx parts share a URL: Back must show the page.
        patch_vary_headers(response, ("HX-Request", "HX-Target"))
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 409 if another request changed the same, 429 and 503 beyond limits."""
        if isinstance(error, budget.Exhausted):
            limit = plural(settings.REQUEST_CPU_SECONDS, "second")
            return refuse(request, 503, f"Stopped after {limit} of CPU time. Request less at once.")
        if isinstance(error.__cause__, QueryCanceled):  # config/front.py
            return refuse(request, 503, "The database took too long. Request less at once.")
        if isinstance(error, StaleTrial):
            return refuse(request, 409, str(error))
        is_gone = isinstance(error, ObjectDoesNotExist) and request.method not in ("GET", "HEAD")
        if is_gone or isinstance(error.__cause__, _CONFLICTS):
            log.warning("request_conflicted", path=request.path_info, reason=" ".join(str(error).split()))
            return refuse(request, 409, "Another request changed the same data at this moment. Try again.")
        if not isinstance(error, Busy):
            return None
        refusal = refuse(request, 429, str(error))
        refusal.headers["Retry-After"] = str(RETRY_AFTER_S)
        return refusal

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        length = request.META.get("CONTENT_LENGTH") or ""
        if length.isdecimal() and int(length) > (limit := limit_bytes(request.path_info)):
            most = plural(limit >> 20, "MiB", "MiB") if limit >> 20 else plural(limit >> 10, "KiB", "KiB")
            return refuse(request, 413, f"The request is larger than {most} and was not read.")
        if request.path_info.startswith(_PROVIDER):
            places = self._at_provider
        elif request.method == "POST" and request.path in map(reverse, _COSTLY):
            places = self._signing_in
        else:
            return self.get_response(request)
        if not places.acquire(blocking=False):
            refusal = refuse(request, 429, "Many users are signing in. Try again in a moment.")
            refusal.headers["Retry-After"] = "1"
            return refusal
        try:
            return self.get_response(request)
        finally:
            places.release()


def locked_out(request: HttpRequest, original: HttpResponse | None, credentials: Mapping[str, Any]) -> HttpResponse:
    """Return the answer to a sign-in after too many wrong passwords."""
    minutes = plural(int(settings.AXES_COOLOFF_TIME.total_seconds()) // 60, "minute")
    return refuse(request, 429, f"Too many wrong passwords for this name. Wait {minutes}, then try again.")


def limit_bytes(path_info: str) -> int:
    """Return the most bytes that the body of a request to this path may have.

    Bundles are larger than anything else that is sent; they are written to disk as they arrive.
    """
    if path_info.startswith("/account/"):
        return min(MOST_ACCOUNT_BYTES, int(settings.MAX_BODY_BYTES))
    try:
        name = resolve(path_info).view_name
    except Resolver404:
        name = ""
    return int(settings.IMPORT_LIMIT_BYTES) if name in _BUNDLES else settings.MAX_BODY_BYTES


def _page_above(path_info: str) -> str:
    """Return the URL of the nearest path above this one that has a view."""
    while True:
        path_info = path_info.rstrip("/").rpartition("/")[0] + "/"
        try:
            resolve(path_info)
        except Resolver404:
            continue
        return get_script_prefix().rstrip("/") + path_info


def refuse(request: HttpRequest, status: int, message: str) -> HttpResponse:
    if request.path_info.startswith("/api/"):
        return refusal(status, [whole(message)])
    context = {"message": message, "advice": _ADVICE.get(status), "signs_in": request.path == reverse("login")}
    return render(request, "people/refused.html", context, status=status)
