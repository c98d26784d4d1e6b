"""A bundle for whom it was asked: captures can be large, so that it is always made in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dashboard.background import asking
from experiments.access import limited_to, visible_experiments
from experiments.common import plain_files
from experiments.exchange.bundle import Chosen, write_bundle
from experiments.exchange.choice import chosen_by
from experiments.exchange.exporting import Wanted
from experiments.exchange.records import Captures
from experiments.models import BackgroundTask

_LONGEST_NAME: Final = 80


def ask_bundle(user: Any, names: Sequence[str], *, captures: Captures, anonymise: bool, licence: str) -> BackgroundTask:
    """Return the task that makes a bundle of what is named. Raise CannotExport, or Busy where as many tasks wait as may."""
    wanted = Wanted(captures, anonymise=anonymise, licence=licence)
    chosen = chosen_by(names, visible_experiments(user))
    slugs = "-".join(each.experiment.slug for each in chosen)[:_LONGEST_NAME]
    arguments = {
        "bundle": list(names),
        "captures": wanted.captures,
        "anonymise": wanted.anonymise,
        "licence": wanted.licence,
        "form": "zip",
        "name": f"{slugs}.rankwire.zip",
        "seen": _projects(chosen),
    }
    title = f"Bundle of {', '.join(each.experiment.name for each in chosen)}"
    total = sum(each.rows().count() for each in chosen)
    return asking.ask(user, BackgroundTask.Kind.EXPORT, arguments, title=title, total=total)


def is_bundle(task: BackgroundTask) -> bool:
    """Whether the file of an export is a bundle."""
    return "bundle" in task.arguments


def write(task: BackgroundTask) -> None:
    """Make the bundle of a task of what its owner may see now. Raise CannotExport."""
    user, given = limited_to(task.owner, task.within_id), task.arguments
    chosen = chosen_by(given["bundle"], visible_experiments(user))
    wanted = Wanted(
        given["captures"],
        anonymise=given.get("anonymise", False),
        licence=given["licence"],
        by=task.owner.get_username(),
    )
    with plain_files.private():
        task.file.parent.mkdir(parents=True, exist_ok=True)
        part = task.file.with_suffix(".part")
        try:
            with part.open("wb") as stream:
                told = write_bundle(stream, chosen, wanted)
            part.replace(task.file)
        finally:
            part.unlink(missing_ok=True)
    task.tell(told.trials)
    if not task.end(seen=_projects(chosen)):
        task.file.unlink(missing_ok=True)


def _projects(chosen: Sequence[Chosen]) -> list[int]:
    """The projects whose members alone may fetch it; what is published everybody may."""
    return sorted({each.experiment.project_id for each in chosen if not each.experiment.published})
