"""Addresses: the pages, REST, Django's admin and a health check."""

from django.contrib import admin
from django.urls import include, path

from config.health import health

handler500 = "dashboard.api.errors.server_error"

urlpatterns = [
    path("healthz", health, name="health"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("dashboard.api.urls")),
    path("", include("dashboard.urls")),
]
