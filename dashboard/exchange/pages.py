"""Pages of bundles and imports."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import TemporaryUploadedFile, UploadedFile
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from dashboard.background.bundles import ask_bundle
from dashboard.exchange.forms import BundleForm, ImportForm
from dashboard.exchange.notebook import notebook_of
from dashboard.requests import concurrency_limits
from dashboard.requests.lookup import find_experiment, requested_members
from experiments.access import projects_for, visible_experiments
from experiments.common.storable import storable
from experiments.errors import BadBundle, CannotExport, InvalidSpec
from experiments.exchange.choice import select_experiments
from experiments.exchange.import_plan import ImportResult
from experiments.exchange.intake import import_received_file
from experiments.models import Project


@require_http_methods(["GET", "HEAD", "POST"])
def new_bundle(request: HttpRequest) -> HttpResponse:
    """Show the form of a bundle; on POST create its task."""
    names = requested_members(request.GET)
    context: dict[str, Any] = {"place": "experiments"}
    try:
        chosen = select_experiments(names, visible_experiments(request.user))
    except CannotExport as error:
        return render(request, "exchange/bundle.html", {**context, "why": str(error)}, status=400)
    form = BundleForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            return redirect(ask_bundle(request.user, names, **form.cleaned_data))
    counts = [(member.experiment, member.rows().count(), bool(member.trials)) for member in chosen]
    context = {**context, "form": form, "chosen": counts, "trials": sum(count for _, count, _ in counts)}
    return render(request, "exchange/bundle.html", context, status=status)


@require_GET
def notebook(request: HttpRequest, slug: str) -> HttpResponse:
    """Download an experiment as a Jupyter notebook for the Python client."""
    experiment = find_experiment(request, slug)
    address = request.build_absolute_uri(reverse("home")).rstrip("/")
    response = JsonResponse(notebook_of(experiment, address), content_type="application/x-ipynb+json")
    response["Content-Disposition"] = f'attachment; filename="{experiment.slug}.ipynb"'
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def import_page(request: HttpRequest) -> HttpResponse:
    """Show the form of an import; on POST a dry run, or with ``import`` the import."""
    projects = projects_for(request.user)
    if not projects:
        raise PermissionDenied
    form = ImportForm(projects, request.POST or None, request.FILES or None)
    result: ImportResult | None = None
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            project = next(project for project in projects if project.slug == form.cleaned_data["project"])
            dry_run = "import" not in request.POST
            try:
                result = import_upload(request.user, form.cleaned_data["file"], project, dry_run=dry_run)
            except BadBundle as error:
                form.add_error("file", storable(str(error)))
            except InvalidSpec as error:
                for problem in error.errors:
                    form.add_error("file", storable(str(problem)))
            else:
                status = 200
                if not dry_run:
                    return _imported(request, result)
    return render(
        request, "exchange/import.html", {"place": "experiments", "form": form, "brought": result}, status=status
    )


def import_upload(user: Any, upload: UploadedFile[Any], project: Project, *, dry_run: bool) -> ImportResult:
    """Import an uploaded file. Raise BadBundle, InvalidSpec, Busy."""
    with concurrency_limits.acquire(user, "import"), _on_disk(upload) as path:
        return import_received_file(path, (upload.name or "")[:200], project=project, owner=user, dry_run=dry_run)


@contextmanager
def _on_disk(upload: UploadedFile[Any]) -> Iterator[Path]:
    if isinstance(upload, TemporaryUploadedFile):
        yield Path(upload.temporary_file_path())
        return
    with tempfile.NamedTemporaryFile(prefix="rankwire-import-") as file:
        for piece in upload.chunks():
            file.write(piece)
        file.flush()
        yield Path(file.name)


def _imported(request: HttpRequest, result: ImportResult) -> HttpResponse:
    for arrival in result.arrivals:
        say, tag = (messages.success, "ok") if arrival.trials else (messages.info, "info")
        say(request, arrival.words, extra_tags=tag)
    if result.left_out:
        messages.info(request, f"Left out: {'; '.join(result.left_out)}.", extra_tags="info")
    stored = [arrival.stored for arrival in result.arrivals if arrival.stored is not None]
    return redirect(stored[0]) if len(stored) == 1 else redirect("experiments")
