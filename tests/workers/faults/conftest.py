"""A laboratory of the test's own; its seed can be given from outside."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.environment import Environment
from config.store import artifacts
from experiments.library import load_defaults
from experiments.models import Experiment
from experiments.specification import parse
from tests.conftest import SESSION, Services
from tests.s3_server import S3Server
from tests.worker_process import CeleryWorker
from tests.workers.faults.cables import Cables
from tests.workers.faults.laboratory import Laboratory
from tests.workers.faults.stepped_clock import SteppedClock

_NUMBERS = itertools.count()
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
    """A wall clock for processes that are started with its variables."""
    return SteppedClock(tmp_path / "clock")


@pytest.fixture(scope="session")
def compiled_kernels() -> None:
    """Compile first: that takes longer than a trial of these tests."""
    subprocess.run([sys.executable, "-m", "analysis.warm_up"], check=True, timeout=300)


@pytest.fixture
def own_store() -> Iterator[S3Server]:
    """A bucket that can be away."""
    server = S3Server(SESSION / f"s3-of-faults-{next(_NUMBERS)}", environment=os.environ)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def var(own_store: S3Server, settings: Any) -> Iterator[Path]:
    """An installation with a small disk, and a bucket for files of trials."""
    directory = SESSION / "laboratory"
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=448m", "tmpfs", str(directory)], check=True, timeout=10)
    (directory / "trials").mkdir()
    settings.VAR = directory
    settings.STORAGES = {**settings.STORAGES, "artifacts": artifacts(Environment.of(own_store.variables), directory)}
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True, timeout=10)


@pytest.fixture
def laboratory(
    compiled_kernels: None,
    transactional_db: None,
    empty_redis: object,
    services: Services,
    own_store: S3Server,
    start_celery_worker: Callable[..., CeleryWorker],
    clock: SteppedClock,
    var: Path,
    tmp_path: Path,
) -> Iterator[Laboratory]:
    cables = Cables(services, own_store)
    lab = Laboratory(services, own_store, start_celery_worker, clock, random.Random(SEED), cables, tmp_path / "backups")
    yield lab
    lab.worker.kill()
    cables.close()


@pytest.fixture
def submit(transactional_db: None) -> Callable[..., Experiment]:
    """Stores an experiment of many short trials."""

    def store(**fields: object) -> Experiment:
        spec = {"name": "under fire", "cluster": "testbed", "repetitions": 1, "disturbed": "keep", **WATER, **fields}
        return Experiment.submit(parse(spec), project=load_defaults())

    return store
