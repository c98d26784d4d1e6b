"""Wake-ups do not pile up without a listener, and need no clock."""

from __future__ import annotations

import pytest

from config.celery import app
from config.services.redis import Redis
from experiments.library import load_defaults
from experiments.models import Experiment
from experiments.specification import parse
from tests.conftest import Services
from workers import tasks
from workers.backlog import has_listener
from workers.trial import pipeline


def unheard() -> int:
    """How many messages wait in the queue."""
    with app.pool.acquire(block=True) as connection, connection.channel() as channel:
        return int(channel.queue_declare(app.conf.task_default_queue).message_count)


@pytest.fixture
def waiting(transactional_db: None, empty_redis: object) -> Experiment:
    """Its trials wait for a worker."""
    spec = {"name": "waits", "workload": "water", "cluster": "testbed", "repetitions": 2}
    return Experiment.submit(parse(spec), project=load_defaults())


def test_a_sweep_rings_for_one_or_two_workers_until_it_is_heard(waiting: Experiment, empty_redis: Redis) -> None:
    tasks.sweep()
    rung = unheard()
    for _ in range(3):
        tasks.sweep()
        assert unheard() == rung, "wake-ups do not accumulate"
    numbers = {rung}
    for _ in range(40):
        empty_redis.flush()
        tasks.sweep()
        numbers.add(unheard())
    assert numbers == {1, 2}, "a lost wake-up is sent again, and the worker that receives the last one changes"


def test_a_message_that_waits_is_not_heard(empty_redis: object) -> None:
    assert has_listener(app)
    app.send_task("somebody's")
    assert not has_listener(app)


def test_broker_that_is_away_counts_as_listening(empty_redis: Redis, services: Services) -> None:
    services.redis.stop()
    try:
        assert has_listener(app)
    finally:
        services.redis.start()


def test_a_task_sends_no_wake_ups_beside_messages_that_wait(
    waiting: Experiment, empty_redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "run_waiting", lambda cluster: 1)
    for _ in range(3):
        tasks.work(waiting.cluster_id)
        assert unheard() == 1, "wake-ups do not accumulate"
