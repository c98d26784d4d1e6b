"""A step of the machine's clock loses no trial and ends none: lives are counted in beats, lengths taken from the monotonic
clock. The clock of a test cannot be set without harm to others, so a worker's own view of it is: libfaketime shifts
CLOCK_REALTIME for the reaper's process, which is the one that judges."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest
from django.conf import settings
from django.db import connections

from experiments.models import Cluster, Experiment, State, Trial
from tests.conftest import Services
from workers.worker_identity import identity

ROUNDS = 6  # more than a silent trial survives
REAP = f"""\
import django
django.setup()
from experiments.models import Trial
from workers import reaper
print("lost", sum(reaper.reap() for _ in range({ROUNDS}) if Trial.objects.get().beat() is False))
"""


@pytest.mark.parametrize("step", ["+2d", "-2d"])
def test_a_reaper_two_days_off_finds_no_living_trial_lost(
    step: str, submit: Callable[..., Experiment], services: Services
) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    assert reap_with_clock(step, services) == "lost 0"
    trial.refresh_from_db()
    assert trial.state == State.PREPARING


def reap_with_clock(step: str, services: Services) -> str:
    faketime = shutil.which("faketime")
    assert faketime, "install the package faketime"
    database = connections["default"].settings_dict["NAME"]
    result = subprocess.run(
        [faketime, "-f", step, sys.executable, "-c", REAP],
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


def test_silence_is_counted_in_rounds_not_in_seconds(submit: Callable[..., Experiment]) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    assert [trial.note_silence() for _ in range(5)] == [False, False, False, False, True]
    trial.beat()
    assert trial.note_silence() is False
