"""URLs: pages, REST, Django's admin, health checks."""

from collections.abc import Iterable, Iterator
from typing import Any

from allauth.account.decorators import secure_admin_login
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponseNotFound
from django.urls import include, path
from django.views.generic import RedirectView

from config.health import health, metrics

# Django's own sign-in of the admin would skip the second factor.
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.site_header = admin.site.site_title = "Database administration"
admin.site.index_title = "Tables"

handler400 = "dashboard.api.rest.errors.bad_request"
handler500 = "dashboard.api.rest.errors.server_error"


def _no_page(request: HttpRequest, rest: str) -> HttpResponseNotFound:
    return HttpResponseNotFound()


urlpatterns = [
    # Django's own pages would name every row to all staff, and count no wrong passwords.
    path("admin/r/<path:rest>", _no_page),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account_change_password")),
    path("healthz", health, name="health"),
    path("metrics", metrics, name="monitoring"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("dashboard.api.urls")),
    path("", include("dashboard.urls")),
]


def _first_words(patterns: Iterable[Any], before: str = "") -> Iterator[str]:
    """Yield the first path component of each URL."""
    for pattern in patterns:
        start = before + str(pattern.pattern)
        if "/" in start or not hasattr(pattern, "url_patterns"):
            yield start.split("/")[0]
        else:
            yield from _first_words(pattern.url_patterns, start)


if settings.PREFIX and settings.PREFIX.split("/")[1] in {"static", *_first_words(urlpatterns)}:
    # A proxy may pass the prefix or remove it: a page with this name would make both readings valid.
    raise ImproperlyConfigured(
        f"RANKWIRE_PREFIX must not be {settings.PREFIX!r}: pages of Rankwire have URLs that begin so."
    )
