"""Pages of accounts by allauth: in this site's words, titles as headings."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from lxml import html

from tests.config.processes import wait_for
from tests.dashboard.people.signing_in.second_factor import FACTOR, PERSON, code_now

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def with_an_app(signed_in: Client) -> Client:
    secret = re.search(r'value="([A-Z2-7]{16,})"', signed_in.get(f"{FACTOR}totp/activate/").content.decode())
    assert secret is not None
    assert signed_in.post(f"{FACTOR}totp/activate/", {"code": code_now(secret[1])}).status_code == 302
    return signed_in


def test_recovery_codes_stand_on_their_page_until_they_are_used(with_an_app: Client, person: User) -> None:
    codes = Authenticator.objects.get(user=person, type="recovery_codes").wrap().get_unused_codes()
    page = html.fromstring(with_an_app.get(f"{FACTOR}recovery-codes/").content.decode())
    assert page.xpath("//main//pre//text()") == codes
    assert f"{len(codes)} of {len(codes)} unused" in " ".join(page.find(".//main").text_content().split())


def test_a_key_is_offered_to_those_alone_who_have_one(with_an_app: Client, person: User) -> None:
    with_an_app.post("/sign-out/")
    with_an_app.post("/sign-in/", PERSON)
    assert 'id="mfa_webauthn_authenticate"' not in with_an_app.get(f"{FACTOR}authenticate/").content.decode()


def test_the_mail_with_a_link_says_who_it_is_for(person: User, client: Client, settings: Any, mailoutbox: Any) -> None:
    settings.SENDS_MAIL = True
    person.email = "okafor@example.org"
    person.save()
    client.post("/account/password/reset/", {"email": "okafor@example.org"})
    wait_for(lambda: bool(mailoutbox))
    assert mailoutbox[0].subject == "Rankwire: Choose a new password"
    assert "a new password of okafor. Choose it here:\n\nhttp" in mailoutbox[0].body
