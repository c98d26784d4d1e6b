"""Saved views of lists, and expected changes of histories."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.urls import reverse


class SavedView(models.Model):
    """A named query of the explorer or a list; all signed-in users see shared ones."""

    class Page(models.TextChoices):
        """The page of a view; the value is its URL name."""

        EXPLORE = "explore"
        EXPERIMENTS = "experiments"
        TRIALS = "trials"
        HISTORIES = "histories"

    page = models.CharField(max_length=20, choices=Page, default=Page.EXPLORE)
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=4000, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "page", "name"], name="one_view_per_name")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("view", args=[self.pk])


class ExpectedChange(models.Model):
    """An expected step of a history: ``trial`` is the first of the new level."""

    trial = models.ForeignKey("experiments.Trial", on_delete=models.CASCADE, related_name="expected_changes")
    metric = models.CharField(max_length=80)
    reason = models.CharField(max_length=300)
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["trial", "metric"], name="one_expected_change_per_metric")
        ]

    def __str__(self) -> str:
        return f"{self.metric} from trial {self.trial_id}: {self.reason}"
