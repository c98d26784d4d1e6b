"""URLs: pages, REST, Django's admin, health checks."""

from allauth.account.decorators import secure_admin_login
from django.contrib import admin
from django.urls import include, path

from config.health import health, metrics

# Django's own sign-in of the admin would skip the second factor.
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
