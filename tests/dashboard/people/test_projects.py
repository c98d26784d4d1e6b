"""Maintainers give and take roles in their project, by page and REST; a project keeps a maintainer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Invitation, Membership, Project
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.fixture
def optics(db: None) -> Project:
    return Project.objects.create(slug="optics", name="Optics")


@pytest.fixture
def mia(optics: Project) -> Any:
    return factories.person("mia", "maintainer", optics)


@pytest.fixture
def browser(mia: Any) -> Client:
    client = Client()
    client.force_login(mia)
    return client


def roles(project: Project) -> dict[str, str]:
    return dict(project.memberships.values_list("user__username", "role"))


def member(project: Project, name: str) -> str:
    return f"/projects/optics/members/{project.memberships.get(user__username=name).pk}/"


def test_a_maintainer_adds_changes_and_removes_members(browser: Client, optics: Project) -> None:
    factories.person("ada")
    browser.post("/projects/optics/members/", {"member-name": "ada", "member-role": "viewer"})
    assert roles(optics) == {"mia": "maintainer", "ada": "viewer"}
    browser.post(member(optics, "ada"), {"role": "submitter"})
    assert roles(optics)["ada"] == "submitter"
    browser.post(member(optics, "ada"), {"remove": "1"})
    assert roles(optics) == {"mia": "maintainer"}


def test_an_account_that_does_not_exist_is_told_at_its_field(browser: Client, optics: Project) -> None:
    answer = browser.post("/projects/optics/members/", {"member-name": "ada", "member-role": "viewer"})
    assert answer.status_code == 422
    assert "There is no account of this name" in answer.content.decode()


def test_the_last_maintainer_stays(browser: Client, optics: Project) -> None:
    for change in ({"role": "viewer"}, {"remove": "1"}):
        assert "would have no maintainer" in browser.post(member(optics, "mia"), change, follow=True).content.decode()
    assert roles(optics) == {"mia": "maintainer"}
    api = client_of(User.objects.get(username="mia"))
    put = api.put("/api/v1/projects/optics/members/mia/", {"role": "viewer"}, content_type="application/json")
    assert (put.status_code, api.delete("/api/v1/projects/optics/members/mia/").status_code) == (409, 409)


@pytest.mark.parametrize("role", ["viewer", "submitter"])
def test_others_see_the_members_and_may_leave(optics: Project, mia: Any, role: str) -> None:
    client = Client()
    client.force_login(factories.person("ada", role, optics))
    assert "mia" in client.get("/projects/optics/").content.decode()
    assert client.post(member(optics, "mia"), {"remove": "1"}).status_code == 403
    assert client.post(member(optics, "ada"), {"role": "maintainer"}).status_code == 403
    assert client.post("/projects/optics/invitations/", {}).status_code == 403
    assert client.post(member(optics, "ada"), {"remove": "1"})["Location"] == "/projects/"
    assert roles(optics) == {"mia": "maintainer"}


def test_the_link_of_an_invitation_is_shown_once(browser: Client, optics: Project) -> None:
    answer = browser.post("/projects/optics/invitations/", {"invitation-role": "viewer", "invitation-days": "7"})
    link = re.search(r"http://testserver(/invitation/[\w-]{20,}/)", answer.content.decode())
    assert link is not None
    assert link[1] not in browser.get("/projects/optics/").content.decode()
    invited = Client()
    invited.force_login(factories.person("ada"))
    invited.get(link[1])
    invited.post("/invitation/")
    assert roles(optics)["ada"] == "viewer"


def test_an_invitation_can_be_withdrawn(browser: Client, optics: Project) -> None:
    invitation, key = Invitation.issue(optics, "viewer", by=None)
    browser.post(f"/projects/optics/invitations/{invitation.pk}/end/")
    assert Invitation.find(key) is None


def test_rest_gives_and_takes_roles(optics: Project, mia: Any) -> None:
    factories.person("ada")
    api, address = client_of(mia), "/api/v1/projects/optics/members/ada/"
    answer = api.put(address, {"role": "viewer"}, content_type="application/json")
    told = {"name": "ada", "role": "viewer", "by_group": False}
    assert answer.json()["members"] == [told, {"name": "mia", "role": "maintainer", "by_group": False}]
    assert api.put(address, {"role": "owner"}, content_type="application/json").status_code == 400
    assert api.delete(address).status_code == 204
    assert api.delete(address).status_code == 404
    assert [each["slug"] for each in api.get("/api/v1/projects/").json()["results"]] == ["optics"]


def test_a_token_below_maintaining_gives_no_roles(optics: Project, mia: Any) -> None:
    factories.person("ada")
    api = client_of(mia, scope="submit")
    address = "/api/v1/projects/optics/members/ada/"
    assert api.put(address, {"role": "viewer"}, content_type="application/json").status_code == 403
    assert not Membership.objects.filter(user__username="ada").exists()
