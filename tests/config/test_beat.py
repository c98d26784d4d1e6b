"""Periodic tasks keep their pace when the clock is set back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from config.beat import SteadyScheduler
from config.celery import app
from config.services.redis import Redis
from tests.workers.faults.stepped_clock import SteppedClock

PROGRAM = """\
import datetime, os, struct, time
import django
django.setup()
from config.beat import SteadyScheduler
from config.celery import app

class Recorder(SteadyScheduler):
    def apply_async(self, entry, **_):
        sent.append(entry.name)
        print(entry.name, datetime.date.today())

app.conf.beat_schedule = {"sweep": {"task": "sweep", "schedule": 0.2}}
sent = []
scheduler = Recorder(app)
deadline = time.monotonic() + 60
for step_s, wanted in ((0, 2), (-2 * 86400, 4)):
    with open(os.environ["STEPPED_CLOCK"], "r+b") as clock:
        clock.write(struct.pack("=q", step_s))
    while len(sent) < wanted:
        assert time.monotonic() < deadline, sent
        assert 0 <= scheduler.tick() <= 0.2
"""


class Recorder(SteadyScheduler):
    """Notes what it would send."""

    def setup_schedule(self) -> None:
        super().setup_schedule()
        self.sent: list[str] = []

    def apply_async(self, entry: Any, **_: object) -> None:
        self.sent.append(entry.name)


def test_it_sweeps_on_after_the_clock_was_set_back(tmp_path: Path, empty_redis: Redis) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={
            **os.environ,
            **SteppedClock(tmp_path / "clock").variables,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "REDIS_URL": empty_redis.url,
        },
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] > lines[-1], "the clock was never set back"


@pytest.mark.django_db
def test_it_sends_nothing_while_earlier_messages_wait_to_be_heard(
    empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("config.beat.AGAIN_S", 0.01)
    scheduler = Recorder(app)
    app.send_task("unheard")
    for _ in range(3):
        assert 0 <= scheduler.tick() <= 0.01
    assert scheduler.sent == []
    empty_redis.flush()
    deadline = time.monotonic() + 60
    while not scheduler.sent:
        assert time.monotonic() < deadline
        scheduler.tick()
