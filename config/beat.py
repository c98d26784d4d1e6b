"""Celery beat on the monotonic clock.

Celery's schedulers compare wall-clock times: after a step of the clock back by an hour they send nothing for an hour, and lost
trials are not detected. Messages have no expiry time, which a worker with another clock would misread; instead, nothing is sent
while earlier messages wait.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from celery.beat import Scheduler

from experiments.common import outage
from workers import vital_signs
from workers.backlog import has_listener

AGAIN_S = 5.0

log = structlog.get_logger()


class SteadyScheduler(Scheduler):
    """Sends each entry of CELERY_BEAT_SCHEDULE at the start and once per period.

    If messages wait for a free worker process, a due entry is tried again after ``AGAIN_S``.
    """

    def __init__(self, *arguments: Any, schedule_filename: str = "", **options: Any) -> None:
        """Touch an absolute ``schedule_filename`` with each tick, for health checks."""
        self._pulse = Path(schedule_filename)
        super().__init__(*arguments, **options)

    def setup_schedule(self) -> None:
        self._due_s: dict[str, float] = {}
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *_: Any, **__: Any) -> float:
        """Send due entries and a heartbeat; return the seconds to sleep."""
        now = time.monotonic()
        for name, entry in self.schedule.items():
            if now >= self._due_s.setdefault(name, now):
                period_s = float(self.app.conf.beat_schedule[name]["schedule"])
                self._due_s[name] = now + (period_s if self._is_sent(entry) else min(period_s, AGAIN_S))
        vital_signs.record("beat", socket.gethostname())
        with suppress(OSError):
            if self._pulse.is_absolute():
                self._pulse.touch()
        return max(min(self._due_s.values()) - time.monotonic(), 0.0)

    def _is_sent(self, entry: Any) -> bool:
        try:
            if not has_listener(self.app):
                return False
            # Without a new producer: creating one waits for the broker and delays heartbeats.
            self.apply_async(entry, advance=False)
        except Exception as error:  # an unresolved host name, a wrong password: outages that end
            if not outage.note(error):
                log.exception("message_unsent", task=entry.task)
            return False
        return True
