"""Configurations: the points of a sweep."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from experiments.models.experiment import Experiment


class Configuration(models.Model):
    """One point of a sweep, in base units; ``hash`` is equal across experiments."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="configurations")
    hash = models.CharField(max_length=64, db_index=True)
    parameters: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    hosts = models.PositiveIntegerField()
    ranks = models.PositiveIntegerField()
    position = models.PositiveIntegerField(default=0)
    in_design = models.BooleanField(
        default=True, help_text="In the design of the current version; others are kept but stale."
    )

    class Meta:
        ordering: ClassVar = ["position", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["experiment", "hash"], name="one_configuration_per_hash")
        ]

    def __str__(self) -> str:
        return f"{self.experiment_id}: {self.hosts} hosts, {self.ranks} ranks"
