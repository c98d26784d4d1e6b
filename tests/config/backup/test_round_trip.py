"""Round trip of a backup that is made while a trial runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import override_settings

from config.backup import backup
from experiments.library import load_defaults
from experiments.models import State, Trial
from experiments.specification import parse
from tests.config.backup.conftest import Elsewhere
from tests.config.processes import wait_for
from tests.experiments import factories
from tests.worker_process import CeleryWorker
from workers import queue

LONG: dict[str, Any] = {
    "name": "long",
    "workload": "water",
    "parameters": {"molecules": 64, "steps": 1_000_000},
    "sweep": {"hosts": [1]},
    "repetitions": 1,
    "cluster": "local",
    "time_limit_s": 300,
    "profile": "none",
    "capture": {"enabled": False},
}
LOOK = """
import json
from django.test import Client
from experiments.models import Artifact, Experiment, Measurement, Trial
from django.conf import settings
settings.ALLOWED_HOSTS = ["testserver"]
browser = Client()
browser.post("/sign-in/", {"username": "reader", "password": "correct horse"})
print(json.dumps({
    "answer": browser.get("/api/v1/experiments/short/result/").json(),
    "files": sorted(Artifact.objects.values_list("path", "sha256")),
    "intact": all(artifact.content() is not None for artifact in Artifact.objects.all()),
    "measurements": sorted(map(list, Measurement.objects.values_list("scope", "metric", "value"))),
    "long": [[trial.state, trial.attempt, trial.worker, trial.leases.count()] for trial in Trial.objects.filter(experiment__slug="long")],
    "secret": settings.SECRET_KEY,
}))
"""


@pytest.mark.timeout(240)
def test_what_was_backed_up_while_a_trial_ran_is_the_same_elsewhere(
    celery_worker: CeleryWorker,
    elsewhere: Elsewhere,
    backups: Path,
    client: Any,
    output_of: Callable[..., str],
) -> None:
    shutil.rmtree(Path(settings.VAR) / "trials", ignore_errors=True)
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.PBKDF2PasswordHasher"]):  # as elsewhere
        reader = get_user_model().objects.create_superuser("reader", password="correct horse")
    factories.experiment(slug="short")
    short = factories.finished()
    factories.stored_file(short).save()
    factories.stored_file(short, "numbers.bin", bytes(range(256)) * 5000, kind="other").save()
    Trial.objects.filter(state=State.QUEUED).cancel()
    long = queue.submit(parse(LONG), project=load_defaults(), slug="long").trials
    wait_for(lambda: long.get().state == State.RUNNING, timeout_s=120)
    client.force_login(reader)
    answer = client.get("/api/v1/experiments/short/result/").json()

    path = backup.make(backups, secrets=True, report=lambda _: None)

    long.get().cancel()
    files = sorted(map(list, short.artifacts.values_list("path", "sha256")))
    measured = sorted(map(list, short.measurements.values_list("scope", "metric", "value")))
    done = elsewhere.manage("restore", str(backups))
    assert done.returncode == 0, output_of(done)
    assert "1 trial ran during the backup and is queued again" in done.stdout
    there = elsewhere.ask(LOOK)
    assert there["answer"]["experiment"]["slug"] == "short"
    assert there["answer"] == answer
    assert there["files"] == files
    assert files
    assert there["intact"]
    assert there["measurements"] == measured
    assert there["long"] == [["queued", 1, "", 0]]
    assert there["secret"] == settings.SECRET_KEY == (path / "secrets" / "secret-key").read_text().strip()
    assert elsewhere.databases() == [elsewhere.database]
    assert sorted(path.name for path in elsewhere.var.glob("trials*")) == ["trials"]
    wait_for(lambda: long.get().is_over, timeout_s=120)
