"""Accounts need an invitation unless sign-up is open."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from experiments.models import Invitation, Membership, Project
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
NEW = {"username": "newton", "email": "", "password1": "battery staple", "password2": "battery staple"}


def test_sign_up_is_closed_by_default(library: Project, client: Client) -> None:
    assert client.post("/sign-up/", NEW).status_code == 200
    assert not User.objects.filter(username="newton").exists()
    assert "sign-up" not in client.get("/sign-in/").content.decode()


def test_sign_up_is_open_if_the_setting_allows_it(library: Project, client: Client, settings: Any) -> None:
    settings.SIGN_UP = True
    assert client.post("/sign-up/", NEW).status_code == 302
    assert not Membership.objects.filter(user__username="newton").exists()


def test_sign_up_shows_all_errors_of_the_passwords(library: Project, client: Client, settings: Any) -> None:
    settings.SIGN_UP = True
    wrong = {**NEW, "username": "new ton", "password1": "password", "password2": "passwort"}
    errors = client.post("/sign-up/", wrong).context["form"].errors
    assert errors["username"] == ["Use letters, digits and @ . + - _ only."]
    assert "too common" in errors["password1"][0]
    assert errors["password2"] == ["You must type the same password each time."]
    text = client.get("/sign-up/").content.decode()
    assert "at least 8 characters" in text
    assert "tokens" not in text.partition("<main")[2]


@pytest.mark.parametrize("last_login", [None, timezone.now()])
def test_sign_in_names_the_first_account_until_another_exists(
    library: Project, client: Client, last_login: datetime | None
) -> None:
    assert "admin-password" in client.get("/sign-in/").content.decode()
    User.objects.create_user("ada", last_login=last_login)
    assert "admin-password" not in client.get("/sign-in/").content.decode()


def test_an_invitation_lets_one_person_make_an_account_and_join(library: Project, client: Client) -> None:
    _, key = Invitation.issue(library, "submitter", by=factories.person("mia", "maintainer"))
    assert client.get(f"/invitation/{key}/")["Location"] == "/invitation/"
    assert library.name in client.get("/invitation/").content.decode()
    assert client.post("/sign-up/", NEW)["Location"] == "/"
    assert Membership.objects.get(user__username="newton").role == "submitter"
    late = Client()
    late.get(f"/invitation/{key}/")
    assert late.get("/invitation/").status_code == 404
    late.post("/sign-up/", {**NEW, "username": "late"})
    assert not User.objects.filter(username="late").exists()


def test_an_invitation_gives_a_member_more_but_never_less(page: Client, person: User, library: Project) -> None:
    boss = factories.person("boss", is_superuser=True)
    for role, after in (("viewer", "submitter"), ("maintainer", "maintainer")):
        _, key = Invitation.issue(library, role, by=boss)
        page.get(f"/invitation/{key}/")
        page.post("/invitation/")
        assert person.memberships.get(project=library).role == after


def test_an_invitation_is_over_after_its_time(page: Client, library: Project) -> None:
    _, key = Invitation.issue(library, "maintainer", by=factories.person("boss", is_superuser=True))
    Invitation.objects.update(expires_at=timezone.now())
    page.get(f"/invitation/{key}/")
    assert page.get("/invitation/").status_code == 404
    assert page.post("/invitation/").status_code == 404
