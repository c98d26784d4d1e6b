"""What happened that people want to hear of. A row is made in the transaction of what it tells, so that none is lost or doubled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class EventQuerySet(models.QuerySet["Event"]):
    def kept(self) -> EventQuerySet:
        """Those that are young enough to be told of."""
        days = settings.EVENT_DAYS
        return self.filter(at__gte=Now() - timedelta(days=days)) if days else self.all()

    def forgettable(self) -> EventQuerySet:
        """Those that are too old to be told of, and that nothing needs any more.

        First failures, steps and the last end of an experiment stay, unseen: each keeps the same from being told once more.
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

    def untold(self) -> EventQuerySet:
        """Those that notices have still to be made of, the oldest first."""
        return self.filter(told_at=None, kind__in=NOTICES).order_by("pk")


class Event(models.Model):
    """One thing that happened, once: ``key`` says which, and a second row of it is not stored.

    An event belongs to an experiment or to a report, and whoever may see that may know of it. ``told_at`` says when its notices
    were put into the outbox (`Delivery`).
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
        """Store that something happened, inside the transaction in which it does; what was noted before stays as it is."""
        cls.objects.bulk_create([cls(kind=kind, key=f"{kind}:{key}", **fields)], ignore_conflicts=True)


NOTICES: Final = (Event.Kind.ENDED, Event.Kind.FAILED, Event.Kind.STEPPED)
"""What e-mail and webhooks tell of."""
