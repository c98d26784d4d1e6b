"""Deleted experiments in the trash, with their rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

import zstandard
from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from experiments.models.people.project import Project


class Deleted(models.Model):
    """A deleted experiment; ``trials`` are the keys of its trials, whose files remain."""

    uid = models.UUIDField(unique=True)
    slug = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=120)
    workload = models.CharField(max_length=80)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    trials: models.JSONField[list[int], list[int]] = models.JSONField(default=list)
    bytes = models.BigIntegerField(default=0, help_text="Of the files of its trials.")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        verbose_name_plural = "deleted experiments"

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of_cluster(cls, cluster_id: int) -> list[Deleted]:
        """Return the deleted experiments that used a cluster: they need it to be restored."""
        rows, using = DeletedRows.objects.filter(columns__contains="cluster_id"), set[int]()
        for piece in rows.iterator(chunk_size=1):  # each has megabytes
            if piece.experiment_id not in using and cluster_id in piece.clusters():
                using.add(piece.experiment_id)
        return list(cls.objects.filter(pk__in=using))

    @property
    def until(self) -> datetime | None:
        """Return when it is removed permanently; None if never."""
        return self.at + timedelta(days=settings.DELETED_DAYS) if settings.DELETED_DAYS else None


class DeletedRows(models.Model):
    """A compressed piece of `COPY ... TO STDOUT` of one table, in key order."""

    experiment = models.ForeignKey(Deleted, on_delete=models.CASCADE, related_name="rows")
    table = models.CharField(max_length=63)
    columns: models.JSONField[list[str], list[str]] = models.JSONField()
    data = models.BinaryField()

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"rows of {self.table}"

    def clusters(self) -> set[int]:
        """Return the keys of the clusters that its rows name."""
        if "cluster_id" not in self.columns:
            return set()
        column = self.columns.index("cluster_id")
        rows = zstandard.decompress(self.data).splitlines()
        return {int(value) for row in rows if (value := row.split(b"\t")[column]) != rb"\N"}
