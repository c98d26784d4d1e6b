"""URLs of exports and imports."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from dashboard.exchange import client, pages

urlpatterns: list[URLPattern | URLResolver] = [
    path("bundles/new/", pages.new_bundle, name="bundle"),
    path("client/<str:name>", client.wheel, name="client-wheel"),
    path("imports/", pages.import_page, name="import"),
    path("experiments/<slug:slug>/notebook.ipynb", pages.notebook, name="experiment-notebook"),
]
