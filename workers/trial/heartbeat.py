"""Heartbeat of a trial: a thread stores liveness and receives cancellation."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import structlog
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from experiments.common import outage
from experiments.errors import StaleTrial
from experiments.models import Trial
from workers import stopping

INTERVAL_S: Final = 1.0
ENDING: Final = "worker_ends"
"""Key of the progress: the worker is stopping, so that its death costs no attempt (workers/reaper.py)."""
log = structlog.get_logger()


class Stopped(Exception):
    """The trial was cancelled."""


class WorkerEnds(Exception):
    """The worker is stopping, and the trial takes longer than the grace."""


class TrialHeartbeat:
    """Heartbeat every second, and on news, from a thread of its own.

    The thread has its own database connection. A heartbeat that the database does not accept is repeated: an outage of
    PostgreSQL must not end a good measurement.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._progress: Mapping[str, Any] | None = None
        self._end = threading.Event()
        self._news = threading.Event()
        self._stop_asked = threading.Event()
        self._stale = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat of {trial}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._news.set()
        self._thread.join()
        if kind is None:
            stopping.forget(self._trial.worker)

    def show(self, progress: Mapping[str, Any]) -> None:
        """Set the progress for the page, and store it at once."""
        self._progress = progress
        self._news.set()

    def check(self) -> None:
        """Raise Stopped, StaleTrial or WorkerEnds if the trial must not go on.

        Stopped if cancelled, StaleTrial if it is no longer ours, WorkerEnds if out of time.
        """
        if self._stale.is_set():
            raise StaleTrial(f"{self._trial} is no longer run by {self._trial.worker}")
        if self._stop_asked.is_set():
            raise Stopped
        if stopping.is_overdue(settings.STOP_SECONDS):
            raise WorkerEnds

    def _beat(self) -> None:
        try:
            while True:
                self._news.wait(INTERVAL_S)
                self._news.clear()
                if self._end.is_set():
                    return
                try:
                    if self._trial.beat(self._shown()):
                        self._stop_asked.set()
                except StaleTrial:
                    self._stale.set()
                except DatabaseError as error:
                    if stopping.is_stopping():
                        stopping.record_on_disk(
                            self._trial.worker
                        )  # its end cannot be stored, if it is killed before the database is back
                    if not outage.note(error):
                        log.warning("beat_not_stored", trial=self._trial.pk, reason=str(error))
                    close_old_connections()
        finally:
            connection.close()

    def _shown(self) -> Mapping[str, Any] | None:
        return {**(self._progress or {}), ENDING: True} if stopping.is_stopping() else self._progress
