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
    own = BackgroundTask.objects.filter(owner=request.user.pk).select_related("experiment")
    return _answer(request, list(own), "Background tasks")


@require_GET
def task(request: HttpRequest, pk: int) -> HttpResponse:
    """Show one task and, when it is done, its file."""
    own = _own(request, pk)
    return _answer(request, [own], own.title)


@require_GET
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download the file of a finished task."""
    own = _own(request, pk)
    if not own.has_file or not own.file.is_file():
        raise Http404("There is no such file, or it has expired.")
    if not may_fetch(request.user, own):
        raise Http404("The table contains projects that you no longer see.")
    return ranges.download(request, own.file, filename(own))


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel an unfinished task, or delete the file of a finished one."""
    _own(request, pk).forget()
    return redirect("tasks")


def _answer(request: HttpRequest, own: list[BackgroundTask], title: str) -> HttpResponse:
    context = {"place": "", "title": title, "tasks": own, "waits": any(not each.is_over for each in own)}
    template = "home/_tasks.html" if request.htmx else "home/tasks.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _own(request: HttpRequest, pk: int) -> BackgroundTask:
    return get_object_or_404(BackgroundTask.objects.select_related("experiment"), pk=pk, owner=request.user.pk)
