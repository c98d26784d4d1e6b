"""The full result of an experiment as plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.library import load_published
from experiments.models import Experiment
from experiments.selectors.result import experiment_result
from tests.experiments import factories

pytestmark = pytest.mark.django_db


def test_it_gives_every_current_trial_with_what_was_measured(django_assert_num_queries: Any) -> None:
    experiment = Experiment.objects.select_related("cluster").get(pk=factories.experiment(warmups=1).pk)
    factories.finished()
    factories.running().mark_lost("Gone.")
    factories.running().fail("It exited with status 1.")
    with django_assert_num_queries(2):
        result = experiment_result(experiment)
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


def test_it_exports_published_results_too() -> None:
    load_published()
    result = experiment_result(Experiment.objects.get(slug="guster-2007-water"))
    assert result["experiment"]["published"] is True
    assert result["experiment"]["cluster"] is None
    assert [trial["metrics"]["packets"] for trial in result["trials"]][:2] == [201361, 191377]
