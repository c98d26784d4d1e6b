"""What is asked for when a specification is sent: the project it goes to, what it says, and whether its sender may start that."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from dashboard.api.rest.parsers import YamlText
from experiments import access
from experiments.models import Project
from experiments.specification import ExperimentSpec, parse, parse_yaml


def project_of(request: Request) -> Project:
    """Return the project that the address names, or the default one. Raise PermissionDenied where nothing may be submitted to it."""
    slug = request.query_params.get("project", "default")
    project = next((p for p in access.visible_projects(request.user) if p.slug == slug), None)
    if project is None:
        raise PermissionDenied(f"There is no project {slug!r}, or you are not a member of it.")
    if not access.may_submit(request.user, project):
        raise PermissionDenied(f"You may view project {slug!r} but not submit to it.")
    return project


def specification_of(request: Request, project: Project) -> ExperimentSpec:
    """Return the specification in the body. Raise InvalidSpec, or PermissionDenied where its sender may not start it in the project."""
    spec = _parsed(request.data)
    if not access.may_submit(request.user, project, spec.workload, spec.parameters):
        raise PermissionDenied(f"Only maintainers of this project may submit the workload {spec.workload}.")
    return spec


def _parsed(body: Any) -> ExperimentSpec:
    if isinstance(body, YamlText):
        return parse_yaml(body, max_trials=settings.MAX_TRIALS)
    return parse(body, max_trials=settings.MAX_TRIALS)
