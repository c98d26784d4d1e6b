"""Addresses: the pages, REST, Django's admin and a health check."""

from collections.abc import Iterable, Iterator
from typing import Any

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.urls import include, path

from config.health import health, metrics

# The administration has no sign-in of its own, which would know no second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

handler400 = "dashboard.api.rest.errors.bad_request"
handler500 = "dashboard.api.rest.errors.server_error"

urlpatterns = [
    path("healthz", health, name="health"),
    path("metrics", metrics, name="monitoring"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("dashboard.api.urls")),
    path("", include("dashboard.urls")),
]


def _first_words(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    """What addresses begin with, up to their first slash."""
    for each in patterns:
        begin = before + str(each.pattern)
        if "/" in begin or not hasattr(each, "url_patterns"):
            yield begin.split("/")[0]
        else:
            yield from _first_words(each.url_patterns, begin)


if settings.PREFIX and settings.PREFIX.split("/")[1] in {"static", *_first_words(urlpatterns)}:
    # A proxy may take it off before or leave that to us; nobody could tell which of the two it did.
    raise ImproperlyConfigured(
        f"RANKWIRE_PREFIX must not be {settings.PREFIX!r}: pages of Rankwire have addresses that begin so."
    )
