"""Celery task that runs background tasks.

What exports and replays need is imported by the process that makes one: the first trial of a worker would wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
from celery import shared_task

from dashboard.background import changes, diagnoses
from dashboard.background.asking import Withdrawn
from experiments.errors import RepositoryError
from experiments.models import BackgroundTask
from workers import queue

Kind = BackgroundTask.Kind


def _export(task: BackgroundTask) -> None:
    from dashboard.background import bundles, exports

    (bundles if bundles.is_bundle(task) else exports).write(task)


def _replay(task: BackgroundTask) -> None:
    from dashboard.background import replays

    replays.make(task)


_RUNNERS: Final[Mapping[str, Callable[[BackgroundTask], None]]] = {
    Kind.EXPORT: _export,
    Kind.CHANGE: changes.make,
    Kind.REPLAY: _replay,
}

log = structlog.get_logger()


@shared_task(name=queue.BACKGROUND, ignore_result=True)
def work() -> None:
    """Run waiting tasks in order until there is none."""
    while (task := BackgroundTask.claim_next()) is not None:
        do(task)


@shared_task(name=queue.DIAGNOSE, ignore_result=True)
def diagnose(experiment_id: int) -> None:
    """Make the diagnosis of a large experiment, for its page."""
    diagnoses.make(experiment_id)


def do(task: BackgroundTask) -> None:
    """Run one task and record its end."""
    if not task.owner.is_active:
        task.fail("The account of the owner was closed.")
        return
    try:
        _RUNNERS[task.kind](task)
    except Withdrawn:
        log.info("background_task_withdrawn", task=task.pk)
    except RepositoryError as error:
        task.fail(str(error))
    except Exception:
        log.exception("background_task_failed", task=task.pk)
        task.fail("The task failed unexpectedly. The administrator finds the reason in the log.")
