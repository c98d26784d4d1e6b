"""Wall clock of chosen processes, which tests set while they run.

Setting the machine's clock would harm others. A small library (stepped_clock.c) is preloaded into the processes; it adds the content
of a file to CLOCK_REALTIME, and changes nothing else.
"""

from __future__ import annotations

import functools
import os
import struct
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import connections

from tests.conftest import SESSION, Services

SOURCE = Path(__file__).with_suffix(".c")
OFFSET = struct.Struct("=q")
STEPS = (timedelta(days=2), timedelta(days=-2))
REAP = """\
import django
django.setup()
from workers import reaper
print("lost", reaper.reap())
"""


@functools.cache
def library() -> Path:
    """The compiled library, made once per session."""
    built = SESSION / "stepped_clock.so"
    built.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(built), str(SOURCE), "-ldl"]
    subprocess.run(argv, check=True, timeout=90)
    return built


class SteppedClock:
    """Clock of all processes with its ``variables``: ``off`` the true one."""

    def __init__(self, file: Path, off: timedelta = timedelta()) -> None:
        self._file = file
        self._file.write_bytes(bytes(OFFSET.size))
        self.set(off)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that a process needs."""
        return {"LD_PRELOAD": str(library()), "STEPPED_CLOCK": str(self._file)}

    def set(self, off: timedelta) -> None:
        """Set the clock so much ahead of the true one, in the mapped file."""
        self.off = off
        with self._file.open("r+b") as stream:
            stream.write(OFFSET.pack(round(off.total_seconds())))


def reap_with_clock(clock: SteppedClock, services: Services, program: str = REAP) -> str:
    """The last line that a Python program prints which runs with this clock."""
    database = connections["default"].settings_dict["NAME"]
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            **clock.variables,
            "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
            "REDIS_URL": services.redis.url,
            "RANKWIRE_VAR": str(settings.VAR),
            "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().splitlines()[-1]
