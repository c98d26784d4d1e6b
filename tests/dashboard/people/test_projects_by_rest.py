"""REST: projects with their members, roles and owners."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.library import PUBLISHED_PROJECT, load_defaults
from experiments.models import Membership, Project
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
PROJECTS = "/api/v1/projects/"
ADA = f"{PROJECTS}optics/members/ada/"


@pytest.fixture
def optics() -> Project:
    """With mia, who maintains it, and ada, who looks."""
    load_defaults()
    project = Project.objects.create(slug="optics", name="Optics")
    for name, role in (("mia", "maintainer"), ("ada", "viewer")):
        project.set_role(factories.person(name), role)
    return project


def user_of(project: Project, name: str) -> Any:
    return project.memberships.get(user__username=name).user


def answered(client: Any, address: str, status: int = 200) -> Any:
    answer = client.get(address)
    assert answer.status_code == status, answer.content
    return answer.json()


def roles(project: Project) -> dict[str, str]:
    return dict(project.memberships.values_list("user__username", "role"))


def test_it_lists_the_caller_s_own_with_their_members_and_the_caller_s_role(optics: Project) -> None:
    Project.objects.create(slug="acoustics", name="Acoustics").set_role(user_of(optics, "ada"), "submitter")
    Project.objects.create(slug="secret", name="Secret")
    reported = answered(client_of(user_of(optics, "ada")), PROJECTS)
    assert reported["count"] == 2
    assert reported["results"] == [
        {
            "slug": "acoustics",
            "name": "Acoustics",
            "role": "submitter",
            "members": [{"name": "ada", "role": "submitter", "by_group": False}],
        },
        {
            "slug": "optics",
            "name": "Optics",
            "role": "viewer",
            "members": [
                {"name": "ada", "role": "viewer", "by_group": False},
                {"name": "mia", "role": "maintainer", "by_group": False},
            ],
        },
    ]


def test_a_role_that_came_with_a_group_says_so(optics: Project) -> None:
    Membership.objects.filter(user__username="ada").update(by_group=True)
    members = answered(client_of(user_of(optics, "mia")), f"{PROJECTS}optics/")["members"]
    assert {each["name"]: each["by_group"] for each in members} == {"mia": False, "ada": True}


def test_superusers_see_all_but_that_of_published_studies_and_have_a_role_where_they_are_members(
    optics: Project,
) -> None:
    root = factories.person("root", is_superuser=True)
    optics.set_role(root, "viewer")
    reported = answered(client_of(root), PROJECTS)["results"]
    assert {each["slug"]: each["role"] for each in reported} == {"default": None, "optics": "viewer"}
    answered(client_of(root), f"{PROJECTS}{PUBLISHED_PROJECT}/", 404)


def test_it_comes_in_pages(optics: Project) -> None:
    client = client_of(factories.person("root", is_superuser=True))
    first = answered(client, f"{PROJECTS}?limit=1")
    assert (first["count"], [each["slug"] for each in first["results"]]) == (2, ["default"])
    rest = answered(client, first["next"])
    assert ([each["slug"] for each in rest["results"]], rest["next"]) == (["optics"], None)


@pytest.mark.parametrize(
    ("query", "path"), [("colour=red", "colour"), ("limit=many", "limit"), ("offset=1.5", "offset")]
)
def test_unknown_filters_are_refused_by_name(optics: Project, query: str, path: str) -> None:
    reported = answered(client_of(user_of(optics, "mia")), f"{PROJECTS}?{query}", 400)
    assert [each["path"] for each in reported["errors"]] == [path]


def test_it_is_not_there_for_others_nor_for_a_token_of_another_project(optics: Project) -> None:
    other = Project.objects.create(slug="acoustics", name="Acoustics")
    other.set_role(user_of(optics, "mia"), "maintainer")
    for client in (client_of(factories.person("eve")), client_of(user_of(optics, "mia"), project=other)):
        answered(client, f"{PROJECTS}optics/", 404)
        assert "optics" not in {each["slug"] for each in answered(client, PROJECTS)["results"]}
        assert client.delete(ADA).status_code == 404
    assert roles(optics) == {"mia": "maintainer", "ada": "viewer"}


@pytest.mark.parametrize(
    ("body", "path"),
    [({}, "role"), ({"role": "owner"}, "role"), ({"role": None}, "role"), ({"role": ["viewer"]}, "role")],
)
def test_a_role_that_there_is_not_is_refused_at_its_field(optics: Project, body: Any, path: str) -> None:
    answer = client_of(user_of(optics, "mia")).put(ADA, body, content_type="application/json")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.status_code, [each["path"] for each in answer.json()["errors"]]) == (400, [path])
    assert roles(optics)["ada"] == "viewer"


def test_maintainers_alone_give_roles_and_to_those_alone_who_have_an_account(optics: Project) -> None:
    factories.person("gone", is_active=False)
    viewer, maintainer = client_of(user_of(optics, "ada")), client_of(user_of(optics, "mia"))
    wanted = {"role": "maintainer"}
    assert viewer.put(ADA, wanted, content_type="application/json").status_code == 403
    for name in ("gone", "nobody"):
        answer = maintainer.put(f"{PROJECTS}optics/members/{name}/", wanted, content_type="application/json")
        assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no account {name}.")
    assert maintainer.put(ADA, wanted, content_type="application/json").json()["role"] == "maintainer"
    assert roles(optics) == {"mia": "maintainer", "ada": "maintainer"}


def test_users_end_their_own_membership_and_the_only_maintainer_stays(optics: Project) -> None:
    assert client_of(user_of(optics, "ada")).delete(f"{PROJECTS}optics/members/mia/").status_code == 403
    assert client_of(user_of(optics, "ada")).delete(ADA).status_code == 204
    kept = client_of(user_of(optics, "mia")).delete(f"{PROJECTS}optics/members/mia/")
    assert (kept.status_code, "maintainer" in kept.json()["detail"]) == (409, True)
    assert roles(optics) == {"mia": "maintainer"}
