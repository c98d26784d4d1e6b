"""The author chooses a project; a move needs rights in both projects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Experiment, Membership, Project
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

FORM = {"name": "Small", "workload": "water", "cluster": "testbed", "repetitions": "1"}


@pytest.fixture
def optics(person: User) -> Project:
    project = Project.objects.create(slug="optics", name="Optics")
    project.memberships.create(user=person, role=Membership.Role.SUBMITTER)
    return project


def test_the_form_asks_for_the_project_where_there_are_several(page: Client, optics: Project) -> None:
    text = page.get("/experiments/new/").content.decode()
    assert '<option value="optics">' in text
    assert page.post("/experiments/new/", {**FORM, "project": "optics"}).status_code == 302
    assert Experiment.objects.latest("pk").project == optics


def test_it_starts_nothing_in_a_project_that_is_not_ones_own(page: Client, library: Project) -> None:
    Project.objects.create(slug="secret", name="Secret")
    answer = page.post("/experiments/new/", {**FORM, "project": "secret"})
    assert answer.status_code == 422


def test_a_clone_stays_in_the_project_of_its_original(page: Client, optics: Project) -> None:
    factories.experiment(project=optics, slug="original")
    answer = page.get("/experiments/new/?from=optics--original")
    assert '<option value="optics" selected>' in answer.content.decode()
    notes = answer.context["preview"].notes
    Project.objects.exclude(pk=optics.pk).update(most_queued_trials=1)
    assert page.get("/experiments/new/?from=optics--original").context["preview"].notes == notes, "the quota of another"
    Project.objects.filter(pk=optics.pk).update(most_queued_trials=1)
    assert page.get("/experiments/new/?from=optics--original").context["preview"].notes != notes


@pytest.fixture
def over(submit: Callable[..., Experiment]) -> Experiment:
    experiment = submit()
    experiment.cancel()
    return experiment


def test_it_moves_what_is_over_to_a_project_of_ones_own(page: Client, optics: Project, over: Experiment) -> None:
    address = f"/experiments/{over.slug}/move/"
    assert "Optics" in page.get(address).content.decode()
    assert page.post(address, {"project": "optics"}).status_code == 302
    over.refresh_from_db()
    assert over.project == optics


def test_it_does_not_move_what_waits(page: Client, optics: Project, submit: Callable[..., Experiment]) -> None:
    experiment = submit()
    page.post(f"/experiments/{experiment.slug}/move/", {"project": "optics"})
    experiment.refresh_from_db()
    assert experiment.project.slug == "default"


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), (None, 403), ("submitter", 200)])
def test_rest_moves_to_where_one_may_submit(
    person: User, optics: Project, over: Experiment, role: str | None, status: int
) -> None:
    optics.memberships.filter(user=person).delete()
    if role is not None:
        optics.memberships.create(user=person, role=role)
    address, body = f"/api/v1/experiments/{over.slug}/move/", {"project": "optics"}
    answer: Any = client_of(person).post(address, body, content_type="application/json")
    assert answer.status_code == status, answer.json()
    over.refresh_from_db()
    assert (over.project == optics) is (status == 200)
