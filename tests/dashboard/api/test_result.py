"""The full result of an experiment, for REST and for files."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from dashboard.api.experiments import result as written
from dashboard.api.experiments.result import experiment_result, result_text
from dashboard.requests import concurrency_limits
from experiments.library import load_published
from experiments.models import Experiment
from tests.dashboard.api.clients import EXPERIMENTS, TRIALS, client_of
from tests.experiments import factories
from tests.experiments.factories import RESULT

pytestmark = pytest.mark.django_db


def test_result_has_every_current_trial_with_its_metrics(django_assert_num_queries: Any) -> None:
    experiment = Experiment.objects.select_related("cluster", "owner", "project").get(
        pk=factories.experiment(warmups=1).pk
    )
    factories.finished()
    factories.running().mark_lost("Gone.")
    factories.running().fail("It exited with status 1.")
    with django_assert_num_queries(10):
        result = experiment_result(experiment)
    assert result["answer"] is None
    assert result["experiment"]["specification"] == experiment.specification
    assert [(t["state"], t["warmup"], t["repetition"], t["attempt"]) for t in result["trials"]] == [
        ("finished", True, 1, 1),
        ("failed", True, 1, 2),
        *[("queued", False, k, 1) for k in (1, 1, 2, 2)],
    ]
    first, second = result["trials"][:2]
    assert first["metrics"] == {"elapsed_s": 1.5, "packets": 1200.0}
    assert first["mpi_metrics"] == {"packets": 1000.0}
    assert first["not_available"] == {"retransmissions": "the capture has no TCP"}
    assert first["parameters"]["molecules"] == 64
    assert first["trust"] == "good"
    assert (second["metrics"], second["message"]) == ({}, "It exited with status 1.")
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_result_equals_the_answers_of_experiment_and_trials() -> None:
    client = client_of(factories.person("ada", "viewer"))
    experiment = factories.experiment(warmups=1, control=True)
    trial = factories.analysing()
    trial.finish(replace(RESULT, artifacts=[factories.stored_file(trial)], tables={"Phases": [{"step": 1}]}))
    factories.running().fail("It exited with status 1.")
    result = client.get(f"{EXPERIMENTS}{experiment.slug}/result/").json()
    assert result["experiment"] == client.get(f"{EXPERIMENTS}{experiment.slug}/").json()
    assert len(result["trials"]) == experiment.trials.count()
    for data in result["trials"]:
        alone = client.get(f"{TRIALS}{data['id']}/").json()
        assert {name: data[name] for name in alone} == alone
    without_host = json.loads(json.dumps(result).replace("http://testserver/", "/"))
    assert experiment_result(experiment) == without_host  # what script/run writes


def test_it_keeps_the_names_that_readers_of_older_files_know() -> None:
    factories.experiment(warmups=1, control=True)
    finished = factories.finished()
    result = experiment_result(finished.experiment)
    expected = {
        *("id", "state", "warmup", "control", "repetition", "attempt", "parameters", "configuration", "metrics"),
        *("mpi_metrics", "not_available", "trust", "trust_reasons", "message", "command", "conditions", "certificate"),
        *("environment", "started_at", "ended_at"),
    }
    assert all(expected <= trial.keys() for trial in result["trials"])
    assert {(t["kind"], t["warmup"], t["control"]) for t in result["trials"]} == {
        ("warmup", True, False),
        ("measured", False, False),
        ("control", False, True),
    }
    (data,) = [trial for trial in result["trials"] if trial["id"] == finished.pk]
    assert finished.environment is not None
    assert (data["environment"], data["environment_hash"]) == ({"kernel": "6.1"}, finished.environment.hash)
    assert data["started_at"] == data["running_at"] != data["ended_at"]
    assert {t["environment_hash"] for t in result["trials"] if t["environment"] is None} == {None}


@pytest.mark.parametrize("accepted", ["application/json", "application/json; indent=3"])
def test_it_is_written_in_pieces_as_it_would_be_written_whole(accepted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_PIECE", 2)
    client = client_of(factories.person("ada", "viewer"))
    experiment = factories.experiment(warmups=1, control=True)
    factories.finished(replace(RESULT, tables={"Phases of a \u2028 \n [": [{"step": "é"}]}))
    whole = JSONRenderer().render(experiment_result(experiment, Request(APIRequestFactory().get("/"))), accepted)
    address = f"{EXPERIMENTS}{experiment.slug}/result/"
    small = client.get(address, headers={"accept": accepted})
    assert small.content == whole
    monkeypatch.setattr(written, "_IN_MEMORY", 100)
    large = client.get(address, headers={"accept": accepted})
    assert large.streaming
    assert b"".join(large.streaming_content) == whole
    assert (large["Content-Type"], large["Content-Length"]) == (small["Content-Type"], str(len(whole)))


def test_long_result_has_the_limits_of_exports(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """Trials of an import that name one environment of 10 MiB filled the disk."""
    ada = factories.person("ada", "viewer")
    client = client_of(ada)
    address = f"{EXPERIMENTS}{factories.experiment().slug}/result/"
    settings.DISK_RESERVE_BYTES = 1 << 60
    assert client.get(address).status_code == 200
    monkeypatch.setattr(written, "_IN_MEMORY", 100)
    assert client.get(address).status_code == 400
    settings.DISK_RESERVE_BYTES = 0
    with concurrency_limits.acquire(ada, "export"), concurrency_limits.acquire(ada, "export"):
        assert client.get(address).status_code == 429
    assert client.get(address).status_code == 200


def test_result_text_equals_the_whole_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_PIECE", 2)
    experiment = factories.experiment(warmups=1)
    factories.finished()
    dumps = partial(json.dumps, indent=1)
    assert "".join(result_text(experiment, dumps, indent=1)) == dumps(experiment_result(experiment))
    experiment.trials.all().delete()
    assert "".join(result_text(experiment, dumps, indent=1)) == dumps(experiment_result(experiment))


def test_it_exports_published_results_too() -> None:
    load_published()
    result = experiment_result(Experiment.objects.get(slug="guster-2007-water"))
    assert result["experiment"]["published"] is True
    assert result["experiment"]["cluster"] is None
    assert [trial["metrics"]["packets"] for trial in result["trials"]][:2] == [201361, 191377]
