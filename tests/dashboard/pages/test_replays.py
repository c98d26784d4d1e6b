"""Predictions by replay on the page and in REST."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.sensitivity import Link
from dashboard.background.tasks import do
from experiments.models import BackgroundTask, Experiment, Prediction, Project
from tests.dashboard.studies_measured import NEEDY
from tests.experiments import replayed
from workers import replay as runner

pytestmark = pytest.mark.usefixtures("empty_redis")
LINK = {"delay": "0.00035", "rate": "700000000", "loss": "0", "at": "", "predictor": "replay"}
needs_simgrid = pytest.mark.skipif(not runner.available(), reason="SimGrid is not installed")


@pytest.fixture
def study(library: Project, person: User) -> Experiment:
    experiment = replayed.study(library)
    Experiment.objects.filter(pk=experiment.pk).update(owner=person)
    return experiment


@needs_simgrid
def test_replay_is_stored_with_its_calibration(page: Client, study: Experiment) -> None:
    address = f"/network/{study.slug}/predictions/"
    answer = page.post(address, {**LINK, "check": "1"})
    task = BackgroundTask.objects.get()
    assert answer.url == f"/tasks/{task.pk}/"
    claimed = BackgroundTask.claim_next()
    assert claimed == task
    do(claimed)
    task.refresh_from_db()
    assert (task.state, task.message[-32:]) == ("done", "on 350 µs, 700 Mbit/s. 2 trials queued to check it."[-32:])
    prediction = Prediction.objects.get()
    assert f"/network/predictions/{prediction.pk}/" in page.get(answer.url).text
    # The trace has a message more of each kind of cost per message than the program of the study: overhead and share of the rate.
    extra = replayed.MESSAGES * 8 * replayed.BYTES / 0.95 * (1 / 700e6 - 1 / 1e9)
    assert prediction.value_s == pytest.approx(
        NEEDY.elapsed(Link(0.0, 1e9)) + replayed.MESSAGES * 0.35e-3 + extra, rel=0.02
    )
    assert prediction.low_s < prediction.value_s < prediction.high_s
    assert prediction.calibration["replayed_here_s"] == pytest.approx(prediction.calibration["window_s"], rel=0.01)
    assert prediction.calibration["overhead_s"] == pytest.approx(replayed.TRUE.overhead_s, rel=0.02)
    assert len(prediction.calibration["checks"]) == 3
    page.post(address, {**LINK, "predictor": "fit"})
    assert sorted(Prediction.objects.values_list("predictor", flat=True)) == ["fit", "replay"]
    data = page.get("/api/v1/predictions/").json()["results"]
    assert {row["predictor"]: bool(row["calibration"]) for row in data} == {"fit": False, "replay": True}


@needs_simgrid
def test_rest_answers_with_the_task_and_refuses_at_the_field(page: Client, study: Experiment) -> None:
    body = {"experiment": study.slug, "delay_s": 0.35e-3, "rate_bps": 700e6, "predictor": "replay"}
    answer = page.post("/api/v1/predictions/", body, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (202, "replay", "waiting")
    for change, path in (({"loss": 0.01}, "loss"), ({"delay_s": 11}, "delay_s"), ({"predictor": "dice"}, "predictor")):
        answer = page.post("/api/v1/predictions/", {**body, **change}, content_type="application/json")
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
