"""Notifications: users' choices, webhooks of projects, and the outbox."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta
from typing import Any, ClassVar, Final, Self

from django.conf import settings
from django.db import models, transaction
from django.db.models.functions import Now

from experiments.common.storable import storable
from experiments.models.people.event import NOTICES, Event
from experiments.models.people.project import OfProject, Project

MOST_WEBHOOKS: Final = 10
"""Per project."""
MOST_ATTEMPTS: Final = 5
_FIRST_WAIT: Final = timedelta(seconds=30)
_LEASE: Final = timedelta(minutes=2)
"""Longer than any attempt: then the worker that claimed the message is considered dead."""


class NoticeChoices(models.Model):
    """A user's choice of mails, and the last event that the user has seen."""

    class Of(models.TextChoices):
        OWN = "own", "only my experiments"
        ALL = "all", "all experiments of my projects"
        SOME = "some", "all experiments of these projects"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notice_choices")
    ended = models.BooleanField("An experiment ends", default=False)
    failed = models.BooleanField("The first trial of an experiment fails", default=False)
    stepped = models.BooleanField("A history has a step", default=False)
    of = models.CharField("Of", max_length=4, choices=Of, default=Of.OWN)
    projects = models.ManyToManyField(Project, blank=True, related_name="+")
    seen = models.PositiveBigIntegerField(default=0)
    seen_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"notices to {self.user}"

    @classmethod
    def of_user(cls, user: Any) -> Self:
        """Return the choices of ``user``; an unsaved row by default."""
        return cls.objects.filter(user=user.pk).first() or cls(user=user)

    @classmethod
    def mark_seen(cls, user: Any, event: int) -> None:
        """Record the last event (key) that ``user`` has seen; never an earlier one."""
        NoticeChoices.objects.bulk_create(
            [NoticeChoices(user=user)], ignore_conflicts=True
        )  # without an entry in the change log
        cls.objects.filter(user=user, seen__lte=event).update(seen=event, seen_at=Now())

    def wants(self, event: Event) -> bool:
        """Return whether the user chose mails for this event."""
        experiment = event.experiment
        if experiment is None or event.kind not in NOTICES or not getattr(self, event.kind):
            return False
        if self.of == self.Of.OWN:
            return bool(experiment.owner_id == self.user_id)
        return self.of == self.Of.ALL or self.projects.filter(pk=experiment.project_id).exists()


class Webhook(OfProject, models.Model):
    """A URL that receives the events of a project, set up by its maintainers."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    nonce = models.CharField(max_length=64, editable=False, default=secrets.token_urlsafe)
    ended = models.BooleanField("An experiment ends", default=True)
    failed = models.BooleanField("The first trial of an experiment fails", default=True)
    stepped = models.BooleanField("A history has a step", default=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return self.url

    @property
    def secret(self) -> str:
        """Return the signing key, derived from the installation's secret and not stored."""
        made = hmac.new(settings.SECRET_KEY.encode(), f"webhook:{self.nonce}".encode(), hashlib.sha256)
        return f"rwh_{made.hexdigest()}"

    def wants(self, event: Event) -> bool:
        """Return whether it receives this event; not if the experiment left the project."""
        experiment = event.experiment
        is_chosen = event.kind in NOTICES and bool(getattr(self, event.kind))
        return is_chosen and experiment is not None and experiment.project_id == self.project_id


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def due(self) -> DeliveryQuerySet:
        return self.filter(state=Delivery.State.WAITING, due_at__lte=Now())


class Delivery(models.Model):
    """A message of an event to a user or a webhook; without an event it is a test.

    A conditional UPDATE claims it and sets its next due time: a dead worker loses nothing.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Queued"
        SENT = "sent", "Sent"
        FAILED = "failed", "Failed"
        DROPPED = "dropped", "Not sent"

    event = models.ForeignKey(Event, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries"
    )
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(db_default=Now())
    result = models.CharField(max_length=300, blank=True, help_text="Result of the last attempt.")
    created_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["event", "user"], name="one_mail_per_event"),
            models.UniqueConstraint(fields=["event", "webhook"], name="one_message_per_event"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="delivery_due", condition=models.Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"

    @classmethod
    def claim_next(cls) -> Delivery | None:
        """Claim the message that is due longest, or return None."""
        with transaction.atomic():
            row = cls.objects.due().select_for_update(skip_locked=True, of=("self",)).order_by("due_at", "pk").first()
            if row is None:
                return None
            row.attempts += 1
            cls.objects.filter(pk=row.pk).update(attempts=row.attempts, due_at=Now() + _LEASE)
        return row

    @classmethod
    def begin_test(cls, **to: Any) -> Delivery:
        """Return a test message to a ``user`` or ``webhook``, claimed by the caller."""
        row = cls.objects.create(attempts=1, due_at=Now() + _LEASE, **to)
        row.refresh_from_db()
        return row

    def sent(self, result: str) -> None:
        """Record that the receiver accepted it."""
        self._end(self.State.SENT, result)

    def drop(self, why: str) -> None:
        """Record that it cannot or must not be sent."""
        self._end(self.State.DROPPED, why)

    def put_off(self, why: str) -> None:
        """Record a failed attempt; retry after a wait that grows fourfold, or fail.

        Other messages to its webhook wait too: a receiver that does not answer must not delay those of others.
        """
        Delivery.objects.due().filter(webhook__isnull=False, webhook=self.webhook_id).update(due_at=Now() + _FIRST_WAIT)
        if self.attempts >= MOST_ATTEMPTS or self.event_id is None:
            self._end(self.State.FAILED, why)
        else:
            self._mine().update(due_at=Now() + _FIRST_WAIT * 4 ** (self.attempts - 1), result=storable(why)[:300])

    def _end(self, state: State, result: str) -> None:
        self._mine().update(state=state, result=storable(result)[:300], ended_at=Now())
        self.refresh_from_db()

    def _mine(self) -> DeliveryQuerySet:
        return Delivery.objects.filter(pk=self.pk, state=self.State.WAITING, attempts=self.attempts)
