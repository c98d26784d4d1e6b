"""When the periodic tasks are due: counted on the monotonic clock.

Celery's own schedulers compare wall-clock times. After a step of the clock back, by an hour say, they send nothing for an
hour: lost trials stay unfound, and a trial whose message was lost waits that long. Nor does a message say when it expires,
which a worker with another clock would misread: while earlier ones wait to be heard nothing is sent.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from celery.beat import Scheduler

from workers.backlog import is_heard

AGAIN_S = 5.0


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
        """Send what is due; return how many seconds to sleep."""
        now = time.monotonic()
        for name, entry in self.schedule.items():
            if now >= self._due_s.setdefault(name, now):
                period_s = float(self.app.conf.beat_schedule[name]["schedule"])
                heard = is_heard(self.app)
                if heard:
                    self.apply_entry(entry, producer=self.producer)
                self._due_s[name] = now + (period_s if heard else min(period_s, AGAIN_S))
        if self._pulse.is_absolute():
            self._pulse.touch()
        return max(min(self._due_s.values()) - time.monotonic(), 0.0)
