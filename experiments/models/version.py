"""Versions of experiments."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from experiments.models.experiment import Experiment
from experiments.models.ordered_json import OrderedJSONField


class ExperimentVersion(models.Model):
    """An immutable version of an experiment's specification."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    specification: models.JSONField[dict[str, Any], dict[str, Any]] = OrderedJSONField()
    hash = models.CharField(max_length=64)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["experiment", "number"], name="one_version_per_number")
        ]

    def __str__(self) -> str:
        return f"{self.experiment} version {self.number}"
