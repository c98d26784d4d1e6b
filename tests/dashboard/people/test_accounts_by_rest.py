"""REST: superusers change accounts; the last superuser stays."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from experiments.models import Project
from experiments.models.changes import changes
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
PEOPLE = "/api/v1/people/"


@pytest.fixture
def root() -> User:
    return factories.person("root", is_superuser=True, is_staff=True)


@pytest.fixture
def rest(root: User) -> Client:
    return client_of(root)


def make(rest: Client, **fields: Any) -> Any:
    return rest.post(PEOPLE, fields, content_type="application/json")


def sentence(answer: Any, status: int) -> str:
    assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json")
    return str(answer.json()["detail"])


def logged(user: User) -> list[tuple[str | None, dict[str, list[str]]]]:
    """(who, what) of the changes of an account, newest first."""
    rows = [each for each in changes() if each.object_pk == str(user.pk) and each.content_type.name == "user"]
    return [(each.actor and each.actor.get_username(), each.changes) for each in rows]


def test_a_new_account_chooses_its_password_by_the_link_of_the_answer(
    rest: Client, client: Client, library: Project
) -> None:
    answer = make(rest, name="lise", email="lise@example.org", project="default", role="viewer")
    assert (answer.status_code, answer["Cache-Control"]) == (201, "private, no-store")
    lise = User.objects.get(username="lise")
    assert (lise.has_usable_password(), lise.email, lise.memberships.get().role) == (
        False,
        "lise@example.org",
        "viewer",
    )
    form = client.get(answer.json()["link"], follow=True)
    password = "a long enough secret"
    client.post(form.redirect_chain[-1][0], {"password1": password, "password2": password})
    lise.refresh_from_db()
    assert lise.check_password(password)
    assert logged(lise)[-1][0] == "root"
    assert make(rest, name="kim").status_code == 201
    assert not User.objects.get(username="kim").memberships.exists()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "name"),
        ({"name": "root"}, "name"),
        ({"name": "no name"}, "name"),
        ({"name": "lise", "email": "nowhere"}, "email"),
        ({"name": "lise", "project": "elsewhere"}, "project"),
        ({"name": "lise", "role": "king"}, "role"),
    ],
)
def test_errors_of_a_new_account_name_the_field(rest: Client, fields: dict[str, str], path: str) -> None:
    answer = make(rest, **fields)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert not User.objects.filter(username="lise").exists()


def test_an_account_is_closed_and_opened_again_and_both_are_written_down(rest: Client) -> None:
    ada = factories.person("ada", "submitter")
    own = client_of(ada)
    answer = rest.post(f"{PEOPLE}ada/close/")
    assert (answer.status_code, answer.json()["open"]) == (200, False)
    assert own.get(f"{PEOPLE}me/").status_code == 401
    assert rest.post(f"{PEOPLE}ada/close/").status_code == 409
    assert rest.post(f"{PEOPLE}ada/password-link/").status_code == 409
    assert rest.post(f"{PEOPLE}ada/reopen/").json()["open"] is True
    assert own.get(f"{PEOPLE}me/").status_code == 200
    who_and_what = [(who, what["is_active"]) for who, what in logged(ada)[:2]]
    assert who_and_what == [("root", ["False", "True"]), ("root", ["True", "False"])]


def test_a_superuser_is_made_and_the_last_one_stays(rest: Client, root: User) -> None:
    factories.person("ada", "viewer")
    assert rest.post(f"{PEOPLE}ada/superuser/").json()["superuser"] is True
    assert rest.post(f"{PEOPLE}ada/no-superuser/").json()["superuser"] is False
    for change in ("close", "no-superuser"):
        assert "There would be no superuser left" in sentence(rest.post(f"{PEOPLE}root/{change}/"), 409)
    root.refresh_from_db()
    assert (root.is_superuser, root.is_active) == (True, True)


def test_a_second_factor_is_reset_and_a_lock_opened(rest: Client, client: Client) -> None:
    ada = factories.person("ada", "viewer")
    Authenticator.objects.create(user=ada, type=Authenticator.Type.TOTP, data={"secret": "x"})
    assert rest.post(f"{PEOPLE}ada/second-factor/").json()["second_factor"] is False
    assert not Authenticator.objects.filter(user=ada).exists()
    assert sentence(rest.post(f"{PEOPLE}ada/unlock/"), 409)
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post("/sign-in/", {"username": "ada", "password": "wrong"})
    assert rest.post(f"{PEOPLE}ada/unlock/").status_code == 200
    assert ("root", {"sign-in": ["", "unlocked from 1 address"]}) in logged(ada)


def test_a_password_link_is_shown_once_and_logged(rest: Client) -> None:
    ada = factories.person("ada", "viewer")
    answer = rest.post(f"{PEOPLE}ada/password-link/")
    assert (answer.status_code, answer["Cache-Control"], answer.json()["name"]) == (200, "private, no-store", "ada")
    assert ("root", {"password": ["", "link made"]}) in logged(ada)
    assert rest.post(f"{PEOPLE}nobody/password-link/").status_code == 404
    assert rest.post(f"{PEOPLE}ada/promote/").status_code == 404


def test_only_superusers_change_accounts(root: User) -> None:
    ada = factories.person("ada", "maintainer")
    wing = Project.objects.create(slug="wing", name="Wing")
    for client in (
        client_of(ada),
        client_of(root, scope="read"),
        client_of(root, scope="submit"),
        client_of(root, project=wing),
    ):
        assert make(client, name="lise").status_code == 403
        for way in ("close", "superuser", "password-link"):
            assert client.post(f"{PEOPLE}ada/{way}/").status_code == 403
    ada.refresh_from_db()
    assert (ada.is_active, ada.is_superuser) == (True, False)
    assert not User.objects.filter(username="lise").exists()
