"""Predictions on the pages of Network what-if."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Prediction, Project
from experiments.selectors.network import network_study_of
from tests.dashboard.laboratory import laboratory_with
from tests.dashboard.studies_measured import NETWORK, measured, needing
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
LINK = {"delay": "0.00035", "rate": "700000000", "loss": "0", "at": ""}


def measure(library: Project, person: User) -> None:
    experiment = measured(library, NETWORK, needing)
    Experiment.objects.filter(pk=experiment.pk).update(owner=person)


LABORATORY = laboratory_with(measure)


@pytest.fixture
def library(db: None) -> Project:
    LABORATORY.restore()
    return load_defaults()


@pytest.fixture
def person(library: Project) -> User:
    return User.objects.get(username="okafor")


@pytest.fixture
def study(person: User) -> Experiment:
    return Experiment.objects.get(slug="needs")


def said(page: Client, answer: Any) -> str:
    return " ".join(page.get(answer.url).text.split())


def test_prediction_is_computed_by_the_server(page: Client, study: Experiment) -> None:
    answer = page.post(f"/network/{study.slug}/predictions/", {**LINK, "value": "0.001"})
    prediction = Prediction.objects.get()
    assert answer.url == f"/network/predictions/{prediction.pk}/"
    assert prediction.value_s > 3
    assert prediction.author is not None
    text = said(page, answer)
    assert prediction.evidence_hash in text
    assert "not checked" in text
    assert study.trials.filter(state="queued").count() == 0


def test_check_queues_trials_and_shows_their_median(page: Client, study: Experiment, run: Any) -> None:
    answer = page.post(f"/network/{study.slug}/predictions/", {**LINK, "check": "1"})
    response = page.get(answer.url)
    assert response.context["verdict"] == "2 trials to come"
    assert response.context["answer"].endswith("2 trials queued to check it.")
    run()  # two hosts take 2.1 s and a little, where more than three were predicted
    response = page.get(answer.url)
    assert (response.context["verdict"], len(response.context["trials"])) == ("outside", 2)
    assert response.context["measured"].startswith("2.16")
    study.trials.filter(pk=response.context["trials"][0]["pk"]).update(
        trust="degraded", conditions={"disturbances": ["other programs"]}
    )
    one_slowed = page.get(answer.url)
    assert [trial["is_disturbed"] for trial in one_slowed.context["trials"]] == [True, False]
    assert len(one_slowed.context["check"].seconds) == 1
    row = page.get(f"/network/{study.slug}/").context["predictions"]
    assert row["rows"][0]["error"].startswith("+")
    assert [name for name, _ in row["scores"]] == [
        "This experiment",
        "TIP4P water",
        "All workloads",
    ]
    assert row["scores"][0][1].startswith("0 of 1 inside their 90")


def test_its_list_costs_the_same_number_of_queries_whatever_it_holds(
    page: Client, study: Experiment, django_assert_max_num_queries: Any
) -> None:
    """Two for the lists and two for all their trials, beside the study's."""
    factories.prediction(study)
    page.get(f"/network/{study.slug}/")
    with django_assert_max_num_queries(30) as few:
        page.get(f"/network/{study.slug}/")
    for delay_s in (2e-3, 3e-3, 4e-3):
        factories.prediction(study, delay_s=delay_s)
    with django_assert_max_num_queries(len(few)):
        page.get(f"/network/{study.slug}/")


def test_a_model_of_several_combinations_keeps_the_one_that_is_shown(page: Client, library: Project) -> None:
    swept = {**NETWORK, "parameters": {"molecules": 216, "steps": 50}, "sweep": {"hosts": [2, 4]}, "repetitions": 1}
    study = measured(library, swept, needing)
    page.post(f"/network/{study.slug}/predictions/", {**LINK, "at": "4 hosts"})
    prediction = Prediction.objects.get()
    assert (prediction.at, prediction.hosts, len(prediction.evidence)) == ("4 hosts", 4, 10)
    assert network_study_of(study).fits[1].at == "4 hosts"
    assert Cluster.objects.get(slug="testbed").pk == prediction.cluster_id
