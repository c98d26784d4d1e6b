"""Signing in with a real OpenID Connect provider over the network."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import oidc_provider_mock
import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from config.accounts import identity_provider
from config.environment import Environment
from experiments.models import Project

pytestmark = pytest.mark.usefixtures("empty_redis")
PERSON = "4711"


class Stay(HTTPRedirectHandler):
    """Returns redirects instead of following them."""

    def redirect_request(self, request: Request, *arguments: Any) -> None:
        return None

    def http_error_302(self, request: Request, answer: Any, *arguments: Any) -> Any:
        return answer


@pytest.fixture
def provider(settings: Any, library: Project) -> Iterator[str]:
    """Its address; one group of it gives a role."""
    with oidc_provider_mock.run_server_in_thread() as server:
        address = f"http://localhost:{server.server_port}"
        settings.SOCIALACCOUNT_PROVIDERS = provider_at(address)
        settings.GROUP_ROLES = {"physics": [(library.slug, "submitter")]}
        yield address


def provider_at(address: str) -> dict[str, Any]:
    values = {"SERVER": address, "CLIENT_ID": "rankwire", "SECRET": "secret", "NAME": "the institute"}
    apps = identity_provider(Environment.of({f"RANKWIRE_OIDC_{name}": value for name, value in values.items()}))
    return {"openid_connect": {"APPS": apps}}


def set_claims(provider: str, **claims: Any) -> None:
    """Set the claims of the provider's user."""
    body = json.dumps({"preferred_username": "newton", **claims}).encode()
    request = Request(f"{provider}/users/{PERSON}", body, {"Content-Type": "application/json"}, method="PUT")  # noqa: S310
    assert build_opener().open(request, timeout=60).status == 204


def sign_in(client: Client, provider: str) -> Any:
    """As a browser does: away, yes to the provider, and back with its code."""
    away = client.post("/account/oidc/oidc/login/")["Location"]
    assert away.startswith(f"{provider}/oauth2/authorize")
    assert "code_challenge_method=S256" in away
    back = build_opener(Stay()).open(away, f"sub={PERSON}".encode(), timeout=60).headers["Location"]
    return client.get(f"{urlsplit(back).path}?{urlsplit(back).query}")


def test_its_groups_give_roles_at_the_first_time_and_take_them_at_the_next(provider: str) -> None:
    set_claims(provider, groups=["physics", "unknown"])
    client = Client()
    assert sign_in(client, provider)["Location"] == "/"
    user = User.objects.get(username="newton")
    assert [member.role for member in user.memberships.all()] == ["submitter"]
    assert client.get("/account/").status_code == 200
    set_claims(provider, groups=[])
    sign_in(Client(), provider)
    assert not user.memberships.exists()
    assert User.objects.filter(username__startswith="newton").count() == 1


def test_roles_of_its_groups_end_with_the_connection(provider: str) -> None:
    set_claims(provider, groups=["physics"])
    client = Client()
    sign_in(client, provider)
    user = User.objects.get(username="newton")
    client.post("/account/password/set/", {"password1": "battery staple", "password2": "battery staple"})
    assert user.memberships.exists()
    client.post("/account/again/", {"password": "battery staple"})
    client.post("/account/connections/", {"account": SocialAccount.objects.get().pk})
    assert not SocialAccount.objects.exists()
    assert not user.memberships.exists()


def test_a_code_counts_only_for_who_was_sent_away(provider: str) -> None:
    set_claims(provider)
    first, other = Client(), Client()
    away = first.post("/account/oidc/oidc/login/")["Location"]
    back = build_opener(Stay()).open(away, f"sub={PERSON}".encode(), timeout=60).headers["Location"]
    callback = f"{urlsplit(back).path}?{urlsplit(back).query}"
    other.get(callback)
    assert other.get("/account/").status_code == 302
    first.get(callback)
    assert first.get("/account/").status_code == 200


def test_an_address_with_markup_is_text(provider: str) -> None:
    """A quoted address may have any letters."""
    address = '"<img/src=x>"@example.org'
    User.objects.create_user("eve", address)
    set_claims(provider, email=address, email_verified=True)
    client = Client()
    page = client.get(sign_in(client, provider)["Location"]).content.decode()
    assert "Another account has" in page
    assert "<img/src" not in page


def test_it_never_takes_over_an_account_of_the_same_name_or_address(provider: str) -> None:
    admin = User.objects.create_superuser("newton", "newton@example.org", "correct horse")
    set_claims(provider, email="newton@example.org", email_verified=True)
    client = Client()
    answer = sign_in(client, provider)
    page = client.get(answer["Location"]).content.decode()
    assert "Another account has newton already." in page
    assert "Another account has newton@example.org already." in page
    assert 'value="newton' not in page
    assert client.session.get("_auth_user_id") != str(admin.pk), answer


def test_a_provider_that_never_answers_holds_two_threads(db: None, settings: Any) -> None:
    """Each waits for 5 s: visitors without an account held all threads of the site."""
    settings.SOCIALACCOUNT_REQUESTS_TIMEOUT = 60
    client = Client(raise_request_exception=False)

    def ask() -> int:
        try:
            return client.post("/account/oidc/oidc/login/").status_code
        finally:
            connection.close()  # of this thread

    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor() as threads:
        settings.SOCIALACCOUNT_PROVIDERS = provider_at(f"http://127.0.0.1:{silent.getsockname()[1]}")
        waiting = [(threads.submit(ask), silent.accept()[0]) for _ in range(2)]
        try:
            assert threads.submit(ask).result(timeout=60) == 429
        finally:
            for _, held in waiting:
                held.close()
        assert [answer.result() for answer, _ in waiting] == [500, 500]
