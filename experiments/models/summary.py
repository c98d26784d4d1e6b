"""Summaries of each metric of each configuration, for the explorer.

Triggers (migrations 0003 and 0029) write them when a transaction commits; Python never does.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models

from experiments.models.cluster import Cluster
from experiments.models.configuration import Configuration
from experiments.models.experiment import Experiment
from experiments.models.measurement import Measurement


class Summary(models.Model):
    """The counted trials of a configuration in one metric.

    Excluded: disturbed trials with a clean one, and traffic of flagged captures.
    """

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
            # The explorer reads one metric from the index alone, without samples: they may exceed the size of an index row.
            models.Index(
                fields=["metric", "scope", "configuration"],
                include=["n", "median", "minimum", "maximum"],
                name="summary_by_metric",
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} of configuration {self.configuration_id}: {self.median:g}"


class HistoryPart(models.Model):
    """A configuration's part of the history of its hash on a cluster.

    The newest trials are in the parts with the newest ends. Trials without an end time (imported ones) are in no history.
    """

    configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="+", db_index=False)
    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_index=False)
    hash = models.CharField(max_length=64)
    trials = models.PositiveIntegerField(help_text="Those with an elapsed time.")
    newest_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["configuration", "cluster"], name="one_part_per_history")
        ]
        indexes: ClassVar = [models.Index(fields=["hash", "cluster", "-newest_at"], name="parts_newest_first")]

    def __str__(self) -> str:
        return f"{self.trials} of {self.hash[:8]} on cluster {self.cluster_id}"


class DesignSize(models.Model):
    """The number of configurations in the design of an experiment."""

    experiment = models.OneToOneField(
        Experiment, on_delete=models.CASCADE, related_name="design_size", primary_key=True
    )
    configurations = models.PositiveIntegerField(help_text="Of the current version.")

    def __str__(self) -> str:
        return f"{self.configurations} configurations of experiment {self.experiment_id}"
