"""Signing in: password, second factor, passkey, changed password."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import caches
from django.test import Client
from lxml.html import fromstring

from experiments.models import ApiToken
from tests.dashboard.people.signing_in.second_factor import FACTOR, PERSON, code_now

pytestmark = pytest.mark.usefixtures("empty_redis")


def test_it_goes_where_the_reader_wanted_to(person: User, client: Client) -> None:
    assert client.post("/sign-in/?next=/clusters/", {**PERSON, "next": "/clusters/"})["Location"] == "/clusters/"
    assert client.get("/account/").status_code == 200


@pytest.mark.parametrize("other", ["https://evil.example/", "http://localhost/", "//127.0.0.1/", "http://[::1]/"])
def test_it_goes_to_no_other_site(person: User, client: Client, other: str) -> None:
    """Allowed hosts include localhost, which can be the user's machine."""
    answer = client.post("/sign-in/", {**PERSON, "next": other})
    assert answer["Location"] == "/"


def test_a_second_factor_is_asked_after_the_password(signed_in: Client, person: User) -> None:
    page = signed_in.get(f"{FACTOR}totp/activate/").content.decode()
    secret = re.search(r'value="([A-Z2-7]{16,})"', page)
    assert secret is not None
    assert signed_in.post(f"{FACTOR}totp/activate/", {"code": code_now(secret[1])}).status_code == 302
    stored = Authenticator.objects.get(user=person, type="totp").data["secret"]
    assert secret[1] not in stored
    signed_in.post("/sign-out/")
    assert signed_in.post("/sign-in/", PERSON)["Location"] == f"{FACTOR}authenticate/"
    assert signed_in.get("/account/").status_code == 302
    assert "code" in signed_in.post(f"{FACTOR}authenticate/", {"code": "000000"}).content.decode()
    caches["default"].clear()  # the code that activated it would be one that was used
    assert signed_in.post(f"{FACTOR}authenticate/", {"code": code_now(secret[1])}).status_code == 302
    assert signed_in.get("/account/").status_code == 200


@pytest.mark.parametrize(("host", "disabled"), [("127.0.0.1:8000", ["disabled"]), ("localhost:8000", [])])
def test_a_key_is_added_only_at_an_address_with_a_name(signed_in: Client, host: str, disabled: list[str]) -> None:
    page = signed_in.get(f"{FACTOR}webauthn/add/", headers={"host": host}).content.decode()
    assert fromstring(page).xpath("//button[@id='mfa_webauthn_add']/@disabled") == disabled
    assert ("Keys need a host name" in page) == bool(disabled)


def test_passkeys_begin_with_a_challenge_and_what_they_need_is_served(person: User, client: Client) -> None:
    page = client.get("/sign-in/").content.decode()
    assert "passkey_login" in page
    by_address = client.get("/sign-in/", headers={"host": "127.0.0.1:8000"}).content.decode()
    assert "passkey_login" not in by_address
    assert "Passkeys need a host name" in by_address
    response: Any = client.get(f"{FACTOR}webauthn/login/", headers={"X-Requested-With": "XMLHttpRequest"})
    assert len(response.json()["request_options"]["publicKey"]["challenge"]) > 20
    for script in re.findall(r'<script src="(/static/(?:mfa|account)/[^"]+)"', page):
        assert client.get(script).status_code == 200


def test_keys_are_added_after_the_password_was_given_lately(signed_in: Client) -> None:
    page = signed_in.get(f"{FACTOR}webauthn/add/").content.decode()
    assert "mfa_webauthn_add" in page
    assert "creation_options" in page


def test_a_changed_password_keeps_this_session_and_ends_tokens(signed_in: Client, person: User) -> None:
    ApiToken.issue(person, "laptop")
    change = {"oldpassword": PERSON["password"], "password1": "battery staple", "password2": "battery staple"}
    assert signed_in.post("/account/password/", change)["Location"] == "/account/"
    assert signed_in.get("/account/").status_code == 200
    assert not ApiToken.objects.exists()


def test_a_password_is_not_changed_without_the_old_one(signed_in: Client, person: User) -> None:
    change = {"oldpassword": "wrong", "password1": "battery staple", "password2": "battery staple"}
    assert signed_in.post("/account/password/", change).status_code == 200
    person.refresh_from_db()
    assert person.check_password(PERSON["password"])


def test_without_mail_it_says_who_sets_a_new_password(person: User, client: Client) -> None:
    text = client.get("/account/password/reset/").content.decode()
    assert "changepassword" in text
    assert "<form" not in text.split('id="main"')[1]
    client.post("/account/password/reset/", {"email": "okafor@example.org"})
    assert mail.outbox == []
    assert not EmailAddress.objects.exists()
