"""A laboratory of the test's own; its seed can be given from outside."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from experiments.library import load_defaults
from experiments.models import Experiment
from experiments.spec import parse
from tests.conftest import Services
from tests.worker_process import CeleryWorker
from tests.workers.faults.laboratory import Laboratory
from tests.workers.faults.stepped_clock import SteppedClock

SEED = int(os.environ.get("RANKWIRE_FAULT_SEED", "1"))
# Measuring the link takes four seconds of each new fabric, and every fault costs a fabric.
WATER = {
    "certificate": "skip",
    "workload": "water",
    # Few and long steps: ranks of short ones spend a busy machine on waiting for each other.
    "parameters": {"molecules": 512, "steps": 60},
    "sweep": {"hosts": [2]},
}


@pytest.fixture
def clock(tmp_path: Path) -> SteppedClock:
    """A wall clock for whoever is started with its variables."""
    return SteppedClock(tmp_path / "clock")


@pytest.fixture
def laboratory(
    transactional_db: None,
    empty_redis: object,
    services: Services,
    start_celery_worker: Callable[..., CeleryWorker],
    clock: SteppedClock,
) -> Iterator[Laboratory]:
    place = Path(settings.VAR, "trials")
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(place)], check=True, timeout=10)
    try:
        lab = Laboratory(services, start_celery_worker, clock, random.Random(SEED), place)
        yield lab
        lab.worker.kill()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, timeout=10)


@pytest.fixture
def submit(transactional_db: None) -> Callable[..., Experiment]:
    """Stores an experiment of many short trials."""

    def store(**fields: object) -> Experiment:
        spec = {"name": "under fire", "cluster": "testbed", "repetitions": 1, **WATER, **fields}
        return Experiment.submit(parse(spec), project=load_defaults())

    return store
