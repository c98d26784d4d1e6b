"""Predictions of a program's time on a link, stored before it is measured."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse

from analysis.sensitivity import Link
from experiments.models.cluster import Cluster
from experiments.models.experiment import Experiment


class Prediction(models.Model):
    """One prediction of a trial's time on a link. It never changes."""

    class Predictor(models.TextChoices):
        FIT = "fit", "Fit"
        REPLAY = "replay", "Replay"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="predictions")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, null=True, related_name="+")
    version = models.PositiveIntegerField(help_text="Of the specification, when it was made.")
    predictor = models.CharField(max_length=10, choices=Predictor, default=Predictor.FIT)
    metric = models.CharField(max_length=80)
    at = models.CharField(max_length=200, blank=True, help_text="The combination of the other factors, in words.")
    hosts = models.PositiveIntegerField()
    delay_s = models.FloatField(help_text="One way.")
    rate_bps = models.FloatField()
    loss = models.FloatField(default=0.0, help_text="Share of packets.")
    value_s = models.FloatField()
    low_s = models.FloatField()
    high_s = models.FloatField()
    level = models.FloatField(help_text="Share of single trials that the interval is to hold.")
    extended = models.BooleanField(help_text="The link is outside of the measured range.")
    parameters: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text="The configuration whose trials check it; empty if there is an obstacle."
    )
    configuration_hash = models.CharField(max_length=64, blank=True, db_index=True)
    obstacle = models.CharField(max_length=300, blank=True, help_text="Why its link cannot be built, in a sentence.")
    evidence: models.JSONField[list[int], list[int]] = models.JSONField(
        help_text="Keys of the trials it was made from."
    )
    evidence_hash = models.CharField(max_length=64, help_text="SHA-256 of those trials, their links and times.")
    ended: models.JSONField[list[int], list[int]] = models.JSONField(
        default=list,
        blank=True,
        help_text="Keys of trials on its link that were over when it was made: none checks it.",
    )
    calibration: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of a replay: the trial that was replayed, the constants of its links, what was assumed.",
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(low_s__lte=models.F("value_s"), high_s__gte=models.F("value_s")),
                name="a_prediction_lies_in_its_interval",
            )
        ]

    def __str__(self) -> str:
        return f"prediction {self.pk}"

    def get_absolute_url(self) -> str:
        return reverse("prediction", args=[self.pk])

    def keep(self) -> Prediction:
        """Store it; return it, or the equal prediction of the same trials."""
        same = {
            name: getattr(self, name) for name in ("evidence_hash", "predictor", "at", "delay_s", "rate_bps", "loss")
        }
        before = Prediction.objects.filter(experiment=self.experiment, **same).first()
        if before is None:
            self.save(force_insert=True)
        return before or self

    @property
    def link(self) -> Link:
        return Link(self.delay_s, self.rate_bps, self.loss)

    def holds(self, seconds: float) -> bool:
        """Return whether a time is in the interval."""
        return self.low_s <= seconds <= self.high_s
