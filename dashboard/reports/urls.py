"""URLs of reports."""

from __future__ import annotations

from django.urls import URLPattern, path

from dashboard.reports import views, writing

urlpatterns: list[URLPattern] = [
    path("reports/", views.reports, name="reports"),
    path("reports/new/", writing.new, name="report-new"),
    path("reports/preview/", writing.preview, name="report-preview"),
    path("reports/parts/", writing.parts, name="report-parts"),
    path("reports/pin/", writing.pin, name="report-pin"),
    path("reports/<int:pk>/", views.report, name="report"),
    path("reports/<int:pk>/edit/", writing.edit, name="report-edit"),
    path("reports/<int:pk>/delete/", writing.delete, name="report-delete"),
    path("reports/<int:pk>/versions/<int:number>/", views.version, name="report-version"),
    path("reports/<int:pk>/versions/<int:number>/restore/", writing.restore, name="report-restore"),
    path("reports/<int:pk>/report.md", views.markdown, name="report-markdown"),
    path("reports/<int:pk>/report.html", views.html, name="report-html"),
    path("experiments/<slug:slug>/report/", writing.of_experiment, name="experiment-report"),
    path("experiments/<slug:slug>/pin/", writing.pin, name="experiment-pin"),
]
