"""Measurements: the values of catalogued metrics and figures of merit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from django.db import models
from django.db.models import Q

from analysis.trust_level import FLAGGED
from experiments.models.states import Kind, counted
from experiments.traffic import TRAFFIC

if TYPE_CHECKING:
    from experiments.models.trial import Trial


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    """Values by what they are for."""

    def counted(self, *kinds: Kind) -> MeasurementQuerySet:
        """The values of the trials that statistics are made of (of trials of ``kinds``, where they are not the measured ones)."""
        return self.filter(counted("trial__", *kinds))

    def in_statistics(self) -> MeasurementQuerySet:
        """What enters statistics: without the traffic of flagged captures, of which only the times count."""
        about_traffic = Q(metric__in=TRAFFIC) | Q(scope=Measurement.Scope.MPI)
        return self.exclude(Q(trial__trust__in=FLAGGED) & about_traffic)


class Measurement(models.Model):
    """The value of one metric for one trial, over all traffic or over MPI traffic only."""

    class Scope(models.TextChoices):
        ALL = "all", "All traffic"
        MPI = "mpi", "MPI traffic"

    trial = models.ForeignKey("experiments.Trial", on_delete=models.CASCADE, related_name="measurements")
    metric = models.CharField(max_length=80)
    scope = models.CharField(max_length=3, choices=Scope, default=Scope.ALL)
    value = models.FloatField()

    objects = MeasurementQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trial", "metric", "scope"], name="one_value_per_metric")
        ]
        indexes: ClassVar = [models.Index(fields=["metric", "scope", "value"], name="measurement_by_metric")]

    def __str__(self) -> str:
        return f"{self.metric} = {self.value:g}"

    @classmethod
    def rows(cls, trial: Trial, values: Mapping[str, Mapping[str, float]]) -> tuple[list[Measurement], dict[str, str]]:
        """Return the rows to store of ``values`` (by scope and metric) and, for those that are no finite number, why there is
        none: they are not results.
        """
        rows: list[Measurement] = []
        not_finite: dict[str, str] = {}
        for scope, by_metric in values.items():
            for metric, value in by_metric.items():
                if math.isfinite(value):
                    rows.append(cls(trial=trial, scope=scope, metric=metric, value=value))
                else:
                    not_finite.setdefault(metric, f"came out as {value}, which is not a number")
        return rows, not_finite
