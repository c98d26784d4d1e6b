"""Clusters: where trials run, and the lease that keeps them exclusive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from django.db import models

from experiments.cluster_kinds import machines
from experiments.errors import FieldError, InvalidSpec

TESTBED_HOSTS: Final = 250
"""The last octet of the virtual hosts' addresses."""


class Cluster(models.Model):
    """A place that can run trials. ``settings`` are for its launcher, ``facts`` (clock, cores, price, watts) for its readers."""

    class Kind(models.TextChoices):
        TESTBED = "testbed", "Virtual test-bed"
        LOCAL = "local", "This machine"
        SSH = "ssh", "Hosts over ssh"
        SLURM = "slurm", "Slurm"

    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=10, choices=Kind)
    settings: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    facts: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(default=dict, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Replace what is stated about this cluster (experiments.cluster_kinds.facts); results are held against it from now on."""
        self.facts = dict(facts)
        self.save(update_fields=["facts"])

    @property
    def most_hosts(self) -> int | None:
        """How many hosts a trial here can have; None where only the scheduler knows."""
        if self.kind == self.Kind.SSH:
            return len(self.settings.get("hosts", []))
        return {self.Kind.LOCAL: 1, self.Kind.TESTBED: TESTBED_HOSTS}.get(self.Kind(self.kind))

    @property
    def hosts_to_suggest(self) -> int | None:
        """How many hosts a suggestion may ask for: ``most_hosts``; of Slurm what is stated and what it last told a trial here.

        A person may ask Slurm for more, since partitions grow. None: nothing is known.
        """
        if self.kind != self.Kind.SLURM:
            return self.most_hosts
        told = self._latest("partition", {})
        same = self.settings.get("partition") in (None, told.get("name"))
        known = [self.facts.get("hosts"), told.get("hosts") if same else None]
        return min((count for count in known if isinstance(count, int)), default=None)

    @property
    def cores_to_suggest(self) -> int | None:
        """How many ranks of one host a suggestion may ask for: its cores. None: nothing is known."""
        if self.kind in (self.Kind.TESTBED, self.Kind.LOCAL):
            return len(os.sched_getaffinity(0))
        cores = self._latest("cores", self.facts.get("cores_per_host"))
        return cores if isinstance(cores, int) else None

    def _latest(self, condition: str, default: Any) -> Any:
        """What the latest trial here that knows this condition was told."""
        trials = self.trials.filter(conditions__has_key=condition).order_by("-pk")
        found = trials.values_list("conditions", flat=True).first()
        return default if found is None else found[condition]

    def require_hosts(self, wanted: int, field: str) -> None:
        """Raise InvalidSpec at ``field`` when no trial here can have so many hosts."""
        if self.most_hosts is not None and wanted > self.most_hosts:
            has = f"{self.most_hosts} host{'' if self.most_hosts == 1 else 's'}"
            raise InvalidSpec([FieldError(field, f"the cluster {self.name} has {has}, not {wanted}")])

    def resources(self) -> list[str]:
        """Return what a trial here must have for itself: the whole machine for local kinds, else the listed hosts.

        Sorted: two trials that take some of the same wait for each other, never in a circle.
        """
        if self.kind in (self.Kind.TESTBED, self.Kind.LOCAL):
            return sorted(machines.this_machine())
        return sorted(machines.hosts(self.settings.get("hosts", []))) or [f"cluster:{self.slug}"]


class Lease(models.Model):
    """One resource held by one running trial. The unique key is the mutual exclusion."""

    resource = models.CharField(max_length=255, unique=True)
    trial = models.ForeignKey("experiments.Trial", on_delete=models.CASCADE, related_name="leases")
    acquired_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["resource"]

    def __str__(self) -> str:
        return f"{self.resource} held by trial {self.trial_id}"
