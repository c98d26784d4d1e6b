"""A cluster that is switched off or too small is refused by every face in the same words; nothing is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from experiments.models import Cluster, Experiment
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.laboratory import specification

SENTENCE = "the cluster 'testbed' is unknown or switched off; known: local"


@pytest.fixture
def experiment(submit: Any) -> Experiment:
    """An experiment whose cluster was switched off since."""
    experiment: Experiment = submit()
    Cluster.objects.filter(slug="testbed").update(enabled=False)
    return experiment


def plain(response: Any) -> str:
    return str(response.content.decode().replace("&#x27;", "'"))


def test_a_study_it_does_not_start(experiment: Experiment, page: Client) -> None:
    text = plain(page.post(reverse("study-run", args=["water-quick"]), follow=True))
    assert f"cannot run: {SENTENCE}." in text
    assert Experiment.objects.filter(published=False).count() == 1


def test_repetitions_it_does_not_add(experiment: Experiment, page: Client) -> None:
    text = plain(page.post(reverse("experiment-repeat", args=[experiment.slug]), {"count": "1"}, follow=True))
    assert SENTENCE in text
    assert experiment.trials.count() == 6


def test_an_edit_it_refuses_at_the_field(experiment: Experiment, page: Client) -> None:
    form = {"name": experiment.name, "workload": "water", "sweep_name": "hosts", "sweep_values": "1, 2"}
    response = page.post(reverse("experiment-edit", args=[experiment.slug]), form)
    assert response.status_code == 422
    assert SENTENCE in plain(response).partition('id="err-cluster"')[2].partition("</p>")[0]


@pytest.mark.parametrize("kind", ["post", "put"])
def test_over_rest_it_names_the_field(experiment: Experiment, person: Any, kind: str) -> None:
    address = EXPERIMENTS if kind == "post" else f"{EXPERIMENTS}{experiment.slug}/"
    answer = getattr(client_of(person), kind)(address, specification(repetitions=5), "application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": "cluster", "message": SENTENCE}]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cluster", "sentence"),
    [
        ("moon", "cluster: the cluster 'moon' is unknown or switched off; known: local, testbed"),
        ("local", "sweep.hosts: the cluster This machine has 1 host, not 4"),
    ],
)
def test_on_the_command_line_it_is_one_line(tmp_path: Path, cluster: str, sentence: str) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump(specification(cluster=cluster)))
    with pytest.raises(CommandError) as caught:
        call_command("run_experiment", file)
    assert (str(caught.value), caught.value.returncode) == (f"{file}: {sentence}", 2)
    assert not Experiment.objects.exists()
