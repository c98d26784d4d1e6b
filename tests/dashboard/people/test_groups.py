"""Groups of an identity provider give roles, and take them away again."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client, RequestFactory

from dashboard.people.backends import give_roles
from experiments.models import Project
from tests.experiments import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def roles(settings: Any) -> None:
    settings.GROUP_ROLES = {
        "physics": [("optics", "submitter")],
        "heads": [("optics", "maintainer"), ("absent", "viewer")],
    }
    Project.objects.create(slug="optics", name="Optics")


@pytest.mark.usefixtures("roles")
def test_the_greatest_role_of_several_groups_counts_and_goes_with_its_group() -> None:
    user = factories.person("ada")
    result = []
    for groups in (["physics", "unknown"], ["physics", "heads"], ["physics"], []):
        give_roles(user, groups)
        result.append(list(user.memberships.values_list("project__slug", "role")))
    assert result == [[("optics", "submitter")], [("optics", "maintainer")], [("optics", "submitter")], []]


@pytest.mark.usefixtures("roles")
def test_roles_given_by_a_maintainer_stay() -> None:
    user = factories.person("ada", "viewer", Project.objects.get(slug="optics"))
    for groups in (["heads"], []):
        give_roles(user, groups)
        assert user.memberships.get().role == "viewer"


@pytest.mark.usefixtures("roles")
def test_roles_of_groups_end_when_their_user_signs_in_with_a_password(client: Client) -> None:
    """The provider may have closed the user's account there."""
    user = factories.person("ada", "viewer")
    give_roles(user, ["heads"])
    client.force_login(user)
    assert list(user.memberships.values_list("project__slug", "role")) == [("default", "viewer")]


@pytest.mark.usefixtures("roles")
@pytest.mark.parametrize(
    ("methods", "stay"),
    [
        (["mfa"], False),  # a passkey: neither provider nor directory was asked
        (["password", "mfa"], True),  # of the directory: the account has none here
        (["socialaccount", "mfa"], True),
    ],
)
def test_roles_of_groups_end_when_their_user_signs_in_with_a_passkey(methods: list[str], stay: bool) -> None:
    user = User.objects.create_user("newton")
    give_roles(user, ["heads"])
    records = [{"method": method} for method in methods]
    request: Any = RequestFactory().get("/")
    request.session = SessionStore()
    request.session["account_authentication_methods"] = records
    request.session["account_authentication_methods_user"] = str(user.pk)
    user_logged_in.send(User, request=request, user=user)
    assert user.memberships.exists() is stay
