"""Change log (django-auditlog) of AUDITLOG_INCLUDE_TRACKING_MODELS.

Actions that no field records are added here. Trials, measurements and files are never logged.
"""

from __future__ import annotations

from typing import Any

from auditlog.models import LogEntry
from django.db.models import Model, QuerySet


def changes(project: Any = None) -> QuerySet[Any]:
    """Return the log of a project, or (None) of the installation, newest first."""
    entries: QuerySet[Any] = LogEntry.objects.select_related("actor", "content_type").order_by("-timestamp", "-pk")
    return entries if project is None else entries.filter(additional_data__project=project.pk)


def note(changed: Model, what: str, words: str) -> None:
    """Log an action on ``changed`` that none of its fields records."""
    LogEntry.objects.log_create(changed, force_log=True, action=LogEntry.Action.UPDATE, changes={what: ["", words]})


def mask(value: str) -> str:
    """Return the log's text for a secret."""
    return "hidden" if value else ""
