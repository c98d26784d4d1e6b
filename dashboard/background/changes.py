"""Changes of many trials: immediate if short, otherwise in the background."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from auditlog.context import set_actor
from django.db import transaction

from analysis.numbers import plural
from dashboard.background.asking import Withdrawn, ask
from experiments.access import limited_to, may_run_more
from experiments.errors import ReadOnly
from experiments.models import BackgroundTask, Experiment
from workers import queue

MOST_AT_ONCE: Final = 2000
"""Trials that a request queues itself, in about a second."""
RERUN: Final = "run again"
REPEAT: Final = "repeat"
DISTURBED: Final = "repeat disturbed trials"
_CHANGES: Final[Mapping[str, Callable[[Experiment, Any, int], int]]] = {
    RERUN: lambda experiment, _, __: queue.rerun_failed(experiment),
    REPEAT: lambda experiment, author, count: queue.add_repetitions(experiment, count, author=author),
    DISTURBED: lambda experiment, _, __: queue.repeat_disturbed(experiment),
}


def rerun_failed(user: Any, experiment: Experiment) -> int | BackgroundTask:
    """Requeue trials without a result; return their number or the task. Raise Busy."""
    experiment.require_editable()
    return _change(user, experiment, RERUN, trials=experiment.trials.without_result().count())


def repeat(user: Any, experiment: Experiment, count: int) -> int | BackgroundTask:
    """Add `count` repetitions; return the number of trials or the task. Raise Busy."""
    experiment.require_editable()
    configurations = experiment.configurations.filter(in_design=True).count()
    return _change(user, experiment, REPEAT, trials=configurations * count, count=count)


def repeat_disturbed(user: Any, experiment: Experiment) -> int | BackgroundTask:
    """Repeat disturbed trials; return their number or the task. Raise Busy."""
    experiment.require_editable()
    return _change(user, experiment, DISTURBED, trials=experiment.trials.disturbed_points().count())


def _change(user: Any, experiment: Experiment, change: str, *, trials: int, count: int = 0) -> int | BackgroundTask:
    waiting = experiment.background_tasks.filter(ended_at=None)
    if trials <= MOST_AT_ONCE and not waiting.exists():  # earlier changes come first
        return _CHANGES[change](experiment, user, count)
    arguments = {"change": change, "count": count}
    title = f"{experiment.name}: {change}"
    return ask(user, BackgroundTask.Kind.CHANGE, arguments, title=title, total=trials, experiment=experiment)


def make(task: BackgroundTask) -> None:
    """Apply the change of a task and record its end in one transaction.

    Raise ReadOnly, StaleTrial, InvalidSpec, Withdrawn.
    """
    experiment, owner = task.experiment, limited_to(task.owner, task.within_id)
    if experiment is None or not may_run_more(owner, experiment):
        raise ReadOnly("The owner of this task may no longer change the experiment.")
    change, count = task.arguments["change"], task.arguments["count"]
    with set_actor(task.owner), transaction.atomic():
        queued = _CHANGES[change](experiment, owner, count)
        if not (task.tell(task.total) and task.end(f"{plural(queued, 'trial')} queued.".capitalize())):
            raise Withdrawn
