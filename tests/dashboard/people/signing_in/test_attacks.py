"""Attempts to get into an account without its password or second factor."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.utils import timezone

from dashboard.people.adapters import AccountAdapter
from experiments.models import ApiToken, Invitation, Membership, Project
from experiments.models.people.accounts import close_account
from tests.config.processes import wait_for
from tests.dashboard.people.signing_in.second_factor import FACTOR, PERSON, code_now
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
RESET = "/account/password/reset/"
NEW = {"password1": "battery staple", "password2": "battery staple"}
ADDRESS = "okafor@example.org"


@pytest.fixture
def reader(person: User, settings: Any, mailoutbox: Any) -> User:
    """A user with an e-mail address, in an installation that sends mail."""
    settings.SENDS_MAIL = True
    settings.PUBLIC_ADDRESS = "https://lab.example"
    person.email = ADDRESS
    person.save()
    return person


@pytest.fixture
def secret(person: User) -> str:
    """The secret of the user's authenticator app."""
    made = generate_totp_secret()
    TOTP.activate(person, made)
    return made


def link_of(client: Client, **headers: str) -> str:
    """The link of a mail that a request with these headers sends."""
    sent = len(mail.outbox)
    assert client.post(RESET, {"email": ADDRESS}, headers=headers).status_code == 302
    wait_for(lambda: len(mail.outbox) > sent)
    match = re.search(r"https?://\S+reset\S+", str(mail.outbox[-1].body))
    assert match is not None
    return str(match[0])


def opened(client: Client, link: str) -> Any:
    return client.get(link.removeprefix("https://lab.example"))


def test_reset_link_begins_with_the_address_of_the_settings(reader: User, client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    for headers in ({"Host": "evil.example"}, {"X-Forwarded-Host": "evil.example"}):
        assert link_of(client, **headers).startswith(f"https://lab.example{RESET}")
        assert "asked Rankwire at https://lab.example for a new password" in mail.outbox[-1].body
        assert "evil" not in str(mail.outbox[-1].message())


def test_reset_link_works_once_and_ends_with_the_password(reader: User, client: Client) -> None:
    first, second = link_of(client), link_of(client)
    form = opened(client, first)["Location"]
    assert client.post(form, NEW).status_code == 302
    for link in (first, second):
        answer = opened(Client(), link)
        assert answer.status_code == 200
        assert "password1" not in answer.content.decode()
    assert client.post(form, {"password1": "another staple", "password2": "another staple"}).status_code == 200
    reader.refresh_from_db()
    assert reader.check_password(NEW["password1"])


def test_reset_link_of_one_account_opens_no_other(reader: User, client: Client) -> None:
    other = factories.person("ada")
    link = link_of(client)
    uid = re.search(r"reset/([0-9a-z]+)-", link)
    assert uid is not None
    answer = opened(client, link.replace(f"/{uid[1]}-", f"/{other.pk}-"))
    assert answer.status_code == 200
    assert "password1" not in answer.content.decode()


def test_new_password_ends_sessions_and_tokens_and_signs_in_no_user(reader: User, client: Client) -> None:
    browser = Client()
    browser.post("/sign-in/", PERSON)
    ApiToken.issue(reader, "laptop")
    assert client.post(opened(client, link_of(client))["Location"], NEW).status_code == 302
    assert client.get("/account/").status_code == 302
    assert browser.get("/account/").status_code == 302
    assert not ApiToken.objects.exists()


def test_answer_to_a_reset_shows_no_account(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mail server takes a second; the answer does not wait for it."""
    sent = []

    def send(message: Any, *_: Any, **__: Any) -> None:
        time.sleep(1)
        sent.append(message.to)

    monkeypatch.setattr("django.core.mail.EmailMessage.send", send)
    answers = []
    for address in (ADDRESS, "nobody@example.org", "OKAFOR@example.org"):
        began = time.monotonic()
        answer = Client().post(RESET, {"email": address})
        assert time.monotonic() - began < 0.9
        answers.append((answer.status_code, answer["Location"], answer.content))
    assert len(set(answers)) == 1
    wait_for(lambda: sent == [[ADDRESS], [ADDRESS]])


def test_one_client_requests_ten_reset_mails_in_ten_minutes(client: Client, settings: Any, db: None) -> None:
    settings.SENDS_MAIL = True
    answers = [client.post(RESET, {"email": f"victim+{number}@example.org"}).status_code for number in range(12)]
    assert answers == [302] * 10 + [429] * 2


def test_failing_mail_server_shows_no_account(reader: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr("django.core.mail.EmailMessage.send", fail)
    assert Client().post(RESET, {"email": ADDRESS}).status_code == 302


def test_sign_in_takes_as_long_for_names_of_no_account(person: User) -> None:
    User.objects.create_user("closed", password="x y z", is_active=False)
    User.objects.create_user("linked").set_unusable_password()

    def tried(name: str) -> float:
        began = time.thread_time()
        answer = Client().post("/sign-in/", {"username": name, "password": "wrong"})
        assert answer.status_code == 200
        return time.thread_time() - began

    times = {name: min(tried(name) for _ in range(4)) for name in ("okafor", "nobody", "closed", "linked")}
    assert max(times.values()) < 2 * min(times.values()), times


def test_visitors_store_no_session_with_invented_links(db: None, client: Client) -> None:
    """A session is a row of the database that any visitor could fill."""
    for path in ("/invitation/", "/shared/"):
        client.get(f"{path}{'k' * 1000}/")
    assert client.get("/invitation/").status_code == 404
    assert not Session.objects.exists()


def test_sessions_of_visitors_last_a_day_and_those_of_users_longer(person: User, client: Client) -> None:
    factor = "/account/second-factor/webauthn/login/"
    assert client.get(factor, headers={"X-Requested-With": "XMLHttpRequest"}).status_code == 200
    assert Session.objects.get().expire_date <= timezone.now() + timedelta(days=1)
    assert client.post("/sign-in/", PERSON).status_code == 302
    assert Session.objects.get().expire_date > timezone.now() + timedelta(days=13)


def test_the_old_password_is_guessed_ten_times_in_15_minutes(page: Client) -> None:
    guess = {"oldpassword": "a pear fell", **NEW}
    assert [page.post("/account/password/", guess).status_code for _ in range(11)] == [200] * 10 + [429]


def test_expired_link_does_not_accept_the_earlier_invitation_of_the_session(
    library: Project, page: Client, person: User
) -> None:
    boss = factories.person("boss", is_superuser=True)
    _, first = Invitation.issue(Project.objects.create(slug="first", name="First"), "viewer", by=boss)
    ended, second = Invitation.issue(library, "viewer", by=boss)
    ended.delete()
    assert page.get(f"/invitation/{first}/", follow=True).status_code == 200
    assert page.get(f"/invitation/{second}/", follow=True).status_code == 404
    assert page.post("/invitation/").status_code == 404
    assert not Membership.objects.filter(user=person, project__slug="first").exists()


def test_invitation_makes_one_account(library: Project, client: Client) -> None:
    """Not one for each time that its holder returns to the form without accepting it."""
    _, key = Invitation.issue(library, "viewer", by=factories.person("boss", is_superuser=True))
    for name in ("first", "second"):
        client.get(f"/invitation/{key}/")
        client.post("/sign-up/", {"username": name, "email": "", **NEW})
        client.post("/sign-out/")
    assert [member.user.username for member in Membership.objects.filter(project=library)] == ["first"]
    assert not User.objects.filter(username="second").exists()


@pytest.mark.parametrize("end", ["dismissed", "demoted", "closed", "deleted"])
def test_invitation_ends_when_its_maker_may_invite_no_longer(library: Project, client: Client, end: str) -> None:
    """Former maintainers would come back by an invitation of their own."""
    factories.person("max", "maintainer", library)
    mia = factories.person("mia", "maintainer", library)
    invitation, key = Invitation.issue(library, "maintainer", by=mia)
    assert Invitation.find(key) is not None
    if end == "dismissed":
        library.dismiss(mia)
    elif end == "demoted":
        library.set_role(mia, "submitter")
    elif end == "closed":
        User.objects.filter(pk=mia.pk).update(is_active=False)
    else:
        mia.delete()
    client.get(f"/invitation/{key}/")
    assert client.get("/invitation/").status_code == 404
    assert not invitation.take(factories.person("ada"))


@pytest.mark.parametrize("end", ["expired", "withdrawn", "another user"])
def test_invitation_that_ended_while_its_form_was_open_makes_no_account(
    library: Project, client: Client, end: str
) -> None:
    invitation, key = Invitation.issue(library, "maintainer", by=factories.person("boss", is_superuser=True))
    client.get(f"/invitation/{key}/")
    assert "password1" in client.get("/sign-up/").content.decode()
    if end == "expired":
        Invitation.objects.update(expires_at=timezone.now())
    elif end == "withdrawn":
        invitation.delete()
    else:
        assert invitation.take(factories.person("ada"))
    client.post("/sign-up/", {"username": "late", "email": "", **NEW})
    assert not User.objects.filter(username="late").exists()


def test_second_factor_is_asked_on_every_way_in(reader: User, secret: str, client: Client) -> None:
    assert client.post("/sign-in/", PERSON)["Location"] == f"{FACTOR}authenticate/"
    for path in ("/account/", "/admin/", "/account/password/", f"{FACTOR}totp/deactivate/", "/people/"):
        assert client.get(path)["Location"].startswith(("/sign-in/", "/admin/login/")), path
    assert client.get("/admin/login/?next=/admin/")["Location"].startswith("/sign-in/")
    for path in ("/api/v1/experiments/", "/api/v1/tokens/"):
        assert client.get(path).status_code in (401, 403), path
    assert client.post("/api/v1/tokens/", {"name": "x"}, content_type="application/json").status_code in (401, 403)
    assert client.post("/account/tokens/", {"name": "x", "scope": "read", "days": 9})["Location"].startswith(
        "/sign-in/"
    )
    assert not ApiToken.objects.exists()
    fresh = Client()
    assert fresh.post(opened(fresh, link_of(client))["Location"], NEW).status_code == 302
    assert fresh.get("/account/").status_code == 302
    answer = fresh.post("/sign-in/", {**PERSON, "password": NEW["password1"]})
    assert answer["Location"] == f"{FACTOR}authenticate/"


def test_code_of_a_second_factor_works_once(person: User, secret: str) -> None:
    first, second = Client(), Client()
    code = code_now(secret)
    for client, expected in ((first, 200), (second, 302)):
        client.post("/sign-in/", PERSON)
        client.post(f"{FACTOR}authenticate/", {"code": code})
        assert client.get("/account/").status_code == expected


def test_a_new_password_ends_sign_ins_that_wait_for_a_second_factor(person: User, secret: str) -> None:
    for new_password in ("", "battery staple"):
        browser = Client()
        browser.post("/sign-in/", PERSON)
        if new_password:
            person.set_password(new_password)
            person.save()
        browser.post(f"{FACTOR}authenticate/", {"code": RecoveryCodes.activate(person).get_unused_codes()[0]})
        assert browser.get("/account/").status_code == (302 if new_password else 200)


def test_recovery_code_works_once(person: User, secret: str) -> None:
    code = RecoveryCodes.activate(person).get_unused_codes()[0]
    for expected in (200, 302):
        client = Client()
        client.post("/sign-in/", PERSON)
        client.post(f"{FACTOR}authenticate/", {"code": code})
        assert client.get("/account/").status_code == expected


def test_wrong_codes_are_limited(person: User, secret: str) -> None:
    client = Client()
    client.post("/sign-in/", PERSON)
    statuses = [client.post(f"{FACTOR}authenticate/", {"code": f"{number:06}"}).status_code for number in range(30)]
    client.post("/sign-in/", PERSON)
    client.post(f"{FACTOR}authenticate/", {"code": code_now(secret)})
    assert client.get("/account/").status_code == 302, statuses


def test_second_factor_is_removed_only_after_the_identity_is_confirmed(
    person: User, secret: str, client: Client
) -> None:
    client.force_login(person)
    for path in ("totp/deactivate/", "recovery-codes/generate/", "webauthn/add/"):
        assert client.post(f"{FACTOR}{path}")["Location"].startswith("/account/again/"), path


@pytest.mark.parametrize("change", ["closed", "password"])
def test_a_new_password_is_refused_if_the_account_changed_meanwhile(person: User, change: str) -> None:
    """A slow request does not store the account as it was before."""
    read_before = User.objects.get(pk=person.pk)
    if change == "closed":
        close_account(person)
    else:
        AccountAdapter().set_password(person, "of another request")
    before = User.objects.values().get(pk=person.pk)
    with pytest.raises(PermissionDenied):
        AccountAdapter().set_password(read_before, "battery staple")
    assert User.objects.values().get(pk=person.pk) == before


def test_reset_link_of_a_closed_account_sets_no_password(reader: User, client: Client) -> None:
    form = opened(client, link_of(client))["Location"]
    close_account(reader)
    before = reader.password
    assert client.post(form, NEW).status_code == 403
    reader.refresh_from_db()
    assert reader.password == before
