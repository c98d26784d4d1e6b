"""The Celery worker as a process."""

import os
import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from config import celery
from experiments.library import load_defaults
from experiments.models import Lease, State, Trial
from experiments.specification import parse
from tests.config.processes import wait_for
from tests.worker_process import CeleryWorker
from workers import queue, reaper


def test_its_first_trial_does_not_wait_for_libraries_of_others() -> None:
    program = """
import os, sys
from config.supervisor import WORKER, load, load_libraries
load_libraries()
load(dict(os.environ), *WORKER)
print(*sorted({"celery.bin.worker", "click_repl", "numba", "polars", "scipy.special"}.intersection(sys.modules)))
"""
    output = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert output.split() == ["celery.bin.worker"]


def test_it_takes_its_pool_along_when_it_is_killed(celery_worker: CeleryWorker) -> None:
    pool = psutil.Process(celery_worker.pid).children(recursive=True)
    assert len(pool) >= 2
    psutil.Process(celery_worker.pid).kill()
    _, remaining = psutil.wait_procs(pool, timeout=30)
    assert remaining == []


def test_a_worker_without_a_pool_does_not_wait_for_itself_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ended_with: list[int] = []
    monkeypatch.setattr(celery, "die_with_parent", ended_with.append)
    monkeypatch.setattr(celery, "_worker_pid", os.getpid())
    celery.die_with_worker()
    assert ended_with == []
    monkeypatch.setattr(celery, "_worker_pid", os.getppid())
    celery.die_with_worker()
    assert ended_with == [os.getppid()]


@pytest.mark.timeout(240)
def test_a_stopping_worker_requeues_its_trial_and_claims_no_other(
    transactional_db: None, empty_redis: object, start_celery_worker: Callable[..., CeleryWorker]
) -> None:
    """The running one counts as no attempt; the next worker gets both."""
    water = {
        "workload": "water",
        "sweep": {"hosts": [1]},
        "cluster": "local",
        "time_limit_s": 300,
        "name": "under test",
    }
    long = {**water, "parameters": {"molecules": 64, "steps": 1_000_000}, "repetitions": 2, "retries": 0}
    experiment = queue.submit(parse(long), project=load_defaults())
    worker = start_celery_worker()
    wait_for(lambda: experiment.trials.filter(state=State.RUNNING).exists(), timeout_s=90)
    family = psutil.Process(worker.pid).children(recursive=True)
    worker.process.terminate()
    assert worker.process.wait(90) == 0, worker.output()[-3000:]
    _, remaining = psutil.wait_procs(family, timeout=60)
    assert remaining == []
    rows = experiment.trials.values_list("state", "attempt", "worker", "preparing_at", "reaper_rounds")
    assert list(rows) == [(State.QUEUED, 1, "", None, 0)] * 2, worker.output()[-3000:]
    assert not Lease.objects.exists()
    reaper.reap()
    assert experiment.trials.count() == 2
    Trial.objects.cancel()


def test_each_kind_of_work_has_its_queue_and_a_worker_takes_trials_and_analysis() -> None:
    router = celery.app.amqp.router
    queues = {
        "workers.tasks.work": "trials",
        "workers.tasks.sweep": "trials",
        "workers.tasks.read_again": "analysis",
        "workers.tasks.send_notices": "background",
        "dashboard.background.tasks.work": "background",
    }
    assert {name: router.route({}, name)["queue"].name for name in queues} == queues
    assert [task_queue.name for task_queue in celery.app.conf.task_queues] == ["trials", "analysis"]
