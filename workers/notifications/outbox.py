"""Outbox: events to messages to users. Every step can be interrupted.

An event is a row of the transaction that it describes; its messages are made in one transaction together with the mark that they
exist. Sending happens between two short transactions: a message is claimed for some minutes, sent, and marked.
"""

from __future__ import annotations

import smtplib
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.timezone import get_default_timezone

from experiments.access import visible_experiments
from experiments.models import Delivery, Event, Experiment, NoticeChoices, Preferences, Webhook
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.events import with_subjects
from workers.notifications import messages
from workers.notifications.address import Refused
from workers.notifications.steps import steps_of
from workers.notifications.webhook import Undelivered, post

NO_MAIL: Final = "This installation sends no mail: RANKWIRE_SMTP_URL is not set."
NO_ADDRESS: Final = "This account has no e-mail address."
_AT_ONCE: Final = 200
"""Messages of one task; the next sweep continues."""
_TASK_S: Final = 20.0
"""Time of one task, of which slow receivers take 10 s each: exports of users wait for the same worker."""
T = TypeVar("T")
log = structlog.get_logger()


def is_waiting() -> bool:
    """Return whether there are events to process or messages to send."""
    return Event.objects.without_notifications().exists() or Delivery.objects.due().exists()


def work() -> None:
    """Create the messages of new events, and send what is due."""
    while (event := Event.objects.without_notifications().first()) is not None:
        if not tell(event.pk):
            break  # another one is at it
    ends_at = time.monotonic() + _TASK_S
    for _ in range(_AT_ONCE):
        if time.monotonic() > ends_at or (delivery := Delivery.claim_next()) is None:
            break
        send(delivery)


def tell(key: int) -> bool:
    """Create the messages of an event, once; False if another process does or did."""
    event = with_subjects(Event.objects.all()).get(pk=key)
    # Seconds of computing, outside of the transaction: a second worker at the same event does it for nothing, and no more.
    ended = event.kind == Event.Kind.ENDED
    answer = _guarded(event, _answer, "") if ended else ""
    steps: list[Event] = _guarded(event, steps_of, []) if ended else []
    with transaction.atomic():
        if Event.objects.select_for_update(skip_locked=True).filter(pk=key, told_at=None).first() is None:
            return False
        Event.objects.bulk_create(steps, ignore_conflicts=True)
        Delivery.objects.bulk_create(_messages(event), ignore_conflicts=True)
        summary = {"data": {**event.data, "answer": answer}} if ended else {}
        Event.objects.filter(pk=key).update(told_at=Now(), **summary)
    return True


def _guarded(event: Event, make: Callable[[Event], T], otherwise: T) -> T:
    """Return ``otherwise`` if an experiment has no answer: other events go on."""
    try:
        return make(event)
    except Exception:
        log.exception("event_not_read", happened=event.key)
        return otherwise


def _answer(event: Event) -> str:
    experiment = event.experiment
    has_results = experiment is not None and experiment.trials.counted().exists()
    return diagnosis_of(experiment).answer.sentence if experiment is not None and has_results else ""


def _messages(event: Event) -> list[Delivery]:
    is_wanted = {event.kind: True}
    choices = NoticeChoices.objects.filter(**is_wanted, user__is_active=True).select_related("user")
    mails = [
        Delivery(event=event, user=choice.user)
        for choice in (choices if settings.SENDS_MAIL else ())
        if choice.wants(event) and may_know(choice.user, event)
    ]
    hooks = Webhook.objects.filter(**is_wanted, project=event.experiment.project_id) if event.experiment else ()
    return [*mails, *(Delivery(event=event, webhook=hook) for hook in hooks)]


def may_know(user: Any, event: Event) -> bool:
    """Return whether ``user`` may see the event's experiment."""
    experiment = event.experiment
    return experiment is not None and visible_experiments(user, Experiment.objects.filter(pk=experiment.pk)).exists()


def send(delivery: Delivery) -> None:
    """Attempt to send a claimed message and store the result; check permissions again."""
    event = None
    if delivery.event_id is not None:
        event = with_subjects(Event.objects.all()).get(pk=delivery.event_id)
    try:
        delivery.sent(_to_person(delivery, event) if delivery.user is not None else _to_webhook(delivery, event))
    except Refused as error:
        delivery.drop(str(error))
    except Undelivered as error:
        delivery.put_off(str(error))
    except Exception:
        log.exception("notice_not_sent", delivery=delivery.pk)
        delivery.put_off("Rankwire could not send this; the reason is in its log.")


def test(**to: Any) -> Delivery:
    """Send a test message to a ``user`` or a ``webhook``; return the result."""
    delivery = Delivery.begin_test(**to)
    send(delivery)
    return delivery


def _to_person(delivery: Delivery, event: Event | None) -> str:
    user: Any = delivery.user
    if not settings.SENDS_MAIL:
        raise Refused(NO_MAIL)
    if not user.email:
        raise Refused(NO_ADDRESS)
    if not user.is_active:
        raise Refused("The account was closed.")
    if event is not None and not may_know(user, event):
        raise Refused("The user may no longer see the experiment.")
    if event is not None and not NoticeChoices.of_user(user).wants(event):
        raise Refused("The user switched this notification off.")
    zone = Preferences.of_user(user).zone or get_default_timezone()
    message = messages.test_mail(user.email) if event is None else messages.mail(event, user.email, zone)
    try:
        message.send()
    except (OSError, smtplib.SMTPException) as error:
        raise Undelivered(f"The mail server refused the message: {error}") from None
    return f"The mail server accepted the message for {user.email}."


def _to_webhook(delivery: Delivery, event: Event | None) -> str:
    webhook: Any = delivery.webhook
    if event is not None and not webhook.wants(event):
        raise Refused("The experiment left the project, or the webhook's settings exclude this event.")
    headers = {"Rankwire-Delivery": str(delivery.pk), "User-Agent": "Rankwire"}
    body = messages.body(event, delivery.pk)
    return post(webhook.url, body, secret=webhook.secret, headers=headers, allowed=settings.WEBHOOK_NETWORKS)
