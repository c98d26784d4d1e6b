"""What happened that people want to hear of. A row is made in the transaction of what it tells, so that none is lost or doubled."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.conf import settings
from django.db import connection, models
from django.db.models.functions import Now

from experiments.models.states import FAILED, UNFINISHED, State

if TYPE_CHECKING:
    from experiments.models.experiment import Experiment
    from experiments.models.report import Report
    from experiments.models.trial import Trial


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

    @classmethod
    def note_failure(cls, trial: Trial) -> None:
        """A trial failed: the first one of its experiment is an event."""
        cls.note(cls.Kind.FAILED, str(trial.experiment_id), experiment_id=trial.experiment_id, trial=trial)

    @classmethod
    def note_end(cls, experiment: Experiment) -> None:
        """Note that an experiment has ended, where no trial of it is left, as the last act of a transaction that ended some.

        Trials that are run later make it end once more; one that ended with nothing but cancelled trials is no news.
        """
        # The last two trials may end in two transactions that do not see each other: the second waits here, and then sees the first.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 18))", [f"end:{experiment.pk}"])
        if experiment.trials.filter(state__in=UNFINISHED).exists():
            return
        newest = experiment.trials.filter(superseded=False, state__in=(State.FINISHED, *FAILED)).aggregate(
            pk=models.Max("pk")
        )
        if newest["pk"] is not None:
            cls.note(cls.Kind.ENDED, f"{experiment.pk}:{newest['pk']}", experiment=experiment)

    @classmethod
    def note_imported(cls, experiment: Experiment) -> None:
        """An experiment came in from elsewhere, or trials of it that were not here."""
        newest = experiment.trials.aggregate(pk=models.Max("pk"))["pk"]
        cls.note(cls.Kind.IMPORTED, f"{experiment.pk}:{newest}", experiment=experiment)

    @classmethod
    def note_report(cls, report: Report, version: int, author: Any) -> None:
        """A version of a report was saved."""
        data = {"version": version, "by": author.get_username() if author is not None else ""}
        cls.note(cls.Kind.REPORT, f"{report.pk}:{version}", report=report, data=data)


NOTICES: Final = (Event.Kind.ENDED, Event.Kind.FAILED, Event.Kind.STEPPED)
"""What e-mail and webhooks tell of."""
