"""Measurements: values of metrics and figures of merit, as rows and as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from django.db.models import Q

from analysis.trust_level import FLAGGED
from experiments.models.states import Kind, counted, excluded_as_disturbed
from experiments.traffic import TRAFFIC


class MeasurementQuerySet(models.QuerySet["Measurement"]):
    def counted(self, *kinds: Kind) -> MeasurementQuerySet:
        """Return the values of counted trials (of ``kinds``, if given)."""
        return self.filter(counted("trial__", *kinds) & ~excluded_as_disturbed("trial__"))

    def in_statistics(self) -> MeasurementQuerySet:
        """Leave out the traffic of flagged captures, of which only the times count."""
        about_traffic = Q(metric__in=TRAFFIC) | Q(scope=Measurement.Scope.MPI)
        return self.exclude(Q(trial__trust__in=FLAGGED) & about_traffic)


class Measurement(models.Model):
    """The value of one metric of one trial, over all traffic or MPI traffic."""

    class Scope(models.TextChoices):
        ALL = "all", "All traffic"
        MPI = "mpi", "MPI traffic"

    # No index: the unique key below begins with this column.
    trial = models.ForeignKey(
        "experiments.Trial", on_delete=models.CASCADE, related_name="measurements", db_index=False
    )
    metric = models.CharField(max_length=80)
    scope = models.CharField(max_length=3, choices=Scope, default=Scope.ALL)
    value = models.FloatField()

    objects = MeasurementQuerySet.as_manager()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trial", "metric", "scope"], name="one_value_per_metric")
        ]
        indexes: ClassVar = [
            # Lists sorted by a metric, and conditions on it, read the trials from the index alone.
            models.Index(fields=["metric", "scope", "value"], include=["trial"], name="measurement_by_metric")
        ]

    def __str__(self) -> str:
        return f"{self.metric} = {self.value:g}"

    @classmethod
    def rows(cls, trial_id: int, values: Mapping[str, Mapping[str, float]]) -> tuple[list[Measurement], dict[str, str]]:
        """Return unsaved rows of ``values``, and the reasons of non-finite ones."""
        rows: list[Measurement] = []
        not_finite: dict[str, str] = {}
        for scope, by_metric in values.items():
            for metric, value in by_metric.items():
                if math.isfinite(value):
                    rows.append(cls(trial_id=trial_id, scope=scope, metric=metric, value=value))
                else:
                    not_finite.setdefault(metric, f"was {value}, which is not a number")
        return rows, not_finite


class ValueNames(models.Model):
    """The names of array elements: scope, blank, metric."""

    # Not unique: two trials may store the same names concurrently, and neither waits.
    digest = models.CharField(max_length=32, db_index=True)
    names = ArrayField(models.TextField())

    def __str__(self) -> str:
        return f"{len(self.names)} names"


class TrialValues(models.Model):
    """All measurements of a trial in one row, for bulk reads.

    Triggers (migration 0026) write it with every change of measurements; Python never does.
    """

    trial = models.OneToOneField(
        "experiments.Trial", on_delete=models.CASCADE, related_name="as_array", primary_key=True
    )
    names = models.ForeignKey(ValueNames, on_delete=models.PROTECT, related_name="+", db_index=False)
    numbers = ArrayField(models.FloatField(), help_text="In the order of the names.")

    class Meta:
        verbose_name_plural = "trial values"

    def __str__(self) -> str:
        return f"{len(self.numbers)} values of trial {self.trial_id}"

    @classmethod
    def wrong(cls) -> list[int]:
        """Return the trials whose array differs from their measurements."""
        with connection.cursor() as cursor:
            cursor.execute(_WRONG)
            return [number for (number,) in cursor.fetchall()]

    @classmethod
    def gather(cls, trials: Sequence[int]) -> None:
        """Write the arrays of these trials again, after changes without triggers."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT experiments_gather_values(%s)", [list(trials)])


_WRONG: Final = """
    SELECT coalesce(stored.trial_id, expected.trial_id)
    FROM (
        SELECT v.trial_id, n.names, v.numbers
        FROM experiments_trialvalues v JOIN experiments_valuenames n ON n.id = v.names_id
    ) AS stored
    FULL JOIN (
        SELECT trial_id, array_agg(scope || ' ' || metric ORDER BY metric COLLATE "C", scope COLLATE "C") AS names,
            array_agg(value ORDER BY metric COLLATE "C", scope COLLATE "C") AS numbers
        FROM experiments_measurement GROUP BY trial_id
    ) AS expected ON expected.trial_id = stored.trial_id
    WHERE (stored.names, stored.numbers) IS DISTINCT FROM (expected.names, expected.numbers)
    ORDER BY 1
"""
