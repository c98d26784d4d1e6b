"""Addresses of what leaves and enters."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from dashboard.exchange import bundles, imports

urlpatterns: list[URLPattern | URLResolver] = [
    path("bundles/new/", bundles.new, name="bundle"),
    path("imports/", imports.page, name="import"),
]
