"""Bringing in what was measured elsewhere: first what it would create, then it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.exchange.forms import ImportForm
from dashboard.requests import concurrency_limits
from experiments.access import projects_for
from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.import_plan import ImportResult
from experiments.exchange.intake import take_in_sent
from experiments.models import Project


@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest) -> HttpResponse:
    """The form; on POST what the file would create, or (``import``) what it did."""
    projects = projects_for(request.user)
    if not projects:
        raise PermissionDenied
    form = ImportForm(projects, request.POST or None, request.FILES or None)
    brought: ImportResult | None = None
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            project = next(each for each in projects if each.slug == form.cleaned_data["project"])
            wanted = "import" in request.POST
            try:
                brought = take(request.user, form.cleaned_data["file"], project, dry_run=not wanted)
            except BadBundle as error:
                form.add_error("file", str(error))
            except InvalidSpec as error:
                for each in error.errors:
                    form.add_error("file", str(each))
            else:
                status = 200
                if wanted:
                    return _imported(request, brought)
    return render(
        request, "exchange/import.html", {"place": "experiments", "form": form, "brought": brought}, status=status
    )


def take(user: Any, sent: UploadedFile[Any], project: Project, *, dry_run: bool) -> ImportResult:
    """Bring in a file that somebody sent. Raise BadBundle, InvalidSpec; Busy where as many of theirs are looked at as may."""
    with concurrency_limits.acquire(user, "import"), _on_disk(sent) as place:
        return take_in_sent(place, (sent.name or "")[:200], project=project, owner=user, dry_run=dry_run)


@contextmanager
def _on_disk(sent: UploadedFile[Any]) -> Iterator[Path]:
    """Where a file lies that was sent; Django keeps small ones in memory."""
    if isinstance(sent, TemporaryUploadedFile):
        yield Path(sent.temporary_file_path())
        return
    with tempfile.NamedTemporaryFile(prefix="rankwire-import-") as file:
        for piece in sent.chunks():
            file.write(piece)
        file.flush()
        yield Path(file.name)


def _imported(request: HttpRequest, brought: ImportResult) -> HttpResponse:
    """Say what came, and lead there where it is one experiment."""
    for arrival in brought.arrivals:
        tag = "ok" if arrival.trials else "info"
        messages.add_message(
            request, messages.SUCCESS if arrival.trials else messages.INFO, arrival.words, extra_tags=tag
        )
    if brought.left_out:
        messages.info(request, f"Left out: {'; '.join(brought.left_out)}.", extra_tags="info")
    stored = [arrival.stored for arrival in brought.arrivals if arrival.stored is not None]
    return redirect(stored[0]) if len(stored) == 1 else redirect("experiments")
