"""Summaries: what the repository knows about each metric of each configuration, kept ready for the explorer.

A trigger of PostgreSQL (migration 0003) writes them when a transaction that ends, supersedes or removes a trial commits, so that
no path of the program can forget them; others (migration 0029) write how large designs are. They are never written from Python.
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
    """The measured trials (``states.measured``) of a configuration in one metric.

    Disturbed trials beside a clean one are excluded, and so is the traffic of flagged captures.
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
            # The explorer reads one metric of every configuration from the index alone. Samples may be longer than an index holds.
            models.Index(
                fields=["metric", "scope", "configuration"],
                include=["n", "median", "minimum", "maximum"],
                name="summary_by_metric",
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} of configuration {self.configuration_id}: {self.median:g}"


class HistoryPart(models.Model):
    """What a configuration adds to the history of its hash on a cluster: how many trials, and when the newest of them ended.

    The newest trials of a history lie in the parts with the newest ends, however long it is. Written with the summaries; trials whose
    end nobody knows (imported ones) have no place in a history.
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
    """How many configurations the current version of an experiment asks for, so that the explorer need not count them all."""

    experiment = models.OneToOneField(
        Experiment, on_delete=models.CASCADE, related_name="design_size", primary_key=True
    )
    configurations = models.PositiveIntegerField(help_text="Of the current version.")

    def __str__(self) -> str:
        return f"{self.configurations} configurations of experiment {self.experiment_id}"
