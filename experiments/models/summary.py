"""Summaries: what the repository knows about each metric of each configuration, kept ready for the explorer.

A trigger of PostgreSQL (migration 0003) writes them when a transaction that ends, supersedes or removes a trial commits, so that
no path of the program can forget them. They are never written from Python.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from experiments.models.configuration import Configuration
from experiments.models.measurement import Measurement


class Summary(models.Model):
    """The measured trials (``states.measured``) of a configuration in one metric, without the traffic of flagged captures."""

    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="summaries")
    metric = models.CharField(max_length=80)
    scope = models.CharField(max_length=3, choices=Measurement.Scope)
    n = models.PositiveIntegerField()
    median = models.FloatField()
    minimum = models.FloatField()
    maximum = models.FloatField()
    samples = ArrayField(models.FloatField(), help_text="Every trial's value, by repetition.")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["configuration", "metric", "scope"], name="one_summary_per_metric")
        ]
        indexes: ClassVar = [
            # The explorer reads one metric of every configuration from the index alone. Samples may be longer than an index holds.
            models.Index(
                fields=["metric", "scope", "configuration"],
                include=["n", "median", "minimum", "maximum"],
                name="summary_by_metric",
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} of configuration {self.configuration_id}: {self.median:g}"
