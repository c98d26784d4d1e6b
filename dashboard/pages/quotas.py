"""What the reader's projects took of the installation, and how much they may."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from experiments.access import visible_projects
from experiments.library import PUBLISHED_PROJECT
from experiments.selectors.quotas import quotas_of


@require_GET
def quotas(request: HttpRequest) -> HttpResponse:
    """A row for each project of the reader."""
    projects = list(visible_projects(request.user).exclude(slug=PUBLISHED_PROJECT).order_by("name", "slug"))
    taken = quotas_of(projects)
    rows = [(project, taken[project.pk]) for project in projects]
    return render(request, "home/quotas.html", {"place": "home", "rows": rows})
