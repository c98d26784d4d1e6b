"""The Celery task of what people wait for, and what it does with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
from celery import shared_task

from dashboard.background import bundles, changes, exports, replays
from dashboard.background.asking import Withdrawn
from experiments.errors import RepositoryError
from experiments.models import BackgroundTask
from workers import queue

Kind = BackgroundTask.Kind


def _export(task: BackgroundTask) -> None:
    (bundles if bundles.is_bundle(task) else exports).write(task)


_DOING: Final[Mapping[str, Callable[[BackgroundTask], None]]] = {
    Kind.EXPORT: _export,
    Kind.CHANGE: changes.make,
    Kind.REPLAY: replays.make,
}

log = structlog.get_logger()


@shared_task(name=queue.BACKGROUND, ignore_result=True)
def work() -> None:
    """Do what waits, one after another, until nothing does."""
    while (task := BackgroundTask.claim_next()) is not None:
        do(task)


def do(task: BackgroundTask) -> None:
    """Do one task; however it goes, it is over then, or waits for nobody."""
    if not task.owner.is_active:
        task.fail("The account that asked for this was closed.")
        return
    try:
        _DOING[task.kind](task)
    except Withdrawn:
        log.info("background_task_withdrawn", task=task.pk)
    except RepositoryError as error:
        task.fail(str(error))
    except Exception:
        log.exception("background_task_failed", task=task.pk)
        task.fail("Rankwire could not do this; the reason is in its log.")
