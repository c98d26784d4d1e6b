"""Settings of accounts: mail, identity provider, groups, directory."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.accounts import directory, group_roles, identity_provider, mail
from config.environment import Environment


@pytest.mark.parametrize(
    ("url", "port", "ssl", "starttls"),
    [
        ("smtp://mail.example.org", 25, False, False),
        ("smtps://a:b%40c@mail.example.org", 465, True, False),
        ("smtp+tls://a:b@mail.example.org:2525", 2525, False, True),
    ],
)
def test_mail_goes_where_its_address_says(url: str, port: int, ssl: bool, starttls: bool) -> None:
    settings = mail(url, "lab@example.org")
    assert settings["EMAIL_HOST"] == "mail.example.org"
    assert (settings["EMAIL_PORT"], settings["EMAIL_USE_SSL"], settings["EMAIL_USE_TLS"]) == (port, ssl, starttls)


def test_a_password_in_the_address_of_mail_is_unquoted() -> None:
    assert mail("smtps://a:b%40c@mail.example.org", "lab@example.org")["EMAIL_HOST_PASSWORD"] == "b@c"


@pytest.mark.parametrize(("url", "sender"), [("http://mail", "a@b"), ("smtp://", "a@b"), ("smtp://mail", "")])
def test_mail_that_cannot_be_sent_is_refused_at_the_start(url: str, sender: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="RANKWIRE_SMTP_URL"):
        mail(url, sender)


def test_groups_give_roles() -> None:
    roles = group_roles(["physics=optics:submitter", "cn=heads=optics:maintainer", "physics=water:viewer"])
    assert roles == {
        "physics": [("optics", "submitter"), ("water", "viewer")],
        "cn=heads": [("optics", "maintainer")],
    }


@pytest.mark.parametrize("item", ["physics", "physics=optics", "physics=optics:owner", "=optics:viewer", "a=:viewer"])
def test_groups_that_say_no_role_are_refused(item: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="RANKWIRE_GROUPS"):
        group_roles([item])


def test_an_identity_provider_needs_its_client_and_secret() -> None:
    variables = {"RANKWIRE_OIDC_SERVER": "https://login.example.org"}
    with pytest.raises(ImproperlyConfigured, match="RANKWIRE_OIDC_CLIENT_ID"):
        identity_provider(Environment.of(variables))
    assert identity_provider(Environment.of({})) == []


def test_a_directory_without_its_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"RANKWIRE_LDAP_SERVER": "ldaps://ldap.example.org", "RANKWIRE_LDAP_PEOPLE": "ou=people,dc=example"}
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "django_auth_ldap" else find(name))
    with pytest.raises(ImproperlyConfigured, match="django-auth-ldap is not installed: apt-get install libldap2-dev"):
        directory(Environment.of(variables))
    assert directory(Environment.of({})) == {}


@pytest.mark.parametrize("variables", [{}, {"RANKWIRE_LDAP_PEOPLE": "ou=people", "RANKWIRE_LDAP_FILTER": "(uid=me)"}])
def test_a_directory_needs_to_know_where_people_are(variables: dict[str, str]) -> None:
    with pytest.raises(ImproperlyConfigured, match="RANKWIRE_LDAP_PEOPLE"):
        directory(Environment.of({"RANKWIRE_LDAP_SERVER": "ldaps://ldap.example.org", **variables}))
