"""Signing in with an OpenID Connect provider, of which groups become roles."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.contrib.auth.models import User
from django.test import Client

from config.accounts import identity_provider
from config.environment import Environment
from experiments.models import Project

pytestmark = pytest.mark.usefixtures("empty_redis")
SERVER = "https://login.example.org"
LOGIN = "/account/oidc/oidc/login/"


class Provider:
    """What a provider answers to the site, for one person."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "4711", "preferred_username": "newton", "groups": ["physics"]}

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def request(self, method: str, url: str, **options: Any) -> Answer:
        return Answer(self._answer(url))

    def get(self, url: str, **options: Any) -> Answer:
        return self.request("GET", url)

    def post(self, url: str, **options: Any) -> Answer:
        return self.request("POST", url)

    def _answer(self, url: str) -> dict[str, Any]:
        if url.endswith("/openid-configuration"):
            addresses = ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri")
            return {name: f"{SERVER}/{name}" for name in addresses} | {"issuer": SERVER}
        if url.endswith("/token_endpoint"):
            told = {"iss": SERVER, "aud": "rankwire", "iat": time.time(), "exp": time.time() + 60, **self.person}
            key = "a key of the provider that this site cannot know"
            return {"access_token": "abc", "token_type": "bearer", "id_token": jwt.encode(told, key)}
        return self.person


class Answer:
    status_code = 200
    headers: dict[str, str] = {"content-type": "application/json"}  # noqa: RUF012

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def json(self) -> dict[str, Any]:
        return self.content

    def raise_for_status(self) -> None:
        pass


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch, library: Project) -> Provider:
    given = {"SERVER": SERVER, "CLIENT_ID": "rankwire", "SECRET": "secret", "NAME": "the institute"}
    apps = identity_provider(Environment.of({f"RANKWIRE_OIDC_{name}": value for name, value in given.items()}))
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": apps}}
    settings.GROUP_ROLES = {"physics": [(library.slug, "submitter")]}
    provider = Provider()
    monkeypatch.setattr(DefaultSocialAccountAdapter, "get_requests_session", lambda self: provider)
    return provider


def sign_in(client: Client) -> Any:
    """Through the provider, as a browser does."""
    away = client.post(LOGIN)["Location"]
    assert away.startswith(f"{SERVER}/authorization_endpoint")
    state = parse_qs(urlsplit(away).query)["state"][0]
    return client.get(f"{LOGIN}callback/", {"code": "xyz", "state": state})


def test_the_first_time_makes_an_account_with_the_roles_of_its_groups(provider: Provider, library: Project) -> None:
    client = Client()
    assert "Sign in with the institute" in client.get("/sign-in/").content.decode()
    assert sign_in(client)["Location"] == "/"
    user = User.objects.get(username="newton")
    assert not user.has_usable_password()
    assert user.memberships.get().role == "submitter"
    assert client.get("/account/").status_code == 200


def test_every_time_brings_the_roles_up_to_date(provider: Provider) -> None:
    sign_in(Client())
    provider.person["groups"] = []
    sign_in(Client())
    assert not User.objects.get(username="newton").memberships.exists()


def test_it_never_takes_over_an_account_of_the_same_name_or_address(provider: Provider) -> None:
    admin = User.objects.create_superuser("newton", "newton@example.org", "correct horse")
    provider.person |= {"email": "newton@example.org", "email_verified": True}
    client = Client()
    answer = sign_in(client)
    asked = client.get(answer["Location"]).content.decode()
    assert "Another account has newton already." in asked
    assert "Another account has newton@example.org already." in asked
    assert 'value="newton' not in asked
    signed_in = client.session.get("_auth_user_id")
    assert signed_in != str(admin.pk), answer


def test_it_lets_nobody_in_whom_it_did_not_send_away(provider: Provider) -> None:
    client = Client()
    client.get(f"{LOGIN}callback/", {"code": "xyz", "state": "guessed"})
    assert client.get("/account/").status_code == 302
