"""From a specification to a bundle with real server and worker."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import polars as pl
import pytest
from django.db import connection
from rankwire_client import Client

from config.services.lease import ROOT
from dashboard.background.tasks import do
from experiments.models import BackgroundTask, Experiment
from tests.worker_process import CeleryWorker

EXAMPLES = ROOT / "clients" / "python" / "examples"


@pytest.fixture
def background() -> Iterator[None]:
    """Run background tasks."""
    over = Event()

    def work() -> None:
        try:
            while not over.wait(0.1):
                task = BackgroundTask.claim_next()
                if task is not None:
                    do(task)
        finally:
            connection.close()

    worker = Thread(target=work)
    worker.start()
    yield
    over.set()
    worker.join(60)


@pytest.mark.timeout(240)  # a quarter of it on a quiet machine
def test_the_examples_lead_from_a_specification_to_a_bundle(
    celery_worker: CeleryWorker,
    client: Client,
    background: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first = runpy.run_path(str(EXAMPLES / "first_steps.py"))
    assert first["over"]["trials"]["finished"] == 4
    assert first["answer"]["sentence"] in capsys.readouterr().out
    trials: pl.DataFrame = first["trials"]
    assert sorted(trials["parameter.hosts"]) == [1, 1, 2, 2]
    assert min(trials["elapsed_s"]) > 0

    monkeypatch.setenv("SLUG", first["slug"])
    monkeypatch.setenv("DIRECTORY", str(tmp_path))
    paper = runpy.run_path(str(EXAMPLES / "results_for_a_paper.py"))
    assert paper["configurations"].height == 2
    assert len((tmp_path / f"{first['slug']}.csv").read_text().splitlines()) == 5
    again = client.import_(paper["bundle"])
    assert again["arrivals"][0]["trials"] == 0  # it was measured here
    assert Experiment.objects.filter(published=False).count() == 1
