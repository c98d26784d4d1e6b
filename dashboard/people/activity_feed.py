"""Activity feed of Home: events since the user's last visit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from experiments.access import visible_events
from experiments.models import Event, NoticeChoices
from experiments.selectors import events

MOST_SHOWN: Final = 10
AT_FIRST: Final = timedelta(days=7)
"""Age of the oldest event for a user who has not marked any as seen."""
_COUNTED: Final = 100


def feed(user: Any) -> dict[str, Any]:
    """Return the newest unseen events, one per subject and kind."""
    choices = NoticeChoices.of_user(user)
    since = choices.seen_at or timezone.now() - AT_FIRST
    fresh = visible_events(user).filter(pk__gt=choices.seen)
    if choices.seen_at is None:
        fresh = fresh.filter(at__gte=since)
    rows = list(events.with_subjects(fresh.order_by("-pk"))[:_COUNTED])
    by_subject: dict[Any, Event] = {}
    for event in rows:
        subject = (event.kind, event.experiment_id, event.report_id, event.data.get("configuration"))
        by_subject.setdefault(subject, event)
    return {
        "happened": [
            {
                "event": event,
                "title": events.title(event),
                "sentence": events.sentence(event),
                "path": events.path(event),
            }
            for event in list(by_subject.values())[:MOST_SHOWN]
        ],
        "happened_more": max(0, len(by_subject) - MOST_SHOWN),
        "happened_until": rows[0].pk if rows else 0,
        "seen_at": choices.seen_at,
    }


@require_POST
def seen(request: HttpRequest) -> HttpResponse:
    """Mark events up to the first one of the page as seen; later ones stay."""
    until = request.POST.get("until", "")
    if not (until.isascii() and until.isdecimal() and len(until) < 19):
        raise BadRequest("until must be the number of an event.")
    newest = visible_events(request.user).order_by("-pk").values_list("pk", flat=True).first() or 0
    NoticeChoices.mark_seen(request.user, min(int(until), newest))
    return redirect("home")
