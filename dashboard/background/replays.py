"""Predictions by replay, made by a worker because a replay can take a minute."""

from __future__ import annotations

from typing import Any, Final

from auditlog.context import set_actor
from django.db import transaction

from analysis import numbers
from analysis.replay.actions import Traces, traces
from analysis.replay.errors import NotReplayable
from analysis.replay.predicted import Check, Replayed
from analysis.sensitivity import Link
from dashboard.background import asking
from dashboard.background.asking import Withdrawn
from dashboard.panels.network.predictions import network_words
from experiments.access import limited_to, may_predict, may_run_more
from experiments.errors import FieldError, InvalidSpec, ReadOnly
from experiments.models import BackgroundTask, Experiment
from experiments.selectors import replays
from experiments.selectors.network import NetworkStudy
from workers import queue, replay

_READ_AT_ONCE: Final = 50_000
"""Calls that a request checks itself, in some tenths of a second."""


def no_replay(experiment: Experiment, study: NetworkStudy) -> str:
    """Return a sentence if an experiment cannot be replayed, else an empty string."""
    if not study.fits:
        return ""
    return replays.obstacle_of(experiment, study.fits[0]) if replay.available() else replay.NOT_INSTALLED


def ask(user: Any, experiment: Experiment, link: Link, at: str = "", *, check: bool = False) -> BackgroundTask:
    """Create a task that replays an experiment on ``link``; ``check`` adds trials.

    Raise InvalidSpec if there is nothing to replay, Busy if too many tasks wait.
    """
    if not replay.available():
        raise InvalidSpec([FieldError("predictor", replay.NOT_INSTALLED)])
    want = replays.replay_inputs(experiment, link, at)
    if len(want.calls.rows) <= _READ_AT_ONCE:
        _traces(want)
    arguments = {"delay": link.delay_s, "rate": link.rate_bps, "loss": link.loss, "at": at, "check": check}
    title = f"{experiment.name}: replay on another network"
    return asking.ask(user, BackgroundTask.Kind.REPLAY, arguments, title=title, experiment=experiment)


def make(task: BackgroundTask) -> None:
    """Store the prediction of a task and record its end in one transaction.

    Raise ReadOnly, InvalidSpec, StaleTrial, Withdrawn.
    """
    experiment, owner, arguments = task.experiment, limited_to(task.owner, task.within_id), task.arguments
    allowed = experiment is not None and may_predict(owner, experiment)
    if experiment is None or not allowed or (arguments["check"] and not may_run_more(owner, experiment)):
        raise ReadOnly("The owner of this task may no longer store predictions of the experiment.")
    want = replays.replay_inputs(
        experiment, Link(arguments["delay"], arguments["rate"], arguments["loss"]), arguments["at"]
    )
    result, assumed = replayed(want)
    with set_actor(task.owner), transaction.atomic():
        prediction = replays.prediction_of(want, result, assumed, author=task.owner).keep()
        queued = queue.check_prediction(prediction, author=task.owner) if arguments["check"] else 0
        message = f"{numbers.amount(prediction.value_s, 's', 3)} on {network_words(prediction)}."
        more = f" {numbers.plural(queued, 'trial')} queued to check it." if queued else ""
        if not task.end(f"{message}{more}", prediction=prediction.pk):
            raise Withdrawn


def _traces(want: replays.ReplayInputs) -> Traces:
    try:
        return traces(want.calls)
    except NotReplayable as error:
        raise InvalidSpec([FieldError("predictor", str(error))]) from None


def replayed(want: replays.ReplayInputs) -> tuple[Replayed, tuple[str, ...]]:
    """Replay on both and on measured links; return assumptions too."""
    calls = _traces(want)

    def seconds(link: Link) -> float:
        return replay.replay(calls, link, want.calibration, places=want.places, topology=want.topology)

    try:
        here, there = seconds(want.here), seconds(want.there)
        checks = tuple(Check(seconds(link), measured_s) for link, measured_s in want.measured)
    except NotReplayable as error:
        raise InvalidSpec([FieldError("predictor", str(error))]) from None
    return Replayed(calls.window_s, here, there, checks), calls.assumed
