"""Signing in with a password of a directory (LDAP), whose groups become roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ldap
import pytest
from django.contrib.auth.models import User
from django.test import Client

from config.accounts import directory
from config.environment import Environment
from experiments.models import Project
from tests.dashboard.people.directory_server import directory_server, make_certificate

pytestmark = pytest.mark.usefixtures("empty_redis")
BACKEND = "django_auth_ldap.backend.LDAPBackend"


@pytest.fixture
def people(tmp_path: Path, settings: Any, library: Project) -> Iterator[Path]:
    """Run a directory with newton in the group physics; yield its certificate."""
    settings.GROUP_ROLES = {"physics": [(library.slug, "submitter")]}
    with directory_server(tmp_path) as port:
        values = {
            "SERVER": f"ldap://localhost:{port}",
            "PEOPLE": "dc=lab",
            "GROUPS": "dc=lab",
            "BIND": "cn=reader,dc=lab",
            "PASSWORD": "reading",
        }
        read = directory(Environment.of({f"RANKWIRE_LDAP_{name}": value for name, value in values.items()}))
        for name, value in read.items():
            setattr(settings, name, value)
        settings.AUTHENTICATION_BACKENDS = [BACKEND, *settings.AUTHENTICATION_BACKENDS]
        trust(settings, tmp_path / "certificate.pem")
        yield tmp_path


def trust(settings: Any, certificate: Path) -> None:
    """Trust a certificate."""
    trusted = {ldap.OPT_X_TLS_CACERTFILE: str(certificate), ldap.OPT_X_TLS_NEWCTX: 0}
    settings.AUTH_LDAP_CONNECTION_OPTIONS = {**settings.AUTH_LDAP_CONNECTION_OPTIONS, **trusted}


def sign_in(client: Client, password: str, name: str = "newton") -> bool:
    return client.post("/sign-in/", {"username": name, "password": password}).status_code == 302


@pytest.mark.usefixtures("people")
def test_a_password_of_the_directory_lets_in_with_the_roles_of_its_groups() -> None:
    client = Client()
    assert not sign_in(client, "a pear fell")
    assert not sign_in(client, "")
    assert not sign_in(client, "an apple fell", name="*")
    assert not User.objects.filter(username__in=("newton", "*")).exists()
    assert sign_in(client, "an apple fell")
    user = User.objects.get(username="newton")
    assert (user.first_name, user.email, user.has_usable_password()) == ("Isaac", "newton@lab.example", False)
    assert [member.role for member in user.memberships.all()] == ["submitter"]
    assert client.get("/account/").status_code == 200


@pytest.mark.usefixtures("people")
def test_accounts_of_rankwire_sign_in_beside_it() -> None:
    User.objects.create_user("okafor", password="correct horse")
    assert sign_in(Client(), "correct horse", name="okafor")
    assert not sign_in(Client(), "an apple fell", name="okafor")


def test_a_server_with_an_untrusted_certificate_gets_no_password(people: Path, settings: Any) -> None:
    (people / "other").mkdir()
    make_certificate(people / "other")
    trust(settings, people / "other" / "certificate.pem")
    assert not sign_in(Client(), "an apple fell")
