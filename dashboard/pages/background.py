"""Background tasks of the user: progress, files and cancellation."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from dashboard.background.exports import filename, may_fetch
from dashboard.requests import ranges
from experiments.models import BackgroundTask


@require_GET
def tasks(request: HttpRequest) -> HttpResponse:
    """Show the user's tasks, newest first; a refresh by htmx gets only the table."""
    rows = BackgroundTask.objects.filter(owner=request.user.pk).select_related("experiment")
    return _answer(request, list(rows), "Background tasks")


@require_GET
def task(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one task and, when it is done, its file."""
    row = _task_of_user(request, pk)
    return _answer(request, [row], row.title)


@require_GET
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download the file of a finished task."""
    row = _task_of_user(request, pk)
    if not row.has_file or not row.file.is_file():
        raise Http404("There is no such file, or it has expired.")
    if not may_fetch(request.user, row):
        raise Http404("The table contains projects that you no longer see.")
    return ranges.download(request, row.file, filename(row))


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel an unfinished task, or delete the file of a finished one."""
    _task_of_user(request, pk).forget()
    return redirect("tasks")


def _answer(request: HttpRequest, rows: list[BackgroundTask], title: str) -> HttpResponse:
    context = {"place": "", "title": title, "tasks": rows, "waits": any(not row.is_over for row in rows)}
    template = "home/_tasks.html" if request.htmx else "home/tasks.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _task_of_user(request: HttpRequest, pk: int) -> BackgroundTask:
    return get_object_or_404(BackgroundTask.objects.select_related("experiment"), pk=pk, owner=request.user.pk)
