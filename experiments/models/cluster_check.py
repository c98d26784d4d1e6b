"""Checks of clusters: trials can run on the hosts. One row per cluster."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import IntegrityError, models, transaction
from django.db.models.functions import Now

from experiments.common.storable import storable
from experiments.models.cluster import Cluster, Lease

LONGEST: Final = datetime.timedelta(minutes=15)
"""Time limit after which a test's worker is considered dead."""
OK, WARNING, PROBLEM, SKIPPED = "ok", "warning", "problem", "skipped"
"""States of a step."""

Step = Mapping[str, Any]
"""``name``, ``state``, ``value`` (a few words), ``seen`` and ``remedy`` (sentences), ``commands`` (to copy)."""


class ClusterTest(models.Model):
    """The last check of a cluster."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="test")
    asked_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    trying = models.CharField(max_length=200, blank=True, help_text="What is being tried now.")
    steps: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list, blank=True)
    of_settings = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"check of {self.cluster}"

    @classmethod
    def ask(cls, cluster: Cluster) -> bool:
        """Request a test in place of the last one; return False if one is unfinished."""
        with transaction.atomic():
            Cluster.objects.select_for_update().get(pk=cluster.pk)
            last = cls.objects.filter(cluster=cluster).first()
            if last is not None and not last.is_over:
                return False
            cls.objects.filter(cluster=cluster).delete()
            cls.objects.create(cluster=cluster, asked_at=Now())
        return True

    @classmethod
    def begin(cls, cluster: Cluster, worker: str) -> ClusterTest | None:
        """Claim the requested test, without hosts yet (``take_hosts``), or return None."""
        mine = cls.objects.filter(cluster=cluster, begun_at=None, ended_at=None)
        fields = {"begun_at": Now(), "worker": worker, "of_settings": digest_of(cluster)}
        return cls.objects.select_related("cluster").get(cluster=cluster) if mine.update(**fields) else None

    def take_hosts(self) -> bool:
        """Take the hosts as a trial does; return False if they are in use."""
        try:
            with transaction.atomic():
                Lease.objects.bulk_create(Lease(resource=resource, test=self) for resource in self.cluster.resources())
        except IntegrityError:
            return False
        return True

    def tell(self, trying: str, steps: Sequence[Step]) -> None:
        """Store the progress."""
        self._mine().update(trying=trying[:200], steps=storable(list(steps)))

    def end(self, steps: Sequence[Step]) -> None:
        """Store the results and release the hosts."""
        with transaction.atomic():
            self._mine().update(ended_at=Now(), trying="", steps=storable(list(steps)))
            self.leases.all().delete()
        self.refresh_from_db()

    def give_up(self, reason: str) -> None:
        """End a test whose worker is gone."""
        step = {
            "name": "Check",
            "state": PROBLEM,
            "value": "Not ended",
            "seen": reason,
            "remedy": "Check the cluster again.",
        }
        self.end([*self.steps, {**step, "commands": []}])

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def is_silent(self) -> bool:
        """Return whether its time limit has passed, by the database's clock."""
        return type(self).objects.filter(pk=self.pk, ended_at=None, asked_at__lt=Now() - LONGEST).exists()

    @property
    def is_outdated(self) -> bool:
        """Return whether the settings have changed since."""
        return bool(self.of_settings) and self.of_settings != digest_of(self.cluster)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of steps by state, without zeros."""
        states = [step["state"] for step in self.steps]
        return {state: states.count(state) for state in (OK, WARNING, PROBLEM, SKIPPED) if state in states}

    def _mine(self) -> models.QuerySet[ClusterTest]:
        return type(self).objects.filter(pk=self.pk, worker=self.worker, ended_at=None)


def digest_of(cluster: Cluster) -> str:
    """Return the SHA-256 (hex) of the tested settings."""
    return hashlib.sha256(json.dumps([cluster.kind, cluster.settings], sort_keys=True).encode()).hexdigest()
