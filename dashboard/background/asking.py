"""Creation of background tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.requests.concurrency_limits import Busy
from experiments.access import only_project
from experiments.errors import TooManyTasks
from experiments.models import BackgroundTask, Experiment
from workers import queue


class Withdrawn(Exception):
    """The task was cancelled, or another worker runs it."""


def ask(
    user: Any,
    kind: BackgroundTask.Kind,
    arguments: Mapping[str, Any],
    *,
    title: str,
    total: int = 0,
    experiment: Experiment | None = None,
) -> BackgroundTask:
    """Create a task, or return an unfinished equal one; wake workers. Raise Busy."""
    try:
        task = BackgroundTask.ask(
            user, kind, arguments, title=title, total=total, within=only_project(user), experiment=experiment
        )
    except TooManyTasks as error:
        raise Busy(str(error)) from None
    queue.wake_background()
    return task
