"""The reaper in a process whose clock is wrong.

The clock of a test cannot be set without harm to others, so a process' own view of it is: libfaketime shifts
CLOCK_REALTIME for the reaper, which is the one that judges. Workers take every length of time from the monotonic clock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from django.conf import settings
from django.db import connections

from tests.conftest import Services

REAP = """\
import django
django.setup()
from workers import reaper
print("lost", sum(reaper.reap() for _ in range({rounds})))
"""


def reap_with_clock(step: str, services: Services, program: str = REAP.format(rounds=1)) -> str:
    """The last line that the program prints, run with a clock that is `step` ("+2d") off."""
    faketime = shutil.which("faketime")
    assert faketime, "install the package faketime"
    database = connections["default"].settings_dict["NAME"]
    result = subprocess.run(
        [faketime, "-f", step, sys.executable, "-c", program],
        env={
            **os.environ,
            "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
            "REDIS_URL": services.redis.url,
            "RANKWIRE_VAR": str(settings.VAR),
            "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        },
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().splitlines()[-1]
