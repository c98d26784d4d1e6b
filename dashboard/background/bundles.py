"""Bundles, always made in the background because captures can be large."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from dashboard.background import asking
from experiments.access import limited_to, visible_experiments
from experiments.common import plain_files
from experiments.exchange.bundle import ChosenTrials, write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.exchange.records import Captures
from experiments.models import BackgroundTask

_LONGEST_NAME: Final = 80


def ask_bundle(user: Any, names: Sequence[str], *, captures: Captures, anonymise: bool, licence: str) -> BackgroundTask:
    """Create the task of a bundle. Raise CannotExport, or Busy if too many tasks wait."""
    request = BundleOptions(captures, anonymise=anonymise, licence=licence)
    chosen = select_experiments(names, visible_experiments(user))
    slugs = "-".join(member.experiment.slug for member in chosen)[:_LONGEST_NAME]
    arguments = {
        "bundle": list(names),
        "captures": request.captures,
        "anonymise": request.anonymise,
        "licence": request.licence,
        "form": "zip",
        "name": f"{slugs}.rankwire.zip",
        "seen": _projects(chosen),
    }
    title = f"Bundle of {', '.join(member.experiment.name for member in chosen)}"
    total = sum(member.rows().count() for member in chosen)
    return asking.ask(user, BackgroundTask.Kind.EXPORT, arguments, title=title, total=total)


def is_bundle(task: BackgroundTask) -> bool:
    """Return True if the file of an export is a bundle."""
    return "bundle" in task.arguments


def write(task: BackgroundTask) -> None:
    """Write the bundle of a task from what its owner may see now. Raise CannotExport."""
    user, arguments = limited_to(task.owner, task.within_id), task.arguments
    chosen = select_experiments(arguments["bundle"], visible_experiments(user))
    request = BundleOptions(
        arguments["captures"],
        anonymise=arguments.get("anonymise", False),
        licence=arguments["licence"],
        by=task.owner.get_username(),
    )
    with plain_files.private():
        task.file.parent.mkdir(parents=True, exist_ok=True)
        part = task.file.with_suffix(".part")
        try:
            with part.open("wb") as stream:
                summary = write_bundle(stream, chosen, request, alive=partial(_require_task, task))
            part.replace(task.file)
        finally:
            part.unlink(missing_ok=True)
    task.tell(summary.trials)
    if not task.end(seen=_projects(chosen)):
        task.file.unlink(missing_ok=True)


def _require_task(task: BackgroundTask) -> None:
    """Record that the worker lives. Raise Withdrawn if the task was deleted."""
    if not task.tell(0):
        raise asking.Withdrawn


def _projects(chosen: Sequence[ChosenTrials]) -> list[int]:
    """Return the projects whose members may download the bundle."""
    return sorted({member.experiment.project_id for member in chosen if not member.experiment.published})
