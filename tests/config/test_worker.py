"""The Celery worker as a process."""

import os

import psutil
import pytest

from config import celery
from tests.worker_process import CeleryWorker


def test_it_takes_its_pool_along_when_it_is_killed(celery_worker: CeleryWorker) -> None:
    pool = psutil.Process(celery_worker.pid).children(recursive=True)
    assert len(pool) >= 2
    psutil.Process(celery_worker.pid).kill()
    _, left = psutil.wait_procs(pool, timeout=10)
    assert left == []


def test_a_worker_without_a_pool_does_not_wait_for_itself_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_with: list[int] = []
    monkeypatch.setattr(celery, "die_with_parent", ended_with.append)
    monkeypatch.setattr(celery, "_worker_pid", os.getpid())
    celery.die_with_worker()
    assert ended_with == []
    monkeypatch.setattr(celery, "_worker_pid", os.getppid())
    celery.die_with_worker()
    assert ended_with == [os.getppid()]
