"""The pages of accounts, which allauth answers: in this site's words, with a title that is their heading."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client
from lxml import html

from experiments.models import Project
from tests.dashboard.people.signing_in.second_factor import FACTOR, PERSON, code_now

pytestmark = pytest.mark.usefixtures("empty_redis")
SIGNED_OUT = ("/sign-up/", "/account/password/reset/", "/account/password/reset/done/", "/account/inactive/")
SIGNED_IN = (
    "/account/password/",
    "/account/connections/",
    FACTOR,
    f"{FACTOR}totp/activate/",
    f"{FACTOR}webauthn/",
    f"{FACTOR}webauthn/add/",
)
WITH_AN_APP = (
    FACTOR,
    f"{FACTOR}reauthenticate/",
    f"{FACTOR}totp/deactivate/",
    f"{FACTOR}recovery-codes/",
    f"{FACTOR}recovery-codes/generate/",
)


@pytest.fixture
def with_an_app(signed_in: Client) -> Client:
    secret = re.search(r'value="([A-Z2-7]{16,})"', signed_in.get(f"{FACTOR}totp/activate/").content.decode())
    assert secret is not None
    assert signed_in.post(f"{FACTOR}totp/activate/", {"code": code_now(secret[1])}).status_code == 302
    return signed_in


def named(client: Client, address: str) -> tuple[str, str]:
    """The title of a page without that of the site, and its heading."""
    page = html.fromstring(client.get(address).content.decode())
    words = ["".join(each.itertext()) for each in (page.find(".//title"), page.find(".//main//h1"))]
    title, heading = (" ".join(text.split()) for text in words)
    return title.removesuffix(" · Rankwire"), heading


@pytest.mark.parametrize("address", SIGNED_OUT)
def test_titles_are_headings_before_signing_in(library: Project, client: Client, address: str) -> None:
    title, heading = named(client, address)
    assert title == heading


def test_titles_are_headings(signed_in: Client) -> None:
    named_so = {address: named(signed_in, address) for address in SIGNED_IN}
    assert {address: pair for address, pair in named_so.items() if pair[0] != pair[1]} == {}
    assert named_so[FACTOR][0] == "Second factor"


def test_titles_are_headings_where_a_second_factor_is_set_up(with_an_app: Client) -> None:
    named_so = {address: named(with_an_app, address) for address in WITH_AN_APP}
    assert {address: pair for address, pair in named_so.items() if pair[0] != pair[1]} == {}


def test_recovery_codes_stand_on_their_page_until_they_are_used(with_an_app: Client, person: User) -> None:
    codes = Authenticator.objects.get(user=person, type="recovery_codes").wrap().get_unused_codes()
    page = html.fromstring(with_an_app.get(f"{FACTOR}recovery-codes/").content.decode())
    assert page.xpath("//main//pre//text()") == codes
    assert f"{len(codes)} of {len(codes)} are left" in " ".join(page.find(".//main").text_content().split())


def test_a_key_is_offered_to_those_alone_who_have_one(with_an_app: Client, person: User) -> None:
    with_an_app.post("/sign-out/")
    with_an_app.post("/sign-in/", PERSON)
    assert 'id="mfa_webauthn_authenticate"' not in with_an_app.get(f"{FACTOR}authenticate/").content.decode()


def test_labels_are_no_titles_and_examples_do_not_repeat_them(signed_in: Client) -> None:
    page = html.fromstring(signed_in.get("/account/password/").content.decode())
    assert page.xpath("//main//label/text()") == ["Current password", "New password", "New password (again)"]
    assert page.xpath("//main//input/@placeholder") == []


@pytest.mark.parametrize("address", ["/sign-in/", "/sign-up/", "/account/password/reset/"])
def test_fields_are_called_alike_on_every_page(library: Project, client: Client, settings: Any, address: str) -> None:
    settings.SIGN_UP = settings.SENDS_MAIL = True
    shown = html.fromstring(client.get(address).content.decode())
    labels = shown.xpath("//main//label/text()")
    assert shown.xpath("//main//input/@placeholder") == []
    assert set(labels) <= {"Name", "Password", "Password (again)", "E-mail", "E-mail (optional)"}, labels


def test_signing_in_and_a_reset_say_once_what_they_did(library: Project, person: User, client: Client) -> None:
    link = f"/account/password/reset/{user_pk_to_url_str(person)}-{default_token_generator.make_token(person)}/"
    form = client.get(link, follow=True).redirect_chain[-1][0]
    done = client.post(form, {"password1": "a long enough secret", "password2": "a long enough secret"}, follow=True)
    assert done.content.decode().count("assword is changed") == 2  # title and heading
    assert "successfully" not in done.content.decode()
    home = client.post("/sign-in/", {"username": "okafor", "password": "a long enough secret"}, follow=True)
    assert "uccessfully" not in home.content.decode()


def test_a_changed_password_says_what_it_ended(signed_in: Client) -> None:
    new = {"password1": "a long enough secret", "password2": "a long enough secret"}
    account = signed_in.post("/account/password/", {"oldpassword": PERSON["password"], **new}, follow=True)
    assert account.redirect_chain[-1][0] == "/account/"
    assert "It ended all API tokens" in account.content.decode()


def test_the_mail_with_a_link_says_who_it_is_for(person: User, client: Client, settings: Any, mailoutbox: Any) -> None:
    settings.SENDS_MAIL = True
    person.email = "okafor@example.org"
    person.save()
    client.post("/account/password/reset/", {"email": "okafor@example.org"})
    assert mailoutbox[0].subject == "Rankwire: Choose a new password"
    assert "a new password of okafor. Choose it here:\n\nhttp" in mailoutbox[0].body
