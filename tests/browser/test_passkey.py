"""Passkeys in a browser: add, sign in, prove a second factor, end."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from playwright.sync_api import CDPSession, Page

pytestmark = [pytest.mark.usefixtures("empty_redis"), pytest.mark.timeout(240)]
FACTOR = "/account/second-factor/"
OPTIONS = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def person(transactional_db: None) -> User:
    """Return a user of a laboratory without experiments, whose pages load fast."""
    return User.objects.create_superuser("okafor", password="correct horse")


@pytest.fixture
def keys(page: Page) -> CDPSession:
    """The browser's own authenticator, which presses its button by itself."""
    page.set_default_timeout(60_000)  # passwords are hashed on the way, and machines that build are busy
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": OPTIONS})
    return session


def prove_again(page: Page) -> None:
    """Enter the password, which adding or removing a key requires."""
    page.locator("#main [name=password]").fill("correct horse")
    page.locator("#main [name=password]").press("Enter")
    page.wait_for_url(lambda address: "/again/" not in address)  # and loaded: before, its buttons do nothing


def add_key(page: Page, name: str, *, passwordless: bool) -> None:
    page.goto(f"{FACTOR}webauthn/add/")
    prove_again(page)
    page.locator("#main [name=name]").fill(name)
    page.locator("#main [name=passwordless]").set_checked(passwordless)
    page.locator("#mfa_webauthn_add").click()
    page.wait_for_url(lambda address: "/webauthn/add/" not in address)


def is_signed_in(page: Page) -> bool:
    page.goto("/account/")
    return urlsplit(page.url).path == "/account/"


def sign_out(page: Page) -> None:
    page.context.clear_cookies()
    page.goto("/sign-in/")


def test_a_passkey_signs_in_without_a_password_until_it_is_removed(page, person, keys, page_errors):
    add_key(page, "laptop", passwordless=True)
    kept = Authenticator.objects.get(user=person, type="webauthn")
    assert (kept.wrap().name, kept.wrap().is_passwordless) == ("laptop", True)
    sign_out(page)
    assert not is_signed_in(page)
    page.goto("/sign-in/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(lambda address: "/sign-in/" not in address)
    assert is_signed_in(page)
    assert page_errors == [], "the policy of the pages refuses nothing of it"

    page.goto(f"{FACTOR}webauthn/keys/{kept.pk}/remove/")
    prove_again(page)
    page.locator("#main").get_by_role("button", name="Remove key", exact=True).click()
    page.wait_for_url(f"**{FACTOR}webauthn/")
    assert not Authenticator.objects.filter(user=person, type="webauthn").exists()
    sign_out(page)
    with page.expect_response(lambda answer: "webauthn/login" in answer.url and answer.request.method == "POST"):
        page.get_by_role("button", name="Sign in with a passkey").click()
    assert not is_signed_in(page)


def test_a_security_key_is_asked_for_after_the_password(page, keys, page_errors):
    add_key(page, "stick", passwordless=False)
    sign_out(page)
    page.locator("#id_username").fill("okafor")
    page.locator("#id_password").fill("correct horse")
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**{FACTOR}authenticate/**")
    assert not is_signed_in(page), "the password alone is not enough"
    page.goto(f"{FACTOR}authenticate/")
    page.locator("#mfa_webauthn_authenticate").click()
    page.wait_for_url(lambda address: "/authenticate/" not in address)
    assert is_signed_in(page)
    assert page_errors == []
