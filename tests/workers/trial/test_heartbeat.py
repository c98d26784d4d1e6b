"""Heartbeat of a trial: periodic, and at once when there is news."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from django.db import connection

from experiments.models import Experiment, State, Trial
from tests.conftest import Services
from workers import reaper, stopping
from workers.trial import heartbeat
from workers.trial.heartbeat import TrialHeartbeat


def test_what_is_shown_reaches_the_database_without_waiting_for_the_next_beat(
    submit: Callable[..., Experiment], eventually: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 1000.0)
    experiment = submit(workload="water")
    assert experiment.cluster is not None
    trial = Trial.claim_next(experiment.cluster, "host:1:1")
    assert trial is not None
    with TrialHeartbeat(trial) as beating:
        for packets in (7, 8):
            beating.show({"packets": packets})
            eventually(lambda packets=packets: Trial.objects.get(pk=trial.pk).progress == {"packets": packets})


def test_it_reports_that_its_worker_is_to_end(
    submit: Callable[..., Experiment], eventually: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = submit(workload="water")
    assert experiment.cluster is not None
    trial = Trial.claim_next(experiment.cluster, "host:1:1")
    assert trial is not None
    with TrialHeartbeat(trial) as beating:
        beating.show({"packets": 7})
        eventually(lambda: Trial.objects.get(pk=trial.pk).progress == {"packets": 7})
        monkeypatch.setattr(stopping, "is_stopping", lambda: True)
        eventually(lambda: Trial.objects.get(pk=trial.pk).progress == {"packets": 7, heartbeat.ENDING: True})


def test_stopped_worker_killed_while_the_database_is_away_costs_no_attempt(
    submit: Callable[..., Experiment],
    eventually: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
    services: Services,
) -> None:
    """As at a reboot: worker and database end together."""
    experiment = submit(workload="water")
    assert experiment.cluster is not None
    worker = f"{socket.gethostname()}:1:0"  # a process that is gone
    trial = Trial.claim_next(experiment.cluster, worker)
    assert trial is not None
    heartbeat = TrialHeartbeat(trial)
    heartbeat.__enter__()
    connection.close()
    services.postgres.stop()
    try:
        monkeypatch.setattr(stopping, "is_stopping", lambda: True)
        eventually(lambda: stopping.is_recorded_on_disk(worker))
        heartbeat._end.set()  # killed: the block is never left
        heartbeat._news.set()
        heartbeat._thread.join()
    finally:
        services.postgres.start()
    assert reaper.reap() == 0
    trial.refresh_from_db()
    assert (trial.state, trial.attempt, trial.worker) == (State.QUEUED, 1, "")
    assert experiment.trials.filter(attempt=2).count() == 0
    assert not stopping.is_recorded_on_disk(worker)
