"""Beat as a process outlives outages of Redis and PostgreSQL."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections

from config.celery import app
from config.services.children import start, stop
from config.services.redis import Redis
from experiments.models import Experiment, Heartbeat, LastSeen, State
from tests.config.processes import wait_for
from tests.conftest import Services
from tests.worker_process import CeleryWorker
from workers import tasks
from workers.trial import pipeline

pytestmark = pytest.mark.timeout(240)


class Beat:
    """`celery beat` on the test database and the test Redis."""

    def __init__(self, services: Services, log: Path) -> None:
        database = connections["default"].settings_dict["NAME"]
        self.log = log
        self.process = start(
            [sys.executable, "-m", "celery", "-A", "config", "beat", "--loglevel=INFO", "--pidfile="],
            log=log,
            death_signal=signal.SIGKILL,
            cwd=settings.BASE_DIR,
            environment={
                **os.environ,
                "DATABASE_URL": services.postgres.url.rpartition("/")[0] + f"/{database}",
                "REDIS_URL": services.redis.url,
                "RANKWIRE_VAR": str(settings.VAR),
                "RANKWIRE_SECRET_KEY": settings.SECRET_KEY,
                "DJANGO_SETTINGS_MODULE": "config.settings",
            },
        )

    @property
    def events(self) -> list[str]:
        """Its log lines of outages, and of errors without a name of their own."""
        names = ("redis_lost", "redis_restored", "database_lost", "database_restored", "Traceback")
        lines = self.log.read_text(errors="replace").splitlines()
        return [name for line in lines for name in names if name in line]

    def says(self, event: str) -> bool:
        assert self.process.poll() is None, self.log.read_text(errors="replace")[-3000:]
        return event in self.events


@pytest.fixture
def beat(transactional_db: None, services: Services, empty_redis: Redis, tmp_path: Path) -> Iterator[Beat]:
    running = Beat(services, tmp_path / "beat.log")
    yield running
    stop(running.process, [(signal.SIGTERM, 5.0)])


def waiting() -> int:
    with app.connection_for_write() as connection, connection.channel() as channel:
        return int(channel.queue_declare(app.conf.task_default_queue).message_count)


def seen_at() -> object:
    return LastSeen.of_roles()["beat"].seen_at


def test_beat_sends_again_after_redis_was_away(beat: Beat, services: Services) -> None:
    wait_for(lambda: waiting() > 0)
    services.redis.stop()
    try:
        wait_for(lambda: beat.says("redis_lost"))
        before = seen_at()
        wait_for(lambda: seen_at() != before)  # the heartbeat does not depend on Redis
    finally:
        services.redis.start()
    services.redis.flush()
    wait_for(lambda: waiting() > 0)
    assert beat.process.poll() is None
    assert beat.events == ["redis_lost", "redis_restored"]


def test_beat_sends_while_the_database_is_away_and_reports_again(beat: Beat, services: Services) -> None:
    wait_for(lambda: seen_at() is not None)
    connections["default"].close()
    services.postgres.stop()
    try:
        services.redis.flush()
        wait_for(lambda: beat.says("database_lost") and waiting() > 0)
    finally:
        services.postgres.start()
    before = seen_at()
    wait_for(lambda: seen_at() != before)
    assert beat.events == ["database_lost", "database_restored"]


def test_a_worker_is_alive_through_an_outage_of_redis_and_works_afterwards(
    transactional_db: None, empty_redis: Redis, services: Services, start_celery_worker: Callable[..., CeleryWorker]
) -> None:
    worker = start_celery_worker()
    wait_for(lambda: LastSeen.of_roles()["worker"].is_alive)
    services.redis.stop()
    try:
        wait_for(lambda: "redis_lost" in worker.output())
    finally:
        services.redis.start()
    wait_for(lambda: "redis_restored" in worker.output())
    wait_for(lambda: worker._replies_to_ping(1.0))
    assert Heartbeat.objects.get(role="worker").name == worker.name
    assert "Traceback" not in worker.output()


def test_a_trial_in_which_the_database_goes_away_runs_again_uncounted(
    submit: Callable[..., Experiment], empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is ended by the server in the middle, as at a restart."""
    measured, ends = pipeline.collect, [True]

    def collect(*arguments: Any) -> Any:
        if ends.pop() if ends else False:
            with psycopg.connect(settings.DATABASE_URL) as other:
                other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
            Experiment.objects.exists()
        return measured(*arguments)

    monkeypatch.setattr(pipeline, "collect", collect)
    experiment = submit(parameters={"molecules": 64, "steps": 100}, retries=0)
    tasks.work(experiment.cluster_id)
    pipeline.POOL.close()
    assert not ends
    assert [(trial.state, trial.attempt) for trial in experiment.trials.all()] == [(State.FINISHED, 1)]
