"""Checks of clusters: trials can run on the hosts. One row per cluster."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from django.db import IntegrityError, models, transaction
from django.db.models.functions import Now

from experiments.common.storable import storable
from experiments.models.cluster import Cluster, Lease

LONGEST: Final = datetime.timedelta(minutes=15)
"""Time limit after which the worker of a running check is considered dead."""
OK, WARNING, PROBLEM, SKIPPED = "ok", "warning", "problem", "skipped"
"""States of a step."""
_CANCELLED: Final = "cancelled"
"""In place of the worker of a check that was kept when its successor was cancelled."""

Step = Mapping[str, Any]
"""``name``, ``state``, ``value`` (a few words), ``seen`` and ``remedy`` (sentences), ``commands`` (to copy)."""


class ClusterTest(models.Model):
    """The last check of a cluster."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="test")
    asked_at = models.DateTimeField()
    begun_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)  # empty: it waits
    trying = models.CharField(max_length=200, blank=True, help_text="What is being tried now.")
    steps: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(default=list, blank=True)
    of_settings = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"check of {self.cluster}"

    @classmethod
    def ask(cls, cluster: Cluster) -> bool:
        """Request a check; results of the last one stay until it begins.

        Return False if one is unfinished.
        """
        with transaction.atomic():
            Cluster.objects.select_for_update().get(pk=cluster.pk)
            last = cls.objects.filter(cluster=cluster).first()
            if last is not None and not last.is_over:
                return False
            cls.objects.update_or_create(cluster=cluster, defaults={"asked_at": Now(), "worker": ""})
        return True

    @classmethod
    def cancel(cls, cluster: Cluster) -> bool:
        """Cancel a waiting check, which leaves the last one; return False if none waits."""
        waiting = cls.objects.filter(cluster=cluster, worker="")
        with transaction.atomic():
            # Locked: `delete` collects rows first, and a worker may begin the check meanwhile.
            test = waiting.select_for_update().first()
            if test is None:
                return False
            if test.begun_at is None:
                test.delete()
            else:
                waiting.update(worker=_CANCELLED)
        return True

    @classmethod
    def waits_for(cls, resources: Collection[str]) -> bool:
        """Return whether a check waits for one of these: trials let it pass."""
        waiting = cls.objects.filter(worker="").select_related("cluster")
        return any(not set(resources).isdisjoint(test.cluster.resources()) for test in waiting)

    @classmethod
    def begin(cls, cluster: Cluster, worker: str) -> ClusterTest | None:
        """Claim the waiting check with its hosts, or return None if they are in use."""
        try:
            with transaction.atomic():
                fields: dict[str, Any] = {"begun_at": Now(), "ended_at": None, "worker": worker, "steps": []}
                mine = cls.objects.filter(cluster=cluster, worker="")
                if not mine.update(**fields, of_settings=digest_of(cluster)):
                    return None
                test = cls.objects.select_related("cluster").get(cluster=cluster)
                Lease.objects.bulk_create(Lease(resource=resource, test=test) for resource in cluster.resources())
        except IntegrityError:
            return None
        return test

    def tell(self, trying: str, steps: Sequence[Step]) -> None:
        """Store the progress."""
        self._mine().update(trying=trying[:200], steps=storable(list(steps)))

    def end(self, steps: Sequence[Step]) -> None:
        """Store the results and release the hosts, which a later check keeps."""
        with transaction.atomic():
            if self._mine().update(ended_at=Now(), trying="", steps=storable(list(steps))):
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
    def is_waiting(self) -> bool:
        """Return whether no worker has begun it; its fields are of the last check then."""
        return not self.worker

    @property
    def running_trial(self) -> Any:
        """Return a trial that has a host of the cluster, for which a waiting check waits."""
        leases = Lease.objects.filter(resource__in=self.cluster.resources(), trial__isnull=False)
        lease = leases.select_related("trial__experiment", "trial__configuration", "trial__cluster").first()
        return lease.trial if lease else None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None and not self.is_waiting

    @property
    def is_silent(self) -> bool:
        """Return whether its time limit has passed, by the database's clock."""
        return type(self).objects.filter(pk=self.pk, ended_at=None, begun_at__lt=Now() - LONGEST).exists()

    @property
    def is_outdated(self) -> bool:
        """Return whether the settings have changed since."""
        return bool(self.of_settings) and self.of_settings != digest_of(self.cluster)

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of steps by state, without zeros."""
        states = [step["state"] for step in self.steps]
        return {state: states.count(state) for state in (OK, WARNING, PROBLEM, SKIPPED) if state in states}

    @property
    def has_failed(self) -> bool:
        """Return whether a step has a problem, with which trials would fail.

        It holds until a check without one: changed settings and steps that ran after it do not show that it is fixed.
        """
        return any(step["state"] == PROBLEM for step in self.steps)

    @classmethod
    def failure_of(cls, cluster: Cluster) -> str:
        """Return a sentence on what failed in the last check of a cluster, or ""."""
        test = cls.objects.filter(cluster=cluster).first()
        failed = list(dict.fromkeys(step["name"] for step in test.steps if step["state"] == PROBLEM)) if test else []
        if test is None or not failed:
            return ""
        since = " Its settings have changed since." if test.is_outdated else ""
        return f"The last check of {cluster.name} failed: {', '.join(failed)}.{since}"

    def _mine(self) -> models.QuerySet[ClusterTest]:
        return type(self).objects.filter(pk=self.pk, worker=self.worker, ended_at=None)


def without_details(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return steps without the texts that name accounts and files of hosts."""
    return [{**step, "seen": "", "remedy": "", "commands": []} for step in steps]


def digest_of(cluster: Cluster) -> str:
    """Return the SHA-256 (hex) of the tested settings."""
    return hashlib.sha256(json.dumps([cluster.kind, cluster.settings], sort_keys=True).encode()).hexdigest()
