"""Heartbeats of long-running processes: beat, workers and the background worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, Self

from django.db import models
from django.db.models.functions import Now

ALIVE_S: Final = 60.0
"""Maximum age of the last heartbeat of a running process."""
_RETENTION: Final = timedelta(days=1)


class Heartbeat(models.Model):
    """The last heartbeat of one process, by the clock of the database."""

    class Role(models.TextChoices):
        BEAT = "beat", "Beat"
        WORKER = "worker", "Worker"
        BACKGROUND = "background", "Background worker"
        ANALYSIS = "analysis", "Analysis worker"

    role = models.CharField(max_length=10, choices=Role)
    name = models.CharField(max_length=255)
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["role", "name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["role", "name"], name="one_heartbeat_per_process")]

    def __str__(self) -> str:
        return f"{self.role} {self.name}"

    @classmethod
    def record(cls, role: str, name: str) -> None:
        """Store a heartbeat now."""
        if not cls.objects.filter(role=role, name=name).update(seen_at=Now()):
            Heartbeat.objects.bulk_create([Heartbeat(role=role, name=name)], ignore_conflicts=True)

    @classmethod
    def forget_old(cls) -> None:
        """Remove old heartbeats, except the last one of each role."""
        newest = cls.objects.order_by("role", "-seen_at").distinct("role").values("pk")
        cls.objects.filter(seen_at__lt=Now() - _RETENTION).exclude(pk__in=newest).delete()


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The last heartbeat of any process of a role; None if there is none."""

    role: str
    seen_at: datetime | None = None
    age_s: float | None = None

    @property
    def is_alive(self) -> bool:
        return self.age_s is not None and self.age_s <= ALIVE_S

    @classmethod
    def of_roles(cls) -> Mapping[str, Self]:
        """Return the last heartbeat of beat, workers and background worker, by role."""
        rows = Heartbeat.objects.order_by().values("role").annotate(last=models.Max("seen_at"), now=Now())
        seen = {row["role"]: (row["last"], max((row["now"] - row["last"]).total_seconds(), 0.0)) for row in rows}
        needed = (Heartbeat.Role.BEAT, Heartbeat.Role.WORKER, Heartbeat.Role.BACKGROUND)
        return {role.value: cls(role.value, *seen.get(role.value, ())) for role in needed}
