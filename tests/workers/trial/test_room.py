"""A trial that the disk has no room for waits before its program starts, and starts when there is room."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from experiments.models import Experiment, State, Trial
from tests.experiments import factories
from workers import tasks
from workers.trial import room

TRUE: dict[str, Any] = {
    "workload": "command",
    "certificate": "skip",
    "parameters": {"program": ["/bin/true"], "hosts": 1},
}


def test_trials_wait_while_the_disk_is_full_and_run_when_there_is_room(
    run_all: Callable[..., list[Trial]], settings: Any
) -> None:
    settings.DISK_RESERVE_BYTES = 1 << 60
    [trial] = run_all(**TRUE)
    assert (trial.state, trial.attempt, trial.running_at) == (State.QUEUED, 1, None)
    assert "free" in trial.message
    assert "required" in trial.message
    assert not trial.leases.exists()
    settings.DISK_RESERVE_BYTES = 0
    tasks.work(trial.cluster_id)
    trial.refresh_from_db()
    assert (trial.state, trial.attempt) == (State.FINISHED, 1), trial.message


@pytest.mark.django_db
def test_the_required_room_grows_with_what_the_last_trials_stored(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR.mkdir(parents=True, exist_ok=True)
    factories.experiment(slug="large")
    stored = factories.stored_file(factories.finished())
    stored.size_bytes = 100 << 20
    stored.save()
    waiting = Trial.objects.filter(experiment=stored.trial.experiment_id).first()
    assert waiting is not None
    usage = shutil.disk_usage(settings.VAR)
    for free, lacks in ((301 << 20, False), (299 << 20, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert bool(room.lacking(waiting)) is lacks
    assert Experiment.objects.get(slug="large").trials.exists()
