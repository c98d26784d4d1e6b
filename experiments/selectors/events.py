"""Text of events, for the activity feed, mails, webhooks and REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db.models import QuerySet
from django.urls import reverse

from experiments.models import Event

_LARGE: Final = ("tables", "traceback", "conditions", "certificate", "command", "not_available")
"""Columns of a trial that no text needs."""
NO_ANSWER: Final = "It ended without a result."


def with_subjects(events: QuerySet[Event]) -> QuerySet[Event]:
    """Return the events with the related rows of their text, in one query."""
    rows = events.select_related("experiment__project", "trial", "report__project")
    return rows.defer(*(f"trial__{name}" for name in _LARGE), "experiment__specification")


def sentence(event: Event) -> str:
    """Return the text of an event; for an ended experiment its answer at that time."""
    data: Mapping[str, Any] = event.data
    if event.kind == Event.Kind.ENDED:
        return str(data.get("answer") or ("It ended." if event.told_at is None else NO_ANSWER))
    if event.kind == Event.Kind.FAILED and event.trial is not None:
        lines = event.trial.message.strip().splitlines()
        return (
            f"Trial {event.trial_id} failed, the first of its experiment: {lines[0] if lines else 'no reason given.'}"
        )
    if event.kind == Event.Kind.STEPPED:
        return str(data["sentence"])
    if event.kind == Event.Kind.IMPORTED and event.experiment is not None:
        return f"Imported by {event.experiment.origin.get('imported_by') or 'the command line'}."
    by = f" by {data['by']}" if data.get("by") else ""
    return f"Written{by}." if data.get("version") == 1 else f"Version {data.get('version')} was saved{by}."


def title(event: Event) -> str:
    """Return the name of the experiment or report."""
    return str(event.experiment or event.report)


def path(event: Event) -> str:
    """Return the path of the page of an event."""
    if event.kind == Event.Kind.FAILED and event.trial is not None:
        return event.trial.get_absolute_url()
    if event.kind == Event.Kind.STEPPED:
        address = reverse("history", args=[event.data["configuration"], event.data["cluster"]])
        return f"{address}?metric={event.data['metric']}"
    if event.experiment is not None:
        return event.experiment.get_absolute_url()
    return reverse("report", args=[event.report_id])
