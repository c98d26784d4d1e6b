"""REST: revisions of experiments."""

from __future__ import annotations

import pytest
from django.test import Client

from experiments.models import Experiment, State
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories
from tests.experiments.specifications import written

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "submitter"))


@pytest.fixture
def experiment(client: Client) -> Experiment:
    """Ada's experiment; every trial has finished."""
    assert client.post(EXPERIMENTS, written(), "application/json").status_code == 201
    experiment = Experiment.objects.get()
    experiment.trials.update(state=State.FINISHED)
    return experiment


def address(experiment: Experiment, action: str = "") -> str:
    return f"{EXPERIMENTS}{experiment.slug}/{action}"


def test_revision_queues_only_new_trials(client: Client, experiment: Experiment) -> None:
    answer = client.put(address(experiment), written(sweep={"hosts": [1, 2, 4]}), "application/json")
    assert (answer.status_code, answer.json()) == (200, {"queued": 2})
    assert client.get(address(experiment)).json()["version"] == 2


def test_it_refuses_a_bad_revision_at_its_field_and_keeps_the_version(client: Client, experiment: Experiment) -> None:
    answer = client.put(address(experiment), written(sweep={"hosts": [0]}), "application/json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["path"] == "sweep.hosts"
    experiment.refresh_from_db()
    assert experiment.version == 1
