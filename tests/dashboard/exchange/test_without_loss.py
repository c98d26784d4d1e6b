"""An experiment with captures goes from one installation to another and has lost nothing, whichever way it went."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from dashboard.background.tasks import do
from experiments.models import Artifact, BackgroundTask, Environment, Experiment, Installation, TrialResult, TrialValues
from experiments.pure.storable import storable
from tests.analysis.capture_files import Frame, pcapng
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis", "session_directory")

ELSEWHERE = {
    "id",
    "url",
    "experiment",
    "project",
    "owner",
    "cluster",
    "origin",
    "created_at",
    "conditions",
    "environment_hash",
}
"""What is said of this installation, not of the experiment."""


@pytest.fixture
def experiment(person: User) -> Experiment:
    """Two configurations, two trials each; every trial with an output, a capture and an analysis of it."""
    experiment = factories.experiment(owner=person)
    for number in range(experiment.trials.count()):
        trial = factories.analysing()
        frames = [Frame.whole(1000 + n, ethernet(ipv4(tcp(seq=n, payload=b"%d" % number)))) for n in range(5)]
        files = [
            factories.stored_file(trial, content=b"loop %d\n" % number),
            factories.stored_file(trial, "capture.pcapng.zst", zstandard.compress(pcapng(frames)), "capture"),
        ]
        values = {"all": {"elapsed_s": 1.5 + number / 3, "packets": 5.0}, "mpi": {"packets": 4.0}}
        absent = {"rtt_mean_s": "no segment was acknowledged"}
        told = {"Breakdown": [{"section": "Comm", "share": 0.25}]}
        trial.finish(
            TrialResult(
                values, absent, "degraded", ["2 packets were dropped"], {"kernel": "6.1"}, artifacts=files, tables=told
            )
        )
    return experiment


def by_page(page: Client, api: Any, experiment: Experiment, place: Path) -> Callable[[], None]:
    page.post(f"/bundles/new/?of=e:{experiment.slug}", {"captures": "all"})
    place.write_bytes(b"".join(page.get(f"/tasks/{made().pk}/file").streaming_content))  # type: ignore[attr-defined]
    return lambda: bring(page, place)


def bring(page: Client, place: Path) -> None:
    file = SimpleUploadedFile("water.zip", place.read_bytes())
    assert page.post("/imports/", {"file": file, "project": "default", "import": "1"}).status_code == 302


def by_rest(page: Client, api: Any, experiment: Experiment, place: Path) -> Callable[[], None]:
    api.post("/api/v1/bundles/", {"of": [f"e:{experiment.slug}"]}, content_type="application/json")
    place.write_bytes(b"".join(api.get(f"/api/v1/tasks/{made().pk}/file/").streaming_content))
    return lambda: sent(api, place)


def sent(api: Any, place: Path) -> None:
    answer = api.post("/api/v1/imports/", place.read_bytes(), content_type="application/zip")
    assert answer.status_code == 201, answer.content


def by_command(page: Client, api: Any, experiment: Experiment, place: Path) -> Callable[[], None]:
    call_command("bundle", experiment.slug, str(place), stdout=io.StringIO())

    def bring_in() -> None:
        call_command("import", str(place), stdout=io.StringIO())

    return bring_in


def made() -> BackgroundTask:
    task = BackgroundTask.claim_next()
    assert task is not None
    do(task)
    return task


def everything(api: Any, experiment: Experiment) -> tuple[Any, Any, Any]:
    """What REST tells of it, its specification, and what stands in its files."""
    told = api.get(f"/api/v1/experiments/{experiment.slug}/result/").json()
    trials = [{name: value for name, value in trial.items() if name not in ELSEWHERE} for trial in told["trials"]]
    for trial in trials:
        for file in trial["artifacts"]:
            del file["url"], file["created_at"]
    files = [
        (each.name, each.kind, each.sha256, each.content())
        for each in Artifact.objects.filter(trial__experiment=experiment).order_by("trial__position", "name")
    ]
    return trials, storable(experiment.specification), files


@pytest.mark.parametrize("way", [by_page, by_rest, by_command])
def test_nothing_is_lost(
    page: Client, person: User, experiment: Experiment, tmp_path: Path, way: Callable[..., Any]
) -> None:
    api = client_of(person)
    before, uid = everything(api, experiment), experiment.uid
    assert len(before[0]) == 4
    assert len(before[2]) == 8
    brought = way(page, api, experiment, tmp_path / "water.zip")
    elsewhere(experiment)
    brought()
    came = Experiment.objects.get(uid=uid)
    assert came.is_imported
    assert everything(api, came) == before
    assert TrialValues.wrong() == []
    brought_again = Experiment.objects.filter(uid=uid).count()
    assert brought_again == 1


def elsewhere(experiment: Experiment) -> None:
    """From here on this is another installation, which never knew the experiment."""
    Artifact.objects.filter(trial__experiment=experiment).delete()
    experiment.delete()
    Environment.objects.filter(trials=None).delete()
    Installation.objects.all().delete()
