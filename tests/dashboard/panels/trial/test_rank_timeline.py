"""Ranks over time on the page of a traced trial."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from analysis.mpi.calls import to_bytes
from analysis.mpi.timeline import timeline
from dashboard.charts.ranks import ranks_over_time
from experiments.files import MPI_CALLS_NAME
from experiments.models import Artifact, Trial
from tests.analysis.mpi.scenes import EPOCH, MS, Scene
from tests.dashboard.charts.figures import checked
from tests.dashboard.panels.trial.samples import captured
from tests.experiments.factories import experiment, finished, stored_file


@pytest.fixture
def scene() -> Scene:
    return Scene().call(0, "Send", 0, 30, peer=1).call(0, "Barrier", 90, 100).call(1, "Recv", 0, 100, peer=0)


@pytest.fixture
def traced(library: object, scene: Scene) -> Trial:
    experiment()
    trial = finished()
    stored_file(trial, MPI_CALLS_NAME, to_bytes(scene.calls), Artifact.Kind.OTHER).save()
    return trial


def figure_of(page: Client, trial: Trial, **query: object) -> dict:
    text = page.get(reverse("trial-rank-timeline", args=[trial.pk]), query).content.decode()
    return json.loads(re.search(r'id="figure-rank-timeline">(.*?)</script>', text, re.DOTALL)[1])["data"][0]


def test_each_step_has_the_state_that_took_most_of_it(scene: Scene) -> None:
    figure = ranks_over_time(timeline(scene.calls, EPOCH, EPOCH + 100 * MS, 10, 8), EPOCH)
    assert figure["data"][0]["z"] == [[1, 1, 1, 0, 0, 0, 0, 0, 0, 1], [2] * 10]
    assert figure["data"][0]["customdata"][0][0] == [0, 100, 0]
    assert figure["data"][0]["x"][:2] == [5, 15]
    checked(figure)


def test_the_server_draws_as_many_steps_as_asked_within_bounds(page: Client, traced: Trial) -> None:
    assert len(figure_of(page, traced, steps=20)["x"]) == 20
    assert len(figure_of(page, traced, steps=999_999)["x"]) == 2_000
    assert len(figure_of(page, traced, steps="many")["x"]) == 400


def test_a_step_leads_to_the_packets_of_its_time_where_they_are_kept(page: Client, traced: Trial) -> None:
    assert "leads" not in figure_of(page, traced, steps=10)
    capture = captured(traced, began_s=EPOCH / 1e9 + 0.035)
    figure = figure_of(page, traced, steps=10)
    assert figure["leads"] == f"{traced.get_absolute_url()}?tab=packets&from_s=*&until_s=*"
    assert figure["columns"][:3] == [[], [], []]
    assert [[round(float(word), 3) for word in words] for words in figure["columns"][3:5]] == [
        [0, 0.005],
        [0.005, 0.015],
    ]
    capture.removed_at = capture.created_at
    capture.save()
    assert "leads" not in figure_of(page, traced, steps=10)


def test_a_part_of_the_run_is_computed_anew(page: Client, traced: Trial) -> None:
    part = figure_of(page, traced, **{"from": "0.08", "to": "0.1", "steps": 10})
    assert part["z"][0] == [0] * 5 + [1] * 5
    assert len(figure_of(page, traced, **{"from": "nan", "to": "-5", "steps": 10})["x"]) == 10
