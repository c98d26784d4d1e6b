"""Mails, webhooks and the feed, as people choose and see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.people.activity_feed import MOST_SHOWN
from dashboard.requests.concurrency_limits import acquire
from experiments.models import Delivery, Event, Experiment, NoticeChoices, Project, Report, Webhook
from tests.experiments import factories
from workers.notifications import outbox

pytestmark = pytest.mark.usefixtures("empty_redis")
Submit = Callable[..., Experiment]


@pytest.fixture
def maintainer(library: Project) -> Iterator[Client]:
    client = Client()
    client.force_login(factories.person("mia", "maintainer"))
    return client


def choose(page: Client, **fields: Any) -> Any:
    return page.post("/account/notices/", {f"notices-{name}": value for name, value in fields.items()})


def test_nothing_is_chosen_at_first_and_what_is_chosen_stays(page: Client, person: User, library: Project) -> None:
    assert not NoticeChoices.of_user(person).ended
    assert choose(page, ended="on", of="some", projects=[library.pk]).status_code == 302
    choices = NoticeChoices.objects.get(user=person)
    assert (choices.ended, choices.failed, choices.of, list(choices.projects.all())) == (True, False, "some", [library])
    choose(page, of="own")
    choices.refresh_from_db()
    assert (choices.ended, choices.of) == (False, "own")
    assert LogEntry.objects.get_for_object(choices).count() >= 2


def test_a_choice_of_projects_that_are_none_of_ones_own_is_refused_at_its_field(page: Client, person: User) -> None:
    other = Project.objects.create(slug="other", name="Secret plans")
    response = choose(page, failed="on", of="some", projects=[other.pk])
    assert response.status_code == 422
    assert "Secret plans" not in response.text
    choose(page, failed="on", of="some")
    assert not NoticeChoices.objects.filter(user=person).exists()


def test_the_account_says_that_no_mail_is_sent_and_what_a_test_came_to(
    page: Client, person: User, settings: Any, mailoutbox: list[Any]
) -> None:
    assert outbox.NO_MAIL in page.get("/account/").text
    settings.SENDS_MAIL = True
    assert outbox.NO_ADDRESS in page.get("/account/").text
    page.post("/account/notices/test/")
    assert mailoutbox == []
    person.email = "okafor@example.org"
    person.save()
    page.post("/account/notices/test/")
    assert [mail.to for mail in mailoutbox] == [["okafor@example.org"]]


@pytest.mark.parametrize("to", ["webhook", "mail"])
def test_few_test_messages_are_sent_at_once(maintainer: Client, library: Project, to: str) -> None:
    """A slow receiver holds a thread of the site for ten seconds."""
    webhook = Webhook.objects.create(project=library, url="http://192.0.2.1/", ended=True)
    address = f"/projects/default/webhooks/{webhook.pk}/test/" if to == "webhook" else "/account/notices/test/"
    slots = [acquire(factories.person(name), "test-message", total=3) for name in ("ada", "bob", "eve")]
    assert "3 of these are running already" in maintainer.post(address, follow=True).text
    assert not Delivery.objects.exists()
    slots[0].release()
    maintainer.post(address)
    assert Delivery.objects.count() == 1


def test_users_of_one_address_send_ten_test_mails_in_ten_minutes(
    page: Client, maintainer: Client, settings: Any, mailoutbox: list[Any]
) -> None:
    """Addresses of new accounts are not verified: they may be those of others."""
    settings.SENDS_MAIL = True
    User.objects.update(email="victim@example.org")
    for client in [page] * 8 + [maintainer] * 4:
        answer = client.post("/account/notices/test/", follow=True)
    assert len(mailoutbox) == 10
    assert "wait ten minutes" in answer.text


def test_concurrent_requests_exceed_no_limit_of_webhooks(maintainer: Client, library: Project) -> None:
    with CaptureQueriesContext(connection) as queries:
        maintainer.post("/projects/default/webhooks/", {"webhook-url": "https://example.org/x", "webhook-ended": "on"})
    statements = [query["sql"] for query in queries]
    (lock,) = [number for number, sql in enumerate(statements) if "FOR NO KEY UPDATE" in sql]
    (count,) = [number for number, sql in enumerate(statements) if "COUNT(" in sql and "webhook" in sql]
    assert lock < count


def test_a_maintainer_sets_up_a_webhook_and_sees_its_secret_once(
    maintainer: Client, library: Project, settings: Any
) -> None:
    fields = {"webhook-url": "https://example.org/hook", "webhook-ended": "on"}
    response = maintainer.post("/projects/default/webhooks/", fields)
    webhook = Webhook.objects.get()
    assert (webhook.ended, webhook.failed, webhook.made_by.get_username()) == (True, False, "mia")
    assert webhook.secret in response.text
    assert response["Cache-Control"] == "private, no-store"
    again = maintainer.get("/projects/default/").text
    assert "https://example.org/hook" in again
    assert webhook.secret not in again
    [entry] = LogEntry.objects.get_for_object(webhook)
    assert webhook.nonce not in str(entry.changes)
    assert entry.additional_data == {"project": library.pk}
    assert Webhook(project=library, url=webhook.url).secret != webhook.secret


def test_a_webhook_whose_name_has_no_address_is_created_with_a_warning(maintainer: Client, library: Project) -> None:
    for host, is_warned in (("nohost.invalid", True), ("1.1.1.1", False)):
        fields = {"webhook-url": f"http://{host}/hook", "webhook-ended": "on"}
        words = maintainer.post("/projects/default/webhooks/", fields).text
        assert Webhook.objects.filter(url=fields["webhook-url"]).exists()
        assert (f"could not resolve the name {host}." in words) == is_warned


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"webhook-url": "ftp://example.org/", "webhook-ended": "on"}, "Only addresses of http and https"),
        ({"webhook-url": "https://a:b@example.org/", "webhook-ended": "on"}, "Remove the name and password"),
        ({"webhook-url": "https://example.org/"}, "Choose at least one event."),
        ({"webhook-url": "http://127.0.0.1:9/hook", "webhook-ended": "on"}, "127.0.0.1 is not a public address"),
        ({"webhook-url": "http://LOCALHOST./x", "webhook-ended": "on"}, "localhost. is not a public address"),
        ({"webhook-url": "http://a.localhost/x", "webhook-ended": "on"}, "a.localhost is not a public address"),
        ({"webhook-url": "http://[::1]/hook", "webhook-ended": "on"}, "::1 is not a public address"),
    ],
)
def test_a_wrong_webhook_is_refused_at_its_field(maintainer: Client, fields: dict[str, str], words: str) -> None:
    response = maintainer.post("/projects/default/webhooks/", fields)
    assert response.status_code == 422
    assert words in response.text
    assert not Webhook.objects.exists()


def test_home_lists_events_until_they_are_marked_as_seen(
    page: Client, person: User, submit: Submit, run: Callable[..., None]
) -> None:
    experiment = submit()
    run()
    outbox.work()
    Report.write(experiment.project, "A report of water", "text", {}, by=person)
    response = page.get("/")
    assert [row["title"] for row in response.context["happened"]] == ["A report of water", experiment.name]
    answer = Event.objects.get(kind="ended").data["answer"]
    assert answer
    assert answer in response.context["happened"][1]["sentence"]
    until = response.context["happened_until"]
    later = Report.write(experiment.project, "Another", "text", {}, by=person)
    response = page.post("/events/seen/", {"until": until}, follow=True)
    assert [row["title"] for row in response.context["happened"]] == [later.title]
    assert [row.experiment for row in response.context["recent"]] == [experiment]
    page.post("/events/seen/", {"until": 10**17})
    Report.write(experiment.project, "A third", "text", {}, by=person)
    assert "A third" in page.get("/").text  # a number that nothing has yet hides nothing


def test_the_feed_is_bounded_and_lists_each_report_once(page: Client, person: User, library: Project) -> None:
    for number in range(MOST_SHOWN + 2):
        report = Report.write(library, f"Report {number}", "text", {}, by=person)
        report.revise(f"Report {number}", "more", {}, by=person, base=1)
    context = page.get("/").context
    assert (len(context["happened"]), context["happened_more"]) == (MOST_SHOWN, 2)
    assert context["happened"][0]["sentence"] == "Version 2 was saved by okafor."


def test_the_feed_hides_events_of_invisible_experiments(
    page: Client, client: Client, submit: Submit, run: Callable[..., None], library: Project
) -> None:
    submit(name="Confidential")
    run()
    stranger = Client()
    stranger.force_login(factories.person("eve"))
    assert "Confidential" not in stranger.get("/").text
    assert stranger.get("/api/v1/events/").json()["results"] == []
    assert [row["title"] for row in page.get("/api/v1/events/").json()["results"]] == ["Confidential"]


def test_sent_messages_do_not_name_experiments_that_left(
    page: Client, maintainer: Client, person: User, library: Project, submit: Submit
) -> None:
    """Their names may have changed in the other project."""
    experiment = submit()
    Event.note(Event.Kind.ENDED, "x", experiment=experiment, data={})
    event = Event.objects.get()
    webhook = Webhook.objects.create(project=library, url="https://example.org/", made_by=person)
    Delivery.objects.create(event=event, user=person)
    Delivery.objects.create(event=event, webhook=webhook)
    pages = ((page, "/account/"), (maintainer, f"/projects/{library.slug}/"))
    Experiment.objects.update(name="Quiet name")
    assert all("Quiet name" in client.get(path).text for client, path in pages)
    Experiment.objects.update(name="Secret plans", project=Project.objects.create(slug="other", name="Other"))
    for client, path in pages:
        assert "Secret plans" not in client.get(path).text


def test_rest_pages_events_by_cursor(page: Client, person: User, library: Project) -> None:
    for number in range(3):
        Report.write(library, f"Report {number}", "text", {}, by=person)
    first = page.get("/api/v1/events/", {"limit": 2, "kind": "report"}).json()
    Report.write(library, "Report 3", "text", {}, by=person)
    second = page.get(first["next"]).json()
    assert [row["title"] for row in first["results"] + second["results"]] == ["Report 2", "Report 1", "Report 0"]
    assert second["next"] is None
    assert first["results"][0]["project"] == "default"
    for wrong in ({"kind": "x"}, {"limit": "x"}, {"offset": 1}, {"cursor": "wrong"}):
        assert page.get("/api/v1/events/", wrong).status_code == 400
