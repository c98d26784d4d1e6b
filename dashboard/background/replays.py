"""Predictions by replay: asked for by a person, made by a worker, since a replay can take a minute."""

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
"""Calls that are looked through while who asks waits: some tenths of a second."""


def no_replay(experiment: Experiment, study: NetworkStudy) -> str:
    """Return why nothing of an experiment can be replayed here, as a sentence; empty where a replay can be asked for."""
    if not study.fits:
        return ""
    return replays.obstacle_of(experiment, study.fits[0]) if replay.available() else replay.NOT_INSTALLED


def ask(user: Any, experiment: Experiment, link: Link, at: str = "", *, check: bool = False) -> BackgroundTask:
    """Have a worker replay an experiment's calls on ``link`` and keep what comes of it, and with ``check`` queue the trials that check it.

    Raise InvalidSpec where it is known beforehand that there is nothing to replay, Busy where too many wait.
    """
    if not replay.available():
        raise InvalidSpec([FieldError("predictor", replay.NOT_INSTALLED)])
    want = replays.wanted(experiment, link, at)
    if len(want.calls.rows) <= _READ_AT_ONCE:
        _traces(want)
    wanted = {"delay": link.delay_s, "rate": link.rate_bps, "loss": link.loss, "at": at, "check": check}
    title = f"{experiment.name}: replay on another network"
    return asking.ask(user, BackgroundTask.Kind.REPLAY, wanted, title=title, experiment=experiment)


def make(task: BackgroundTask) -> None:
    """Make the prediction of a task if who asked may still keep it: stored with the note that it is done, or nothing.

    Raise ReadOnly, InvalidSpec, StaleTrial, Withdrawn.
    """
    experiment, owner, asked = task.experiment, limited_to(task.owner, task.within_id), task.arguments
    may = experiment is not None and may_predict(owner, experiment)
    if experiment is None or not may or (asked["check"] and not may_run_more(owner, experiment)):
        raise ReadOnly("Who asked for this may not keep predictions of the experiment any more.")
    want = replays.wanted(experiment, Link(asked["delay"], asked["rate"], asked["loss"]), asked["at"])
    result, assumed = replayed(want)
    with set_actor(task.owner), transaction.atomic():
        prediction = replays.prediction_of(want, result, assumed, author=task.owner).keep()
        queued = queue.check_prediction(prediction, author=task.owner) if asked["check"] else 0
        told = f"{numbers.amount(prediction.value_s, 's', 3)} on {network_words(prediction)}."
        more = f" {numbers.plural(queued, 'trial')} queued to check it." if queued else ""
        if not task.end(f"{told}{more}", prediction=prediction.pk):
            raise Withdrawn


def _traces(want: replays.Wanted) -> Traces:
    try:
        return traces(want.calls)
    except NotReplayable as error:
        raise InvalidSpec([FieldError("predictor", str(error))]) from None


def replayed(want: replays.Wanted) -> tuple[Replayed, tuple[str, ...]]:
    """The calls on both links and on those that check, and what had to be assumed of them. Raise InvalidSpec."""
    told = _traces(want)

    def seconds(link: Link) -> float:
        return replay.replay(told, link, want.calibration, places=want.places, topology=want.topology)

    try:
        here, there = seconds(want.here), seconds(want.there)
        checks = tuple(Check(seconds(link), measured_s) for link, measured_s in want.measured)
    except NotReplayable as error:
        raise InvalidSpec([FieldError("predictor", str(error))]) from None
    return Replayed(told.window_s, here, there, checks), told.assumed
