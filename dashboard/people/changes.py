"""Log of changes, for maintainers of a project and superusers."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from dashboard.people.projects import managed
from experiments.models import Project
from experiments.models.changes import changes

PAGE: Final = 100


@require_GET
def of_project(request: HttpRequest, slug: str) -> HttpResponse:
    return _page(request, managed(request, slug))


@require_GET
def everything(request: HttpRequest) -> HttpResponse:
    if not request.user.is_superuser:
        raise PermissionDenied
    return _page(request, None)


def _page(request: HttpRequest, project: Project | None) -> HttpResponse:
    page = Paginator(changes(project), PAGE).get_page(request.GET.get("page"))
    rows: list[dict[str, Any]] = [{"entry": entry, "fields": entry.changes_display_dict.items()} for entry in page]
    context = {"place": "projects", "project": project, "rows": rows, "page": page}
    return render(request, "people/changes.html", context)
