"""Content of notifications: the mail to a user, the JSON to a webhook."""

from __future__ import annotations

import json
from datetime import tzinfo
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse

from experiments.models import Event
from experiments.selectors import events


def link(path: str) -> str:
    """Return the whole address of a page."""
    return f"{settings.PUBLIC_ADDRESS}{path}"


def mail(event: Event, address: str, zone: tzinfo) -> EmailMessage:
    """Return the mail: the result or event, then the link; times in ``zone``."""
    choices = link(f"{reverse('account')}#mails")
    # Names are of people's making; a line feed would end the header, or begin a paragraph in our name.
    title = " ".join(f"{event.get_kind_display()}: {events.title(event)}".split())
    lines = [
        " ".join(events.sentence(event).splitlines()),
        link(events.path(event)),
        "",
        title,
        f"Project: {event.experiment.project.name}" if event.experiment is not None else "",
        f"When: {event.at.astimezone(zone):%Y-%m-%d %H:%M %Z}",
        "",
        "You receive this notification because of your account's settings. Change them here:",
        choices,
    ]
    return EmailMessage(f"Rankwire: {title}"[:200], "\n".join(lines), to=[address], headers=_headers(choices))


def test_mail(address: str) -> EmailMessage:
    """Return a test mail."""
    choices = link(f"{reverse('account')}#mails")
    body = f"Rankwire sends mail to this address.\n{choices}\n\nYou requested this test on the page of your account."
    return EmailMessage("Rankwire: test", body, to=[address], headers=_headers(choices))


def _headers(choices: str) -> dict[str, str]:
    return {"List-Unsubscribe": f"<{choices}>", "Auto-Submitted": "auto-generated"}


def body(event: Event | None, delivery: int) -> bytes:
    """Return the JSON of a webhook; None is a test."""
    message: dict[str, Any] = {"delivery": delivery, "event": "test" if event is None else event.kind}
    if event is None:
        message |= {"sentence": "Rankwire sends messages to this address.", "url": link(reverse("projects"))}
    else:
        message |= {"id": event.pk, "at": event.at.isoformat(), "sentence": events.sentence(event)}
        message |= {"title": events.title(event), "url": link(events.path(event))}
    if event is not None and event.experiment is not None:
        slug = event.experiment.slug
        message["project"] = event.experiment.project.slug
        message["experiment"] = {
            "slug": slug,
            "name": event.experiment.name,
            "url": link(event.experiment.get_absolute_url()),
            "rest": link(reverse("api:experiment-detail", args=[slug])),
        }
    if event is not None and event.trial is not None:
        message["trial"] = {
            "id": event.trial_id,
            "url": link(event.trial.get_absolute_url()),
            "rest": link(reverse("api:trial-detail", args=[event.trial_id])),
        }
    return json.dumps(message).encode()
