"""Events to messages: once each, to their users, despite any crash."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from celery import current_app
from django.db import connection, transaction
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from experiments.models import Delivery, Event, Experiment, Membership, NoticeChoices, Project, Report, Trial, Webhook
from experiments.selectors.diagnosis import diagnosis_of
from tests.experiments import factories
from tests.workers.notifications.conftest import Receiver, run
from workers import backlog, tasks
from workers.notifications import outbox

pytestmark = pytest.mark.django_db

Wants = Callable[..., NoticeChoices]


def kinds() -> list[str]:
    return list(Event.objects.order_by("pk").values_list("kind", flat=True))


def test_one_mail_tells_of_an_experiment_that_ended_and_begins_with_its_answer(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    wants(person)
    run(experiment)
    outbox.work()
    outbox.work()
    [mail] = mails
    first, second, *rest = mail.body.splitlines()
    assert first == diagnosis_of(experiment).answer.sentence
    assert second == f"https://lab.example.org/experiments/{experiment.slug}/"
    assert mail.to == ["okafor@example.org"]
    assert mail.extra_headers["List-Unsubscribe"] == "<https://lab.example.org/account/#mails>"
    assert rest[-1] == "https://lab.example.org/account/#mails"
    assert Delivery.objects.get().state == "sent"


def test_a_name_with_line_feeds_writes_no_text_into_a_mail(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    wants(person)
    Experiment.objects.filter(pk=experiment.pk).update(name="Water\n\nSend your password to\nhttps://example.net")
    run(experiment)
    outbox.work()
    [mail] = mails
    assert "Water Send your password to https://example.net" in mail.body
    assert "\nSend your password" not in mail.body


def test_only_the_first_of_many_failures_is_reported(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    wants(person)
    run(experiment, failing=3)
    outbox.work()
    assert kinds() == ["failed", "ended"]
    assert [mail.subject for mail in mails] == [
        f"Rankwire: First failure: {experiment}",
        f"Rankwire: Experiment ended: {experiment}",
    ]
    assert mails[0].body.splitlines()[0].endswith("the first of its experiment: mpirun ended with status 1")


def test_trials_that_are_run_later_make_it_end_once_more(experiment: Experiment) -> None:
    run(experiment)
    experiment.add_repetitions(1)
    assert kinds() == ["ended"]
    run(experiment)
    assert kinds() == ["ended", "ended"]


def test_an_experiment_ends_by_cancelling_what_is_left_but_not_where_nothing_ran(experiment: Experiment) -> None:
    other = factories.experiment(name="Another")
    factories.finished()
    experiment.cancel()
    other.cancel()
    assert list(Event.objects.values_list("kind", "experiment")) == [("ended", experiment.pk)]


def test_a_lost_trial_that_is_run_again_is_no_failure(experiment: Experiment) -> None:
    retried = factories.running().mark_lost("Its worker process ended.")
    assert retried is not None
    assert kinds() == []


def test_an_experiment_without_a_result_reports_it(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    wants(person, ended=True)
    run(experiment, failing=4)
    outbox.work()
    assert [mail.body.splitlines()[0] for mail in mails] == ["It ended without a result."]


def test_an_event_is_gone_with_the_transaction_of_its_trial(experiment: Experiment) -> None:
    trial = factories.running()
    with transaction.atomic():
        trial.fail("broken")
        assert kinds() == ["failed"]
        transaction.set_rollback(True)  # the worker dies
    assert kinds() == []


def test_users_are_notified_of_their_choices(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    other = Project.objects.create(slug="other", name="Other")
    people = {
        name: factories.person(name, "viewer", email=f"{name}@example.org") for name in ("own", "all", "some", "none")
    }
    wants(person, of="own")
    wants(people["own"], of="own")
    wants(people["all"], of="all", ended=True)
    wants(people["some"], of="some").projects.set([experiment.project])
    wants(people["none"], of="some").projects.set([other])
    run(experiment)
    outbox.work()
    assert {mail.to[0] for mail in mails} == {"okafor@example.org", "all@example.org", "some@example.org"}


def test_users_without_access_are_never_notified(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    stranger = factories.person("eve", email="eve@example.org")
    wants(stranger)
    wants(person)
    run(experiment)
    outbox.tell(Event.objects.get().pk)
    assert list(Delivery.objects.values_list("user", flat=True)) == [person.pk]
    Membership.objects.filter(user=person).delete()  # between the event and the mail
    outbox.work()
    assert mails == []
    remaining = Delivery.objects.get()
    assert (remaining.state, remaining.result) == ("dropped", "The user may no longer see the experiment.")


def test_without_a_mail_server_nothing_waits_and_a_test_says_why(
    experiment: Experiment, person: Any, wants: Wants, settings: Any, mailoutbox: list[Any]
) -> None:
    settings.SENDS_MAIL = False
    wants(person)
    run(experiment)
    outbox.work()
    assert not Delivery.objects.exists()
    sent = outbox.test(user=person)
    assert (sent.state, sent.result, mailoutbox) == ("dropped", outbox.NO_MAIL, [])


def test_a_worker_that_dies_between_event_and_sending_loses_and_doubles_nothing(
    experiment: Experiment, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    Webhook.objects.create(project=experiment.project, url=receiver.url)
    run(experiment)
    assert outbox.is_waiting()

    def die(*_: Any, **__: Any) -> None:
        raise SystemExit("killed")

    with monkeypatch.context() as patched:
        patched.setattr(outbox, "_messages", die)  # while the messages are made
        with pytest.raises(SystemExit):
            outbox.work()
    assert not Delivery.objects.exists()
    with monkeypatch.context() as patched:
        patched.setattr(outbox, "send", die)  # with a message in its hands
        with pytest.raises(SystemExit):
            outbox.work()
    outbox.work()
    assert receiver.messages == []  # it is still held by the dead one
    Delivery.objects.update(due_at=Now())
    outbox.work()
    outbox.work()
    assert len(receiver.messages) == 1
    assert not outbox.is_waiting()


def test_a_message_that_is_refused_is_tried_again_later_and_not_for_ever(
    experiment: Experiment, receiver: Receiver
) -> None:
    Webhook.objects.create(project=experiment.project, url=receiver.url)
    receiver.statuses = [500, 302, 404, 500, 503]
    run(experiment)
    results, waits = [], []
    for _ in range(7):
        outbox.work()
        row = Delivery.objects.get()
        results.append((row.state, row.result.partition(" answered ")[2]))
        waits.append(row.due_at - timezone.now())
        Delivery.objects.update(due_at=Now())
    assert results[:2] == [("waiting", "500."), ("waiting", "302: redirects are not followed.")]
    assert results[4:] == [("failed", "503.")] * 3
    assert waits[:4] == sorted(waits[:4])
    assert len(receiver.messages) == 5


def test_a_receiver_that_fails_delays_no_message_to_others(experiment: Experiment, receiver: Receiver) -> None:
    failing = Webhook.objects.create(project=experiment.project, url=f"{receiver.url}/failing")
    well = Webhook.objects.create(project=experiment.project, url=receiver.url)
    receiver.statuses = [500]
    run(experiment, failing=1)
    outbox.work()
    attempts = Delivery.objects.filter(webhook=failing).order_by("-attempts").values_list("attempts", "state")
    assert list(attempts) == [(1, "waiting"), (0, "waiting")]
    assert set(Delivery.objects.filter(webhook=well).values_list("state", flat=True)) == {"sent"}


def test_a_task_of_sending_ends_in_time(
    experiment: Experiment, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    Webhook.objects.create(project=experiment.project, url=receiver.url)
    run(experiment)
    monkeypatch.setattr(outbox, "_TASK_S", -1.0)
    outbox.work()
    assert receiver.messages == []
    assert outbox.is_waiting()


@pytest.mark.parametrize("line", [b"SSH-2.0-secret\r\n", b"\0\0\r\n", b"HTTP/1.1 \0\r\n\r\n", b"x" * 100_000])
def test_an_answer_that_is_no_http_is_not_shown(
    experiment: Experiment, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """NUL was an error in each attempt, without end."""
    monkeypatch.setattr(receiver.RequestHandlerClass, "do_POST", lambda handler: handler.wfile.write(line))
    webhook = Webhook.objects.create(project=experiment.project, url=receiver.url)
    delivery = outbox.test(webhook=webhook)
    assert (delivery.state, delivery.result) == ("failed", "127.0.0.1 could not be reached: its answer is not HTTP.")


def test_a_receiver_that_closes_the_connection_is_named_as_such(
    experiment: Experiment, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver.RequestHandlerClass, "do_POST", lambda handler: None)
    webhook = Webhook.objects.create(project=experiment.project, url=receiver.url)
    delivery = outbox.test(webhook=webhook)
    assert delivery.state == "failed"
    assert "closed connection without response" in delivery.result


def test_reasons_of_a_mail_server_are_stored_as_text(experiment: Experiment) -> None:
    delivery = Delivery.begin_test(webhook=Webhook.objects.create(project=experiment.project, url="http://a/"))
    delivery.put_off("a\0b" + "x" * 400)
    assert delivery.result == "a\ufffdb" + "x" * 297


def test_the_message_of_a_webhook_is_signed_and_leads_to_page_and_rest(
    experiment: Experiment, receiver: Receiver, settings: Any
) -> None:
    settings.PUBLIC_ADDRESS = "https://lab.example.org"
    webhook = Webhook.objects.create(project=experiment.project, url=receiver.url, ended=False)
    run(experiment, failing=1)
    outbox.work()
    [(headers, body)] = receiver.messages
    assert _is_genuine(webhook.secret, headers["Rankwire-Signature"], body)
    assert not _is_genuine("another", headers["Rankwire-Signature"], body)
    answer = json.loads(body)
    trial = Trial.objects.get(state="failed")
    assert answer["event"] == "failed"
    assert answer["delivery"] == int(headers["Rankwire-Delivery"]) == Delivery.objects.get().pk
    assert (
        answer["experiment"]["rest"]
        == f"https://lab.example.org{reverse('api:experiment-detail', args=[experiment.slug])}"
    )
    assert answer["url"] == answer["trial"]["url"] == f"https://lab.example.org/trials/{trial.pk}/"


def _is_genuine(secret: str, header: str, body: bytes) -> bool:
    """The lines that docs/reference/rest-lists.md gives to receivers."""
    parts = dict(part.split("=", 1) for part in header.split(","))
    signed = parts["t"].encode() + b"." + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(digest, parts["v1"]) and abs(time.time() - int(parts["t"])) < 300


def test_an_experiment_that_left_the_project_is_not_sent_to_its_webhooks(
    experiment: Experiment, receiver: Receiver
) -> None:
    Webhook.objects.create(project=experiment.project, url=receiver.url)
    run(experiment)
    outbox.tell(Event.objects.get().pk)
    experiment.move_to(Project.objects.create(slug="other", name="Other"))
    outbox.work()
    assert receiver.messages == []
    assert Delivery.objects.get().state == "dropped"


def test_a_history_that_steps_is_reported_once(
    experiment: Experiment, person: Any, wants: Wants, mails: list[Any]
) -> None:
    wants(person, stepped=True)
    _at_level(experiment, 1.5, repetitions=6)
    outbox.work()
    assert kinds() == ["ended"]
    again = factories.experiment(name="After the update", owner=person)
    _at_level(again, 3.0, repetitions=6)
    outbox.work()
    assert kinds().count("stepped") == 2  # one for each of the two configurations
    _at_level(again, 3.0, repetitions=1)
    outbox.work()
    assert kinds().count("stepped") == 2
    assert len(mails) == 2
    sentence = mails[0].body.splitlines()[0]
    assert "the median elapsed time is 3.0" in sentence.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert sentence.endswith(": 2×.")
    assert "/history/" in mails[0].body.splitlines()[1]


def test_a_step_names_the_load_that_slowed_the_trials_since_then(experiment: Experiment) -> None:
    _at_level(experiment, 1.5, repetitions=6)
    outbox.work()
    night = factories.experiment(name="A night of load")
    _at_level(night, 3.0, repetitions=6)
    night.trials.update(trust="degraded", conditions={"disturbances": ["other load"]})
    outbox.work()
    sentences = [event.data["sentence"] for event in Event.objects.filter(kind="stepped")]
    assert len(sentences) == 2
    assert all(sentence.endswith(" (other load slowed 6 of 6 trials since then).") for sentence in sentences)


def _at_level(experiment: Experiment, elapsed_s: float, *, repetitions: int) -> None:
    waiting = experiment.trials.filter(state="queued").count() // 2
    experiment.add_repetitions(repetitions - waiting if repetitions > waiting else repetitions)
    for number in range(experiment.trials.filter(state="queued").count()):
        value = elapsed_s * (1 + 0.01 * (number % 3))
        trial = factories.analysing()
        trial.finish(replace(factories.RESULT, measurements={"all": {"elapsed_s": value}}))
    connection.check_constraints()  # as a commit does: what histories are made of is written then


def test_reports_and_imports_send_no_mail(experiment: Experiment, person: Any, wants: Wants, mails: list[Any]) -> None:
    wants(person)
    report = Report.write(experiment.project, "Water", "text", {}, by=person)
    report.revise("Water", "more", {}, by=person, base=1)
    experiment.note_imported()
    outbox.work()
    assert kinds() == ["report", "report", "imported"]
    assert (mails, outbox.is_waiting()) == ([], False)


def test_two_transactions_that_end_the_last_trials_take_turns(experiment: Experiment) -> None:
    """The lock lasts from the look at the other trials to the commit."""
    run(experiment)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone()[0] == 1


def test_sweep_wakes_the_background_worker_for_notifications(
    empty_redis: object, experiment: Experiment, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        tasks.sweep()
    assert backlog.has_listener(current_app, tasks.BACKGROUND_QUEUE)
    run(experiment)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.sweep()
    assert not backlog.has_listener(current_app, tasks.BACKGROUND_QUEUE)
    tasks.send_notices()
    assert not outbox.is_waiting()
