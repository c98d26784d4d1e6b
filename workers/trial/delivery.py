"""Delivery of a trial's files to the artifact store.

All or none, with retries. If the store is the directory in which trials write, nothing is copied.
"""

from __future__ import annotations

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
from experiments.common import plain_files
from experiments.errors import NotPlain, StoreUnavailable
from experiments.files import MPI_PROFILE_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from experiments.models.states import ACTIVE
from workers.capture.stored_capture import SHARES
from workers.errors import NotDelivered
from workers.trial.inside_mpi import left_behind

_OF_OTHERS_S: Final = 60.0
"""For the output of a trial that has no result: nothing that was measured is lost with it."""
UNDELIVERED_S: Final = 86_400.0
"""That files which the store did not take stay with their worker."""
_KEPT: Final = {
    "stdout.txt": Artifact.Kind.STDOUT,
    "stderr.txt": Artifact.Kind.STDERR,
    "capture*.pcapng.zst": Artifact.Kind.CAPTURE,
    MPI_PROFILE_NAME: Artifact.Kind.OTHER,
}
SCRATCH: Final = ("work", "ranks", SHARES)
"""Directories that only the running trial needs."""
log = structlog.get_logger()


def deliver(trial: Trial, artifacts: Sequence[Artifact], check: Callable[[], object]) -> None:
    """Store a result's files; ``check`` may raise meanwhile. Raise NotDelivered."""
    patience_s = float(settings.STORE_PATIENCE_SECONDS)
    try:
        _patiently(trial, artifacts, patience_s, check)
    except StoreUnavailable as error:
        raise NotDelivered(
            f"The results could not be stored: {error}, for {duration(patience_s)}. "
            f"Its files stay in {trial_directory(trial)} on {socket.gethostname()} for a day."
        ) from None


def deliver_leftovers(trial: Trial, *, patience_s: float = _OF_OTHERS_S) -> tuple[list[Artifact], str]:
    """Store files of a trial without result; return rows, and a failure's sentence."""
    rows = describe(trial)
    try:
        _patiently(trial, rows, patience_s, lambda: None)
    except (StoreUnavailable, NotPlain, OSError) as error:
        log.warning("files_not_delivered", trial=trial.pk, reason=str(error))
        return [], f" Its output could not be stored: {error}."
    return rows, ""


def describe(trial: Trial) -> list[Artifact]:
    """Return unsaved rows of an unfinished trial's plain files, shortened."""
    directory = trial_directory(trial)
    _keep_profile(directory, trial.configuration.ranks)
    rows = []
    for pattern, kind in _KEPT.items():
        for file in sorted(directory.glob(pattern)):
            with suppress(NotPlain):
                if kind in (Artifact.Kind.STDOUT, Artifact.Kind.STDERR):
                    plain_files.shorten(file, limit_bytes=settings.OUTPUT_LIMIT_BYTES)
                rows.append(Artifact.describe(trial.pk, kind, file))
    return rows


def _keep_profile(directory: Path, ranks: int) -> None:
    """Write the profile of ended ranks: the call in which each of them was."""
    tables = left_behind(directory / "ranks", ranks)
    if tables is not None:
        with suppress(OSError):  # a full disk may be why the trial ended: its own reason counts
            write_analysis(directory / MPI_PROFILE_NAME, tables)


def remove_scratch(trial: Trial) -> None:
    """Remove the directories that only the running trial needed."""
    for name in SCRATCH:
        plain_files.discard(trial_directory(trial) / name)


def _patiently(trial: Trial, artifacts: Sequence[Artifact], patience_s: float, check: Callable[[], object]) -> None:
    def log_wait(state: RetryCallState) -> None:
        outcome = state.outcome.exception() if state.outcome else None
        log.warning("store_waited_for", trial=trial.pk, attempt=state.attempt_number, reason=str(outcome))

    def sleep(seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left_s := until - time.monotonic()) > 0:
            check()
            time.sleep(min(1.0, left_s))

    for attempt in Retrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_exponential(multiplier=0.5, max=15),
        stop=stop_after_delay(patience_s),
        before_sleep=log_wait,
        sleep=sleep,
        reraise=True,
    ):
        with attempt:
            check()
            files.deliver(trial, artifacts)


def forget_undelivered() -> None:
    """Remove local files of trials that ended a day ago, if the store is remote."""
    trials = Path(settings.VAR) / store.TRIALS
    if store.current().is_here or not trials.is_dir():
        return
    for directory in trials.iterdir():
        with suppress(OSError, ValueError):
            old = directory.stat().st_mtime < time.time() - UNDELIVERED_S
            if old and not Trial.objects.filter(pk=int(directory.name), state__in=ACTIVE).exists():
                plain_files.discard(directory)
