"""Quotas: use and limits of the user's projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from analysis.numbers import plural
from experiments.access import visible_projects
from experiments.library import PUBLISHED_PROJECT
from experiments.models import Project
from experiments.selectors.quotas import Quota, quotas_of

_THEN: Final = {
    "queued_trials": "more trials are refused until fewer are queued",
    "machine_hours": "its trials wait until the usage of the last 30 days falls",
    "disk_gib": "new trials are refused until files are deleted, also in the trash",
    "capture_gib": "new trials with a capture are refused until captures are deleted",
}
"""Effects of reached limits."""


_LITTLE: Final = 0.01


@require_GET
def quotas(request: HttpRequest) -> HttpResponse:
    """Show a row for each project of the user."""
    projects = list(visible_projects(request.user).exclude(slug=PUBLISHED_PROJECT).order_by("name", "slug"))
    taken = quotas_of(projects)
    rows = [(project, taken[project.pk]) for project in projects]
    context = {"place": "home", "rows": rows, "answer": answer_words(rows)}
    return render(request, "home/quotas.html", context)


def answer_words(rows: Sequence[tuple[Project, Sequence[Quota]]]) -> str:
    """Return the used-up or nearest limit and its effect in words."""
    limited = [(project, quota) for project, quotas in rows for quota in quotas if quota.most]
    used_up = [(project, quota) for project, quota in limited if quota.is_used_up]
    if used_up:
        project, quota = used_up[0]
        more = f"; {plural(len(used_up) - 1, 'other limit is', 'other limits are')} used up too" if used_up[1:] else ""
        return f"{project.name} has used up {_of(quota)}: {_THEN[quota.name]}{more}."
    if limited:
        project, quota = max(limited, key=lambda pair: pair[1].used / pair[1].most)
        if quota.used < _LITTLE * quota.most:
            return "No quota is used up: all usage is below 1 %."
        return (
            f"No quota is used up. {project.name} is nearest to one with {_of(quota)}; beyond it {_THEN[quota.name]}."
        )
    return "Your projects have no quotas." if rows else ""


def _of(quota: Quota) -> str:
    return f"{quota.words} ({quota.title.lower()})"
