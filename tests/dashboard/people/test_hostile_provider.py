"""Answers of an identity provider that OpenID Connect forbids."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from config.accounts import identity_provider
from config.environment import Environment
from experiments.models import Project
from tests.dashboard.people.signing_in.second_factor import FACTOR

pytestmark = pytest.mark.usefixtures("empty_redis")
OIDC = {"RANKWIRE_OIDC_CLIENT_ID": "rankwire", "RANKWIRE_OIDC_SECRET": "a secret"}


class Provider(BaseHTTPRequestHandler):
    """Takes a nonce as its code; ``token`` and ``info`` change its answers."""

    token: ClassVar[dict[str, Any] | None] = {}
    info: ClassVar[dict[str, Any]] = {}

    server: ThreadingHTTPServer

    def do_GET(self) -> None:
        base = f"http://localhost:{self.server.server_port}"
        discovery = {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "jwks_uri": f"{base}/keys",
            "token_endpoint": f"{base}/token",
            "userinfo_endpoint": f"{base}/userinfo",
        }
        self.answer(
            discovery if "well-known" in self.path else {"sub": "1", "preferred_username": "newton", **self.info}
        )

    def do_POST(self) -> None:
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        claims = {
            "iss": f"http://localhost:{self.server.server_port}",
            "aud": "rankwire",
            "sub": "1",
            "iat": int(time.time()),
            "exp": int(time.time()) + 60,
            "nonce": sent["code"][0],
        }
        answer = {"access_token": "any", "token_type": "Bearer"}
        if self.token is not None:
            answer["id_token"] = jwt.encode({**claims, **self.token}, "k" * 32, "HS256")
        self.answer(answer)

    def answer(self, data: object) -> None:
        content = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def provider(settings: Any, library: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Provider, "token", {})
    monkeypatch.setattr(Provider, "info", {})
    with ThreadingHTTPServer(("localhost", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://localhost:{server.server_address[1]}"
        apps = identity_provider(Environment.of({**OIDC, "RANKWIRE_OIDC_SERVER": address}))
        settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"APPS": apps}}
        yield address
        server.shutdown()


def come_back(client: Client, query: str = "", **changes: str) -> Any:
    """As a browser does that the provider sends back at once."""
    away = parse_qs(urlsplit(client.post(f"/account/oidc/oidc/login/{query}")["Location"]).query)
    (code,), (state,) = away["nonce"], away["state"]
    return client.get("/account/oidc/oidc/login/callback/", {"code": code, "state": state, **changes})


def is_signed_in(client: Client) -> bool:
    return client.get("/account/").status_code == 200


def test_answers_as_the_standard_has_them_sign_in(provider: str) -> None:
    client = Client()
    come_back(client)
    assert is_signed_in(client)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param({"iss": "https://evil.example"}, id="of another issuer"),
        pytest.param({"aud": "another"}, id="for another client"),
        pytest.param({"exp": 1}, id="of the past"),
        pytest.param({"sub": "2"}, id="of another user"),
        pytest.param({"nonce": "another"}, id="of another session"),
        pytest.param({"nonce": None}, id="of no session"),
        pytest.param({"aud": ["rankwire", "another"], "azp": "another"}, id="issued to another client"),
        pytest.param(None, id="missing"),
    ],
)
def test_id_token_signs_in_only_its_user_here_and_now(
    provider: str, monkeypatch: pytest.MonkeyPatch, token: dict[str, Any] | None
) -> None:
    monkeypatch.setattr(Provider, "token", token)
    client = Client()
    assert come_back(client).status_code in (401, 403)
    assert not is_signed_in(client)
    assert not User.objects.exists()


@pytest.mark.parametrize("state", ["", "x", "another's"])
def test_state_of_another_session_signs_in_no_user(provider: str, state: str) -> None:
    client, other = Client(), Client()
    if state == "another's":
        away = other.post("/account/oidc/oidc/login/")["Location"]
        state = parse_qs(urlsplit(away).query)["state"][0]
    come_back(client, state=state)
    assert not is_signed_in(client)


def test_id_token_of_another_session_signs_in_no_user(provider: str) -> None:
    client, other = Client(), Client()
    away = other.post("/account/oidc/oidc/login/")["Location"]
    assert come_back(client, code=parse_qs(urlsplit(away).query)["nonce"][0]).status_code in (401, 403)
    assert not is_signed_in(client)


def test_query_of_a_link_changes_no_parameter_for_the_provider(provider: str, client: Client) -> None:
    query = urlencode({"auth_params": "nonce=known&state=known&redirect_uri=https://evil.example"})
    away = parse_qs(urlsplit(client.post(f"/account/oidc/oidc/login/?{query}")["Location"]).query)
    assert "known" not in away["nonce"] + away["state"]
    assert away["redirect_uri"] == ["http://testserver/account/oidc/oidc/login/callback/"]


def test_visitors_store_no_text_of_their_own(provider: str, client: Client) -> None:
    assert client.post("/account/oidc/oidc/login/", {"process": "x" * 60_000}).status_code == 400
    assert not Session.objects.exists()


def test_callback_redirects_to_no_other_site(provider: str) -> None:
    for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert come_back(Client(), f"?next={target}")["Location"] == "/"


def test_address_of_the_callback_is_of_this_site(provider: str, client: Client) -> None:
    away = client.post("/account/oidc/oidc/login/", headers={"X-Forwarded-Host": "evil.example"})["Location"]
    assert "evil.example" not in away
    assert client.post("/account/oidc/oidc/login/", headers={"Host": "evil.example"}).status_code == 400


def test_second_factor_is_asked_after_the_provider(provider: str) -> None:
    come_back(Client())
    TOTP.activate(User.objects.get(username="newton"), generate_totp_secret())
    client = Client()
    assert come_back(client)["Location"] == f"{FACTOR}authenticate/"
    assert not is_signed_in(client)


def test_provider_without_tls_is_refused_at_the_start() -> None:
    for server in ("http://login.example.org", "http://127.0.0.1.example.org", "ftp://localhost"):
        with pytest.raises(ImproperlyConfigured, match="https"):
            identity_provider(Environment.of({**OIDC, "RANKWIRE_OIDC_SERVER": server}))
