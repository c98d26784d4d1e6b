"""Predictions by replay: asked for on the page and by REST, made in the background, told with what they were made with."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from analysis.sensitivity import Link
from dashboard.background.tasks import do
from experiments.models import BackgroundTask, Experiment, Prediction, Project
from tests.analysis.replay.scenes import calls_of, one_after_another
from tests.dashboard.studies_measured import NEEDY, NETWORK, measured, needing
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


def text_of(answer: Any) -> str:
    return " ".join(answer.text.split())


@needs_simgrid
def test_a_replay_is_kept_beside_the_fit_with_what_it_was_made_with(page: Client, study: Experiment) -> None:
    assert "Replay: the calls of one trial" in page.get(f"/network/{study.slug}/").text
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
    shown = text_of(page.get(f"/network/predictions/{prediction.pk}/"))
    assert f"trial {prediction.calibration['trial']}; on its own link" in shown
    assert "Links, by ping-pongs" in shown
    assert len(prediction.calibration["checks"]) == 3
    assert "A change may be wrong by" in shown
    assert "3 other links replayed" in shown
    page.post(address, {**LINK, "predictor": "fit"})
    assert sorted(Prediction.objects.values_list("predictor", flat=True)) == ["fit", "replay"]
    told = page.get("/api/v1/predictions/").json()["results"]
    assert {each["predictor"]: bool(each["calibration"]) for each in told} == {"fit": False, "replay": True}


@needs_simgrid
def test_rest_answers_with_the_task_and_refuses_at_the_field(page: Client, study: Experiment) -> None:
    wanted = {"experiment": study.slug, "delay_s": 0.35e-3, "rate_bps": 700e6, "predictor": "replay"}
    answer = page.post("/api/v1/predictions/", wanted, content_type="application/json")
    assert (answer.status_code, answer.json()["kind"], answer.json()["state"]) == (202, "replay", "waiting")
    for change, path in (({"loss": 0.01}, "loss"), ({"delay_s": 11}, "delay_s"), ({"predictor": "dice"}, "predictor")):
        answer = page.post("/api/v1/predictions/", {**wanted, **change}, content_type="application/json")
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)


@needs_simgrid
def test_what_cannot_be_replayed_is_said_before_anything_is_queued(page: Client, library: Project) -> None:
    puts = calls_of(one_after_another(0, ("Put", -1, 8)) + one_after_another(1, ("Barrier", -1, 0)))
    study = replayed.study(library, puts)
    answer = page.post(f"/network/{study.slug}/predictions/", LINK)
    assert "The program calls what cannot be replayed: MPI_Put (1 call)" in text_of(page.get(answer.url))
    assert not BackgroundTask.objects.exists()


def test_without_simgrid_trace_or_ping_pongs_a_sentence_stands_where_the_choice_was(
    page: Client, library: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = measured(library, NETWORK, needing)
    address = f"/network/{study.slug}/"
    with monkeypatch.context() as patched:
        patched.setattr(runner, "PROGRAM", "no-such-program")
        assert "SimGrid is not installed" in page.get(address).text
        assert "SimGrid is not installed" in text_of(page.get(page.post(f"{address}predictions/", LINK).url))
    monkeypatch.setattr(runner, "available", lambda: True)
    assert "keeps the calls of its ranks" in page.get(address).text
    replayed.keep_calls(study, replayed.needy_calls())
    assert "There is no calibration" in page.get(address).text
    assert not Prediction.objects.exists()
