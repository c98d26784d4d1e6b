"""Share links for pages and REST: what they show, and making one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.views.decorators.debug import sensitive_variables

from experiments.access import may_share, only_project
from experiments.models import Experiment, Report, ShareLink
from experiments.selectors.comparison import Compared


def may_share_here(user: Any, experiment: Experiment) -> bool:
    """Return whether ``user``, or their token, may share an experiment."""
    return may_share(user, experiment) and only_project(user) in (None, experiment.project_id)


def require_may_share(user: Any, experiments: Sequence[Experiment]) -> None:
    """Raise PermissionDenied unless ``user`` may share all of these."""
    if not all(may_share_here(user, experiment) for experiment in experiments):
        raise PermissionDenied("Submitters and maintainers of the project may share this.")


def experiments_of(compared: Compared) -> list[Experiment]:
    """Return the experiments of a comparison, each once."""
    return list({member.experiment.pk: member.experiment for member in compared.members}.values())


@sensitive_variables("key")
def issue(
    request: HttpRequest, shared: Sequence[Experiment], *, days: int, query: str = "", report: Report | None = None
) -> tuple[ShareLink, str]:
    """Return a new link and its address, which is not stored."""
    link, key = ShareLink.issue(shared, by=request.user, days=days, query=query, report=report)
    return link, request.build_absolute_uri(reverse("shared", args=[key]))
