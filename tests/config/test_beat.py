"""Periodic tasks keep their pace when the clock is set back: lost trials must not wait until it has caught up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings

LIBRARIES = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
PROGRAM = """\
import datetime, os, sys, time
from pathlib import Path
from config.beat import SteadyScheduler
from config.celery import app

class Recorder(SteadyScheduler):
    producer = None

    def apply_entry(self, entry, producer=None):
        sent.append(entry.name)
        print(entry.name, datetime.date.today())

app.conf.beat_schedule = {"sweep": {"task": "sweep", "schedule": 0.2}}
sent = []
scheduler = Recorder(app)
deadline = time.monotonic() + 20
for step, wanted in (("+0", 2), ("-2d", 4)):
    Path(os.environ["FAKETIME_TIMESTAMP_FILE"]).write_text(step)
    while len(sent) < wanted:
        assert time.monotonic() < deadline, sent
        assert 0 <= scheduler.tick() <= 0.2
"""


def test_it_sweeps_on_after_the_clock_was_set_back(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "LD_PRELOAD": str(next(LIBRARIES)),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        },
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] > lines[-1], "the clock was never set back"
