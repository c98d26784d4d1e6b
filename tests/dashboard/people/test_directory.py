"""Signing in with a password of a directory (LDAP), whose groups become roles."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ldap
import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.test import Client

from config.accounts import directory
from config.environment import Environment
from dashboard.people.adapters import AccountAdapter
from dashboard.people.backends import locked, unlock
from experiments.models import Project
from experiments.models.people.accounts import close_account
from tests.dashboard.people.directory_server import directory_server, make_certificate
from tests.dashboard.people.signing_in.second_factor import FACTOR, code_now

pytestmark = pytest.mark.usefixtures("empty_redis")
BACKEND = "dashboard.people.directory.DirectoryBackend"


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
        axes, *others = settings.AUTHENTICATION_BACKENDS
        settings.AUTHENTICATION_BACKENDS = [axes, BACKEND, *others]
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


@pytest.mark.parametrize("searched", [True, False])
@pytest.mark.usefixtures("people")
def test_groups_count_before_a_second_factor(settings: Any, searched: bool) -> None:
    """After it the entry is no longer known, and roles of a left group stayed."""
    assert sign_in(Client(), "an apple fell")
    user = User.objects.get(username="newton")
    secret = generate_totp_secret()
    TOTP.activate(user, secret)
    user.memberships.update(role="maintainer")
    if not searched:
        del settings.AUTH_LDAP_GROUP_SEARCH
    client = Client()
    assert sign_in(client, "an apple fell")
    client.post(f"{FACTOR}authenticate/", {"code": code_now(secret)})
    assert client.get("/account/").status_code == 200
    assert [member.role for member in user.memberships.all()] == ["submitter" if searched else "maintainer"]


@pytest.mark.usefixtures("people")
def test_accounts_of_rankwire_sign_in_beside_it() -> None:
    User.objects.create_user("okafor", password="correct horse")
    assert sign_in(Client(), "correct horse", name="okafor")
    assert not sign_in(Client(), "an apple fell", name="okafor")


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("name", ["newton", "NEWTON", " newton"])
def test_entry_named_like_an_account_with_a_password_does_not_enter_it(name: str) -> None:
    User.objects.create_superuser("newton", password="correct horse")
    client = Client()
    assert not sign_in(client, "an apple fell", name=name)
    assert "_auth_user_id" not in client.session
    assert sign_in(client, "correct horse")


@pytest.mark.usefixtures("people")
def test_account_that_a_user_of_the_provider_made_is_not_the_entry_of_its_name() -> None:
    SocialAccount.objects.create(user=User.objects.create_user("newton"), provider="oidc", uid="1")
    assert not sign_in(Client(), "an apple fell")


@pytest.mark.usefixtures("people")
def test_closed_account_of_the_directory_has_no_session() -> None:
    client = Client()
    assert sign_in(client, "an apple fell")
    close_account(User.objects.get(username="newton"))
    assert client.get("/account/").status_code == 302
    assert not User.objects.get(username="newton").is_active
    client.post("/sign-in/", {"username": "newton", "password": "an apple fell"})
    assert client.get("/account/").status_code == 302


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    "name",
    [
        "newto*",
        "newton)(uid=*",
        "*)(|(uid=*",
        "newton)(objectClass=*))(|(uid=x",
        "\\6eewton",
        "newton\\00",
        "cn=reader,dc=lab",
    ],
)
def test_name_is_no_filter_of_the_directory(name: str) -> None:
    """The filter matches one entry or none; the only entry has this password."""
    client = Client()
    client.post("/sign-in/", {"username": name, "password": "an apple fell"})
    assert "_auth_user_id" not in client.session
    assert not User.objects.exists()


VARIANTS = ["n\u00adewton", "new\u200bton", "\uff4eewton", "newton\ufe0f", "new\u034fton", "NEW\u00adTON"]
"""Names that a directory compares as equal to newton (RFC 4518)."""


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("name", VARIANTS, ids=ascii)
def test_name_in_another_form_makes_no_second_account(name: str) -> None:
    client = Client()
    assert sign_in(client, "an apple fell")
    close_account(User.objects.get(username="newton"))
    assert not sign_in(client, "an apple fell", name=name)
    assert User.objects.count() == 1


@pytest.mark.usefixtures("people")
def test_wrong_passwords_of_all_forms_of_a_name_count_together(settings: Any) -> None:
    forms = [
        "newton",
        "Newton",
        "nEwton",
        "neWton",
        "newTon",
        "newtOn",
        "newtoN",
        "NEwton",
        "n\u00adewton",
        "new\u200bton",
    ]
    assert len(forms) == settings.AXES_FAILURE_LIMIT
    for name in forms:
        sign_in(Client(), "a pear fell", name=name)
    assert not sign_in(Client(), "an apple fell")
    assert locked(["newton"]) == {"newton": ["127.0.0.1"]}
    assert unlock("newton") == 1
    assert sign_in(Client(), "an apple fell")


def test_addresses_of_one_network_of_ipv6_count_together(person: User, settings: Any) -> None:
    for number in range(settings.AXES_FAILURE_LIMIT):
        Client(REMOTE_ADDR=f"2001:db8::{number:x}").post("/sign-in/", {"username": "okafor", "password": "wrong"})
    right = {"username": "okafor", "password": "correct horse"}
    assert Client(REMOTE_ADDR="2001:db8::ffff").post("/sign-in/", right).status_code == 429
    assert Client(REMOTE_ADDR="2001:db8:0:1::1").post("/sign-in/", right).status_code == 302


@pytest.mark.parametrize("name", ["okafor", "Okafor", "\uff4fkafor", "ok\u200bafor", "ﬁnch"])
def test_no_account_has_another_form_of_a_name(person: User, name: str) -> None:
    """Its sign-ins would end the count of wrong passwords of the other account."""
    with pytest.raises(ValidationError):
        AccountAdapter().clean_username(name)
    assert AccountAdapter().clean_username("groß") == "groß"


@pytest.mark.usefixtures("people")
def test_second_factor_is_asked_after_a_password_of_the_directory() -> None:
    client = Client()
    assert sign_in(client, "an apple fell")
    TOTP.activate(User.objects.get(username="newton"), generate_totp_secret())
    again = Client()
    answer = again.post("/sign-in/", {"username": "newton", "password": "an apple fell"})
    assert answer["Location"] == f"{FACTOR}authenticate/"
    assert "_auth_user_id" not in again.session


def test_a_server_with_an_untrusted_certificate_gets_no_password(people: Path, settings: Any) -> None:
    (people / "other").mkdir()
    make_certificate(people / "other")
    trust(settings, people / "other" / "certificate.pem")
    assert not sign_in(Client(), "an apple fell")


def test_a_directory_that_never_answers_ends_the_sign_in(people: Path, settings: Any) -> None:
    """It held its thread for good, and two of them every sign-in of a process."""
    del people
    options = settings.AUTH_LDAP_CONNECTION_OPTIONS
    settings.AUTH_LDAP_CONNECTION_OPTIONS = {name: 1 if value == 10 else value for name, value in options.items()}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.AUTH_LDAP_SERVER_URI = f"ldap://127.0.0.1:{silent.getsockname()[1]}"
        assert not sign_in(Client(), "an apple fell")
