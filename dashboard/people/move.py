"""Page to move an experiment to another project."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.requests.lookup import find_experiment
from experiments.access import may_move, projects_for
from experiments.errors import StaleTrial


@require_http_methods(["GET", "HEAD", "POST"])
def move(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the possible projects; on POST move the experiment."""
    experiment = find_experiment(request, slug)
    if not may_move(request.user, experiment):
        raise PermissionDenied
    allowed = projects_for(request.user, experiment.specification)
    targets = [project for project in allowed if project != experiment.project]
    if request.method != "POST":
        context = {"place": "experiments", "experiment": experiment, "targets": targets}
        return render(request, "people/move.html", context)
    target = next((project for project in targets if project.slug == request.POST.get("project")), None)
    if target is None:
        raise BadRequest("The experiment cannot be moved to this project.")
    try:
        experiment.move_to(target)
    except StaleTrial as error:
        messages.error(request, str(error), extra_tags="bad")
        return redirect("experiment-move", slug)
    messages.success(request, f"Moved to {target.name}.", extra_tags="ok")
    return redirect(experiment)
