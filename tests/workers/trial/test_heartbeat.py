"""The heart of a trial: it beats from time to time, and at once when there is something to show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.models import Experiment, Trial
from workers import stopping
from workers.trial import heartbeat
from workers.trial.heartbeat import Heart


def test_what_is_shown_reaches_the_database_without_waiting_for_the_next_beat(
    submit: Callable[..., Experiment], eventually: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_S", 1000.0)
    experiment = submit(workload="water")
    assert experiment.cluster is not None
    trial = Trial.claim_next(experiment.cluster, "host:1:1")
    assert trial is not None
    with Heart(trial) as beating:
        for packets in (7, 8):
            beating.show({"packets": packets})
            eventually(lambda packets=packets: Trial.objects.get(pk=trial.pk).progress == {"packets": packets})


def test_it_tells_that_its_worker_is_to_end(
    submit: Callable[..., Experiment], eventually: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = submit(workload="water")
    assert experiment.cluster is not None
    trial = Trial.claim_next(experiment.cluster, "host:1:1")
    assert trial is not None
    with Heart(trial) as beating:
        beating.show({"packets": 7})
        eventually(lambda: Trial.objects.get(pk=trial.pk).progress == {"packets": 7})
        monkeypatch.setattr(stopping, "is_asked", lambda: True)
        eventually(lambda: Trial.objects.get(pk=trial.pk).progress == {"packets": 7, heartbeat.ENDING: True})
