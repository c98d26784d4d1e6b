"""REST: superusers see all accounts, users their own."""

from __future__ import annotations

import pytest

from experiments.models import Project
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = pytest.mark.django_db
PEOPLE = "/api/v1/people/"


def test_it_lists_accounts_with_their_roles_and_finds_them() -> None:
    client = client_of(factories.person("root", is_superuser=True))
    factories.person("ada", "viewer", email="ada@example.org")
    factories.person("bob", is_active=False)
    rows = client.get(PEOPLE).json()["results"]
    assert [row["name"] for row in rows] == ["ada", "bob", "root"]
    assert (rows[0]["roles"], rows[0]["open"], rows[0]["seen_at"], rows[0]["second_factor"]) == (
        [{"project": "default", "role": "viewer", "by_group": False}],
        True,
        None,
        False,
    )
    for query, names in (
        ({"q": "EXAMPLE ad"}, ["ada"]),
        ({"kind": "closed"}, ["bob"]),
        ({"kind": "superusers"}, ["root"]),
        ({"kind": "open", "q": "oo"}, ["root"]),
    ):
        assert [row["name"] for row in client.get(PEOPLE, query).json()["results"]] == names
    assert client.get(f"{PEOPLE}ada/").json() == rows[0]
    assert client.get(f"{PEOPLE}nobody/").status_code == 404


def test_it_refuses_kinds_and_names_of_filters_that_there_are_not() -> None:
    client = client_of(factories.person("root", is_superuser=True))
    for query in ({"kind": "odd"}, {"word": "ada"}):
        answer = client.get(PEOPLE, query)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, next(iter(query)))


def test_users_see_only_their_own_account() -> None:
    ada = factories.person("ada", "submitter")
    client = client_of(ada, scope="read")
    account = client.get(f"{PEOPLE}me/").json()
    assert (account["name"], account["superuser"], [role["role"] for role in account["roles"]]) == (
        "ada",
        False,
        ["submitter"],
    )
    assert client.get(PEOPLE).status_code == client.get(f"{PEOPLE}ada/").status_code == 403


def test_tokens_of_a_project_show_roles_in_it_alone() -> None:
    ada, wing = factories.person("ada", "submitter"), Project.objects.create(slug="wing", name="Wing")
    wing.set_role(ada, "maintainer")
    for project, roles in ((wing, ["wing"]), (None, ["default", "wing"])):
        account = client_of(ada, project=project).get(f"{PEOPLE}me/").json()
        assert sorted(role["project"] for role in account["roles"]) == roles


def test_smaller_tokens_of_superusers_do_not_see_people() -> None:
    root = factories.person("root", is_superuser=True)
    wing = Project.objects.create(slug="wing", name="Wing")
    for client in (client_of(root, scope="submit"), client_of(root, project=wing)):
        assert client.get(PEOPLE).status_code == 403
        assert client.get(f"{PEOPLE}me/").json()["name"] == "root"
