"""The Celery worker as a process."""

import psutil

from tests.worker_process import CeleryWorker


def test_it_takes_its_pool_along_when_it_is_killed(celery_worker: CeleryWorker) -> None:
    pool = psutil.Process(celery_worker.pid).children(recursive=True)
    assert len(pool) >= 2
    psutil.Process(celery_worker.pid).kill()
    _, left = psutil.wait_procs(pool, timeout=10)
    assert left == []
