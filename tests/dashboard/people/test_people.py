"""Accounts: superusers find, make, close, reopen and unlock them."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from lxml.html import fromstring

from dashboard.help.guides import search
from experiments.errors import LastSuperuser
from experiments.models import Event, Experiment, Preferences
from experiments.models.changes import changes
from experiments.models.people import accounts
from tests.dashboard.texts import text_of
from tests.experiments import factories

pytestmark = pytest.mark.usefixtures("empty_redis")
LIST = "/people/"


@pytest.fixture
def root(page: Client, person: User) -> Client:
    """A superuser besides okafor, signed in."""
    client = type(page)()
    client.force_login(factories.person("root", is_superuser=True, is_staff=True))
    return client


def do(client: Client, user: User, change: str) -> str:
    answer = client.post(reverse("person-change", args=[user.pk, change]), follow=True)
    assert answer.status_code == 200
    return text_of(answer)


def logged(user: User) -> list[dict[str, list[str]]]:
    return [
        entry.changes for entry in changes() if entry.object_pk == str(user.pk) and entry.content_type.name == "user"
    ]


def test_it_finds_people_by_words_and_kind_with_roles_and_when_they_were_here(root: Client, person: User) -> None:
    ada = factories.person("ada", "viewer")
    User.objects.filter(pk=ada.pk).update(email="ada@example.org", is_active=False)
    Preferences.objects.create(user=ada, seen_at=timezone.now() - timedelta(minutes=5))
    users = root.get(LIST).content.decode()
    assert all(name in users for name in ("ada", "okafor", "root"))
    assert "Viewer of" in users
    last_seen = {
        row.xpath("string(.//td[@data-name='Last seen'])").strip()
        for row in fromstring(users).xpath("//tbody/tr[contains(., 'root')]")
    }
    assert last_seen == {"now"}, "the user of this request"
    one = text_of(root.get(LIST, {"q": "EXAMPLE.org"}))
    assert "okafor" not in one
    assert "Closed" in one
    assert "ada" not in text_of(root.get(LIST, {"kind": "superusers"}))


def test_a_new_account_gets_its_password_from_whom_the_link_is_given_to(root: Client, client: Client) -> None:
    fields = {"username": "lise", "email": "lise@example.org", "project": "default", "role": "submitter"}
    answer = root.post(LIST, fields)
    assert answer["Cache-Control"] == "private, no-store"
    [link] = re.findall(r'id="key">(http[^<]+)<', answer.content.decode())
    lise = User.objects.get(username="lise")
    assert not lise.has_usable_password()
    assert lise.memberships.get().role == "submitter"
    form = client.get(link, follow=True)
    password = "a long enough secret"
    client.post(form.redirect_chain[-1][0], {"password1": password, "password2": password})
    lise.refresh_from_db()
    assert lise.check_password(password)
    for name in ("lise", "LISE"):
        again = root.post(LIST, {**fields, "username": name, "email": ""})
        assert (again.status_code, list(again.context["form"].errors)) == (422, ["username"])


@pytest.mark.parametrize(("half", "at"), [({"role": "maintainer"}, "project"), ({"project": "default"}, "role")])
def test_a_new_account_with_half_a_membership_is_refused(root: Client, half: dict[str, str], at: str) -> None:
    answer = root.post(LIST, {"username": "lise", "email": "", **half})
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [at])
    assert not User.objects.filter(username="lise").exists()


def test_a_first_password_names_the_account_and_speaks_of_no_tokens(root: Client, client: Client) -> None:
    [link] = re.findall(r'id="key">(http[^<]+)<', root.post(LIST, {"username": "lise"}).content.decode())
    form = client.get(link, follow=True)
    assert "You sign in as <b>lise</b>" in text_of(form)
    assert "tokens" not in text_of(form).partition("<main")[2]
    wrong = client.post(form.redirect_chain[-1][0], {"password1": "short", "password2": "other"})
    assert list(wrong.context["form"].errors) == ["password1", "password2"]


def test_too_many_wrong_passwords_are_shown_and_forgiven(root: Client, client: Client, person: User) -> None:
    person.set_password("correct horse")
    person.save()
    wrong, right = ({"username": "okafor", "password": password} for password in ("wrong", "correct horse"))
    for _ in range(settings.AXES_FAILURE_LIMIT):
        client.post("/sign-in/", wrong)
    assert client.post("/sign-in/", right).status_code == 429
    assert "Locked out" in text_of(root.get(LIST))
    assert "127.0.0.1" in text_of(root.get(reverse("person", args=[person.pk])))
    do(root, person, "unlock")
    assert {"sign-in": ["", "unlocked from 1 address"]} in logged(person)
    assert "Locked out" not in text_of(root.get(LIST))
    assert client.post("/sign-in/", right).status_code == 302


def test_who_is_no_superuser_can_be_closed_where_there_is_none(person: User) -> None:
    accounts.close_account(person)
    person.refresh_from_db()
    assert not person.is_active
    boss = factories.person("boss", is_superuser=True)
    with pytest.raises(LastSuperuser):
        accounts.end_superuser(boss)


def test_the_right_to_set_up_clusters_is_granted_and_removed(root: Client, page: Client, person: User) -> None:
    new_cluster = reverse("cluster-new")
    for change, entry, status in (("clusters", "granted", 200), ("no-clusters", "removed", 403)):
        do(root, person, change)
        assert page.get(new_cluster).status_code == status
        assert {"right to set up clusters": ["", entry]} in logged(person)
        assert change not in root.get(reverse("person", args=[person.pk])).context["changes"]
    person.refresh_from_db()
    assert not person.is_staff


def test_closing_the_only_maintainer_of_a_project_is_warned_of(root: Client, person: User) -> None:
    person.memberships.update(role="maintainer")
    name, address = person.memberships.get().project.name, reverse("person", args=[person.pk])
    warning = f"No other user maintains {name}"
    assert warning in root.get(address).context["changes"]["close"].question
    factories.person("ada", "maintainer")
    assert warning not in root.get(address).context["changes"]["close"].question


@pytest.mark.parametrize("change", ["no-superuser", "close"])
def test_superusers_type_their_name_before_they_change_their_own_account(
    root: Client, person: User, change: str
) -> None:
    accounts.make_superuser(person)
    user = User.objects.get(username="root")
    before = (user.is_active, user.is_superuser)
    page = text_of(root.get(reverse("person", args=[user.pk])))
    assert f'id="ask-{change}"' in page
    assert f'id="name-{change}" name="name" required' in " ".join(page.split())
    for name in ("", "okafor"):
        answer = root.post(reverse("person-change", args=[user.pk, change]), {"name": name}, follow=True)
        assert "Type your name, root, to confirm" in text_of(answer)
        user.refresh_from_db()
        assert (user.is_active, user.is_superuser) == before
    root.post(reverse("person-change", args=[user.pk, change]), {"name": "root"})
    user.refresh_from_db()
    assert (user.is_active, user.is_superuser) != before


def test_rights_of_another_superuser_are_removed_after_a_dialog(root: Client, person: User) -> None:
    accounts.make_superuser(person)
    page = text_of(root.get(reverse("person", args=[person.pk])))
    assert 'data-dialog="ask-no-superuser"' in page
    assert 'id="name-no-superuser"' not in page
    do(root, person, "no-superuser")
    person.refresh_from_db()
    assert not person.is_superuser


def test_a_new_account_needs_an_e_mail_address_of_its_own(root: Client) -> None:
    User.objects.filter(username="root").update(email="root@example.org")
    answer = root.post(LIST, {"username": "lise", "email": "Root@example.org"})
    assert answer.status_code == 422
    assert "Another account has this e-mail address." in answer.content.decode()
    for name in ("lise", "otto"):  # without an address
        assert root.post(LIST, {"username": name, "email": ""}).status_code == 200


def test_personal_data_of_a_closed_account_are_removed_and_its_experiments_stay(root: Client, person: User) -> None:
    experiment = factories.experiment(owner=person)
    Experiment.objects.filter(pk=experiment.pk).update(origin={"imported_by": person.username})
    Event.note(Event.Kind.REPORT, "1:1", data={"version": 1, "by": person.username})
    User.objects.filter(pk=person.pk).update(email="okafor@example.org")
    address = reverse("person-change", args=[person.pk, "personal-data"])
    assert root.post(address).status_code == 404, "an open account keeps them"
    assert "Remove personal data" in text_of(root.get(reverse("person", args=[person.pk])))
    do(root, person, "close")
    assert f'action="{address}"' in root.get(reverse("person", args=[person.pk])).content.decode()
    do(root, person, "personal-data")
    person.refresh_from_db()
    assert (person.username, person.email, person.is_active) == (f"closed-{person.pk}", "", False)
    assert (person.has_usable_password(), person.memberships.count()) == (False, 0)
    experiment.refresh_from_db()
    assert experiment.owner == person
    assert experiment.origin["imported_by"] == Event.objects.get().data["by"] == f"closed-{person.pk}"
    assert "okafor@example.org" not in str(logged(person))
    assert root.post(address).status_code == 404, "nothing is left to remove"


@pytest.mark.parametrize("words", ["delete", "delete user", "personal data"])
def test_help_leads_to_closing_an_account(words: str) -> None:
    assert ("manage-accounts", "close-an-account") in [(hit.guide.name, hit.section.anchor) for hit in search(words)]
