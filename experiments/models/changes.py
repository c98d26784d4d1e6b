"""Who changed what: rows of django-auditlog, which writes one for every saved change of the models in `AUDITLOG_INCLUDE_TRACKING_MODELS`.

What a model's row cannot tell is noted here. Trials, measurements and files are the engine's and never logged.
"""

from __future__ import annotations

from typing import Any

from auditlog.models import LogEntry
from django.db.models import Model, QuerySet


def changes(project: Any = None) -> QuerySet[Any]:
    """Return the log, newest first: of one project, or (None) of the whole installation."""
    entries: QuerySet[Any] = LogEntry.objects.select_related("actor", "content_type").order_by("-timestamp", "-pk")
    return entries if project is None else entries.filter(additional_data__project=project.pk)


def note(changed: Model, what: str, words: str) -> None:
    """Add to the log that something was done to ``changed`` that none of its fields tells."""
    LogEntry.objects.log_create(changed, force_log=True, action=LogEntry.Action.UPDATE, changes={what: ["", words]})


def mask(value: str) -> str:
    """What the log shows of a secret."""
    return "hidden" if value else ""
