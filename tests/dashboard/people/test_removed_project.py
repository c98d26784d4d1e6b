"""Superusers remove empty projects; contents of others are listed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import ApiToken, Deleted, Experiment, Invitation, Project
from tests.dashboard.api.clients import client_of
from tests.dashboard.texts import text_of
from tests.experiments import factories


@pytest.fixture
def root(page: Client, person: User) -> Client:
    User.objects.filter(pk=person.pk).update(is_superuser=True)
    return page


@pytest.fixture
def wing(person: User) -> Project:
    """With a member, an invitation and a token of its own."""
    project = Project.create_named("Wing")
    project.set_role(person, "maintainer")
    Invitation.issue(project, "viewer", by=person, whom="", days=7)
    ApiToken.issue(person, "of the wing", project=project)
    return project


def test_one_that_holds_nothing_goes_with_its_members_invitations_and_tokens(root: Client, wing: Project) -> None:
    page = text_of(root.get("/projects/wing/"))
    assert "Delete Wing?" in page
    assert "Its 1 member loses the role." in page
    root.post("/projects/wing/remove/", {"name": "Wing"})
    assert not Project.objects.filter(slug="wing").exists()
    assert not ApiToken.objects.filter(name="of the wing").exists()
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("name", ["", "wing", "Laboratory"])
def test_it_stays_until_its_name_is_written(root: Client, wing: Project, name: str) -> None:
    root.post("/projects/wing/remove/", {"name": name})
    assert Project.objects.filter(slug="wing").exists()


def test_it_stays_while_something_of_it_can_be_brought_back(root: Client, wing: Project) -> None:
    Deleted.objects.create(
        uid="00000000-0000-4000-8000-000000000001", slug="wing--gone", name="Gone", workload="water", project=wing
    )
    root.post("/projects/wing/remove/", {"name": "Wing"})
    assert Project.objects.filter(slug="wing").exists()


def test_the_first_one_stays(root: Client) -> None:
    assert "Project removal" not in text_of(root.get("/projects/default/"))
    answer = root.post("/projects/default/remove/", {"name": Project.objects.get(slug="default").name}, follow=True)
    assert "every installation has it" in text_of(answer)


def test_rest_removes_what_holds_nothing_and_says_what_is_held(
    library: object, wing: Project, submit: Callable[..., Experiment]
) -> None:
    client = client_of(factories.person("root", is_superuser=True))
    experiment = submit()
    Experiment.objects.filter(pk=experiment.pk).update(project=wing)
    refused = client.delete("/api/v1/projects/wing/")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "Wing cannot be deleted: it holds 1 experiment.",
    )
    Experiment.objects.filter(pk=experiment.pk).update(project=Project.objects.get(slug="default"))
    assert client.delete("/api/v1/projects/wing/").status_code == 204
    assert client.get("/api/v1/projects/wing/").status_code == 404


@pytest.mark.parametrize("scope", ["read", "submit"])
def test_rest_refuses_it_to_smaller_tokens_and_to_maintainers(wing: Project, scope: str) -> None:
    superuser = factories.person("root", is_superuser=True)
    maintainer = factories.person("mia", "maintainer")
    wing.set_role(maintainer, "maintainer")
    for client in (client_of(superuser, scope=scope), client_of(maintainer), client_of(superuser, project=wing)):
        assert client.delete("/api/v1/projects/wing/").status_code == 403
