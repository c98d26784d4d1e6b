"""What is done for the reader in the background: how far it is, its file, and an end to it."""

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
    """Own tasks, newest first; a refresh by htmx gets the table alone."""
    own = BackgroundTask.objects.filter(owner=request.user.pk).select_related("experiment")
    return _answer(request, list(own), "Background tasks")


@require_GET
def task(request: HttpRequest, pk: int) -> HttpResponse:
    """One of them, until it is over; then its file can be fetched here."""
    own = _own(request, pk)
    return _answer(request, [own], own.title)


@require_GET
def file(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The file of an export that is done."""
    own = _own(request, pk)
    if not own.has_file or not own.file.is_file():
        raise Http404("There is no such file, or not any more.")
    if not may_fetch(request.user, own):
        raise Http404("The table was made of projects that you do not see any more.")
    return ranges.download(request, own.file, filename(own))


@require_POST
def forget(request: HttpRequest, pk: int) -> HttpResponse:
    """End a task that waits or runs, and delete the file of one that is done."""
    _own(request, pk).forget()
    return redirect("tasks")


def _answer(request: HttpRequest, own: list[BackgroundTask], title: str) -> HttpResponse:
    context = {"place": "", "title": title, "tasks": own, "waits": any(not each.is_over for each in own)}
    template = "home/_tasks.html" if request.htmx else "home/tasks.html"  # type: ignore[attr-defined]
    return render(request, template, context)


def _own(request: HttpRequest, pk: int) -> BackgroundTask:
    return get_object_or_404(BackgroundTask.objects.select_related("experiment"), pk=pk, owner=request.user.pk)
