"""When the periodic tasks are due: counted on the monotonic clock.

Celery's own schedulers compare wall-clock times. After a step of the clock back, by an hour say, they send nothing for an
hour: lost trials stay unfound, and a trial whose message was lost waits that long. Nor does a message say when it expires,
which a worker with another clock would misread: while earlier ones wait to be heard nothing is sent.
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
    """Sends each entry of CELERY_BEAT_SCHEDULE once per its number of seconds, the first time at once. Keeps no schedule on disk.

    An entry that is due while messages wait for a free worker process is tried again after ``AGAIN_S``.
    """

    def __init__(self, *arguments: Any, schedule_filename: str = "", **options: Any) -> None:
        """``schedule_filename`` (`--schedule`): touched with every tick, where it is an absolute path, for who watches the beat."""
        self._pulse = Path(schedule_filename)
        super().__init__(*arguments, **options)

    def setup_schedule(self) -> None:
        self._due_s: dict[str, float] = {}
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due and store a heartbeat; return how many seconds to sleep. No outage of Redis or PostgreSQL ends it."""
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
            # Without a producer of its own: making one waits for the broker, and no heartbeat would be stored meanwhile.
            self.apply_async(entry, advance=False)
        except Exception as error:  # a host name that is not resolved, a wrong password: all of them end some day
            if not outage.note(error):
                log.exception("message_unsent", task=entry.task)
            return False
        return True
