"""Background tasks of users: exports, changes of many trials, replays."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models, transaction
from django.db.models.functions import Now
from django.urls import reverse

from experiments.errors import TooManyTasks
from experiments.models.experiment import Experiment
from experiments.models.people.project import Project

MAX_UNFINISHED: Final = 2
"""Maximum unfinished tasks of one kind per user."""
MAX_ENDED: Final = 10
"""Ended tasks of one kind that a user keeps, with files."""
WORKER_TIMEOUT: Final = datetime.timedelta(minutes=2)
"""Time without progress after which a task's worker is considered dead."""
_MOST_ATTEMPTS: Final = 3


class BackgroundTask(models.Model):
    """A task with its arguments, progress and result."""

    class Kind(models.TextChoices):
        EXPORT = "export", "Export"
        CHANGE = "change", "Change"
        REPLAY = "replay", "Replay"

    class State(models.TextChoices):
        WAITING = "waiting", "Queued"
        RUNNING = "running", "Running"
        DONE = "done", "Finished"
        FAILED = "failed", "Failed"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="background_tasks")
    kind = models.CharField(max_length=8, choices=Kind)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    title = models.CharField(max_length=200)
    arguments: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict)
    within = models.ForeignKey(
        Project,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Of the token that requested it.",
    )
    experiment = models.ForeignKey(
        Experiment, on_delete=models.CASCADE, null=True, blank=True, related_name="background_tasks"
    )
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    message = models.TextField(blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField(db_default=Now())
    begun_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True, help_text="Last heartbeat of its process.")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-pk"]
        indexes: ClassVar = [
            models.Index(
                fields=["asked_at"], condition=models.Q(state__in=("waiting", "running")), name="background_unfinished"
            )
        ]

    def __str__(self) -> str:
        return self.title

    def get_absolute_url(self) -> str:
        return reverse("task", args=[self.pk])

    @classmethod
    def ask(
        cls,
        owner: Any,
        kind: Kind,
        arguments: Mapping[str, Any],
        *,
        title: str,
        total: int = 0,
        within: int | None = None,
        experiment: Experiment | None = None,
    ) -> BackgroundTask:
        """Return a new task, or the unfinished one with the same arguments.

        ``within`` is the key of the only project that the requester may read. Raise TooManyTasks.
        """
        same = {"kind": kind, "arguments": dict(arguments), "within_id": within, "experiment": experiment}
        with transaction.atomic():
            # The lock serialises concurrent requests of the user.
            get_user_model().objects.select_for_update(no_key=True).get(pk=owner.pk)
            unfinished = cls.objects.filter(owner=owner.pk, kind=kind, ended_at=None)
            if (task := unfinished.filter(**same).first()) is not None:
                return task
            if unfinished.count() >= MAX_UNFINISHED:
                raise TooManyTasks(
                    f"You already have {MAX_UNFINISHED} unfinished tasks of this kind. Try again when one has ended."
                )
            for old in (
                cls.objects.filter(owner=owner.pk, kind=kind).exclude(ended_at=None).order_by("-pk")[MAX_ENDED - 1 :]
            ):
                old.forget()
            return cls.objects.create(owner_id=owner.pk, title=title[:200], total=total, **same)

    @classmethod
    def claim_next(cls) -> BackgroundTask | None:
        """Claim the oldest waiting task, one per experiment at a time; None if none waits."""
        busy = cls.objects.filter(state=cls.State.RUNNING).exclude(experiment=None).values("experiment")
        for waiting in cls.objects.filter(state=cls.State.WAITING).exclude(experiment__in=busy).order_by("asked_at"):
            mine = cls.objects.filter(pk=waiting.pk, state=cls.State.WAITING)
            attempt = waiting.attempt + 1
            if mine.update(state=cls.State.RUNNING, begun_at=Now(), told_at=Now(), attempt=attempt, done=0):
                return cls.objects.select_related("owner", "experiment").get(pk=waiting.pk)
        return None

    @classmethod
    def requeue_silent(cls) -> None:
        """Queue tasks of dead workers again; fail those that several workers did not end."""
        silent = cls.objects.filter(state=cls.State.RUNNING, told_at__lt=Now() - WORKER_TIMEOUT)
        given_up = f"Failed after {_MOST_ATTEMPTS} attempts: the worker process died each time."
        silent.filter(attempt__gte=_MOST_ATTEMPTS).update(state=cls.State.FAILED, ended_at=Now(), message=given_up)
        silent.update(state=cls.State.WAITING)

    def tell(self, done: int) -> bool:
        """Store the progress; return whether the task still belongs to this worker."""
        return bool(self._mine().update(done=done, told_at=Now()))

    def end(self, message: str = "", **arguments: Any) -> bool:
        """Mark the task done; return False if it no longer belongs to this worker."""
        stored = {**self.arguments, **arguments}
        done = self._mine().update(state=self.State.DONE, ended_at=Now(), message=message, arguments=stored)
        return bool(done)

    def fail(self, message: str) -> None:
        """Mark the task failed."""
        self._mine().update(state=self.State.FAILED, ended_at=Now(), message=message)

    def forget(self) -> None:
        """Delete the task and its file; its worker then stops."""
        file = self.file  # its name contains the key, which is gone afterwards
        self.delete()
        transaction.on_commit(lambda: file.unlink(missing_ok=True))

    @property
    def file(self) -> Path:
        """Return the path of a finished export."""
        return Path(settings.VAR) / "exports" / f"{self.pk}.{self.arguments.get('form', 'none')}"

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def has_file(self) -> bool:
        return self.kind == self.Kind.EXPORT and self.state == self.State.DONE

    def _mine(self) -> models.QuerySet[BackgroundTask]:
        return type(self).objects.filter(pk=self.pk, state=self.State.RUNNING, attempt=self.attempt)
