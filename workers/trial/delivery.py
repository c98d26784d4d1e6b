"""Files of a trial on their way from its worker to the store: with patience while the store is away, and all of them or none.

Where the store is the directory in which trials write, nothing is on the way.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from django.conf import settings
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from analysis.numbers import duration
from experiments import files, store
from experiments.errors import NotPlain, StoreAway
from experiments.models import Artifact, Trial
from experiments.models.states import ACTIVE
from workers.errors import NotDelivered
from workers.trial import leftovers

_OF_OTHERS_S: Final = 60.0
"""For the output of a trial that has no result: nothing that was measured is lost with it."""
UNDELIVERED_S: Final = 86_400.0
"""That files which the store did not take stay with their worker."""
log = structlog.get_logger()


def deliver(trial: Trial, artifacts: Sequence[Artifact], check: Callable[[], object]) -> None:
    """Put the files of a result into the store; ``check`` is called meanwhile and may raise. Raise NotDelivered."""
    patience_s = float(settings.STORE_PATIENCE_SECONDS)
    try:
        _patiently(trial, artifacts, patience_s, check)
    except StoreAway as error:
        raise NotDelivered(
            f"What it measured could not be stored: {error}, for {duration(patience_s)}. "
            f"Its files stay in {files.trial_directory(trial)} on {socket.gethostname()} for a day."
        ) from None


def left(trial: Trial, *, patience_s: float = _OF_OTHERS_S) -> tuple[list[Artifact], str]:
    """Store what a trial without a result leaves; return its rows, and a sentence where the store did not take it."""
    rows = leftovers.describe(trial)
    note = _unless_away(trial, rows, patience_s)
    return ([], note) if note else (rows, "")


def _unless_away(trial: Trial, rows: Sequence[Artifact], patience_s: float) -> str:
    try:
        _patiently(trial, rows, patience_s, lambda: None)
    except (StoreAway, NotPlain, OSError) as error:
        log.warning("files_not_delivered", trial=trial.pk, reason=str(error))
        return f" Its output could not be stored: {error}."
    return ""


def _patiently(trial: Trial, artifacts: Sequence[Artifact], patience_s: float, check: Callable[[], object]) -> None:
    def told(state: RetryCallState) -> None:
        outcome = state.outcome.exception() if state.outcome else None
        log.warning("store_waited_for", trial=trial.pk, attempt=state.attempt_number, reason=str(outcome))

    def sleep(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            check()
            time.sleep(min(1.0, left_s))

    for attempt in Retrying(
        retry=retry_if_exception_type(StoreAway),
        wait=wait_exponential(multiplier=0.5, max=15),
        stop=stop_after_delay(patience_s),
        before_sleep=told,
        sleep=sleep,
        reraise=True,
    ):
        with attempt:
            check()
            files.deliver(trial, artifacts)


def forget_undelivered() -> None:
    """Remove what lies on this machine of trials that ended more than a day ago, where the store is another place."""
    trials = Path(settings.VAR) / store.TRIALS
    if store.current().is_here or not trials.is_dir():
        return
    for directory in trials.iterdir():
        with suppress(OSError, ValueError):
            old = directory.stat().st_mtime < time.time() - UNDELIVERED_S
            if old and not Trial.objects.filter(pk=int(directory.name), state__in=ACTIVE).exists():
                shutil.rmtree(directory, ignore_errors=True)
