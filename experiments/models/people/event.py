"""Events that users are notified of, stored in the transaction of the change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class EventQuerySet(models.QuerySet["Event"]):
    def within_retention(self) -> EventQuerySet:
        """Return the events within the retention time."""
        days = settings.EVENT_DAYS
        return self.filter(at__gte=Now() - timedelta(days=days)) if days else self.all()

    def removable_events(self) -> EventQuerySet:
        """Return old events that nothing needs.

        First failures, steps and the last end of an experiment stay: each prevents a second notification.
        """
        days = settings.EVENT_DAYS
        if not days:
            return self.none()
        kind, later = (
            Event.Kind,
            Event.objects.filter(experiment=models.OuterRef("experiment"), pk__gt=models.OuterRef("pk")),
        )
        ended_again = models.Q(kind=kind.ENDED, told_at__isnull=False) & models.Exists(later.filter(kind=kind.ENDED))
        old = self.filter(at__lt=Now() - timedelta(days=days))
        return old.filter(models.Q(kind__in=(kind.IMPORTED, kind.REPORT)) | ended_again)

    def without_notifications(self) -> EventQuerySet:
        """Return the events without notifications, oldest first."""
        return self.filter(told_at=None, kind__in=NOTICES).order_by("pk")


class Event(models.Model):
    """One event, unique by ``key``, of an experiment or a report.

    Users who see that see the event. ``told_at`` is when its notifications entered the outbox (`Delivery`).
    """

    class Kind(models.TextChoices):
        ENDED = "ended", "Experiment ended"
        FAILED = "failed", "First failure"
        STEPPED = "stepped", "Step in a history"
        IMPORTED = "imported", "Experiment imported"
        REPORT = "report", "Report changed"

    kind = models.CharField(max_length=8, choices=Kind)
    key = models.CharField(max_length=200, unique=True)
    experiment = models.ForeignKey(
        "experiments.Experiment", on_delete=models.CASCADE, null=True, blank=True, related_name="events"
    )
    trial = models.ForeignKey(
        "experiments.Trial", on_delete=models.CASCADE, null=True, blank=True, related_name="events"
    )
    report = models.ForeignKey(
        "experiments.Report", on_delete=models.CASCADE, null=True, blank=True, related_name="events"
    )
    data: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    at = models.DateTimeField(db_default=Now())
    told_at = models.DateTimeField(null=True, blank=True)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["id"],
                name="event_untold",
                condition=models.Q(told_at=None, kind__in=["ended", "failed", "stepped"]),
            )
        ]

    def __str__(self) -> str:
        return self.key

    @classmethod
    def note(cls, kind: str, key: str, **fields: Any) -> None:
        """Store an event in the current transaction, unless it is stored already."""
        cls.objects.bulk_create([cls(kind=kind, key=f"{kind}:{key}", **fields)], ignore_conflicts=True)


NOTICES: Final = (Event.Kind.ENDED, Event.Kind.FAILED, Event.Kind.STEPPED)
"""Events that mails and webhooks report."""
