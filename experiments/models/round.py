"""Rounds of an experiment with a goal: their trials and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from experiments.common.storable import storable
from experiments.models.experiment import Experiment


class Round(models.Model):
    """One round; at most the last one of an experiment is open, without an outcome."""

    class Outcome(models.TextChoices):
        CONTINUE = "continue", "Next round"
        ANSWERED = "answered", "Answered"
        PRECISE = "precise", "Precise enough"
        AT_MOST = "at_most", "All repetitions made"
        UNDECIDED = "undecided", "Not decidable"
        BUDGET = "budget", "Budget spent"
        REFUSED = "refused", "Quota used up"
        NO_RESULT = "no_result", "No results"
        STOPPED = "stopped", "Stopped"
        ERROR = "error", "Decision failed"

    class Phase(models.TextChoices):
        SEARCH = "search", "Search"
        CONFIRM = "confirm", "Confirmation"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    version = models.PositiveIntegerField(help_text="Version of the specification when it started.")
    seed = models.PositiveIntegerField(help_text="Seed of the order of its trials.")
    repetitions: models.JSONField[dict[str, int], dict[str, int]] = models.JSONField(
        default=dict, blank=True, help_text="Queued repetitions by configuration hash; of round 1 those of the design."
    )
    queued = models.PositiveIntegerField(help_text="Trials that it queued.")
    phase = models.CharField(
        max_length=7, choices=Phase, blank=True, help_text="Part of a search for the best settings; otherwise empty."
    )
    why = models.TextField(blank=True, help_text="Why it was started.")
    started_at = models.DateTimeField(db_default=Now())
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True, help_text="Empty while its trials run.")
    reason = models.TextField(blank=True)
    numbers: models.JSONField[list[dict[str, Any]], list[dict[str, Any]]] = models.JSONField(
        default=list, blank=True, help_text="Estimates of the decision with their intervals, in base units."
    )
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["experiment", "number"], name="one_round_per_number"),
            models.UniqueConstraint(
                fields=["experiment"], condition=models.Q(outcome=""), name="one_open_round_per_experiment"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.experiment} round {self.number}"

    @classmethod
    def open(
        cls,
        experiment: Experiment,
        *,
        why: str,
        queued: int,
        repetitions: Mapping[str, int] | None = None,
        phase: str = "",
    ) -> Any:
        """Store the next round of an experiment, in the caller's transaction."""
        last = experiment.rounds.aggregate(last=models.Max("number"))["last"] or 0
        return experiment.rounds.create(
            number=last + 1,
            version=experiment.version,
            seed=round_seed(experiment, last + 1),
            repetitions=dict(repetitions or {}),
            queued=queued,
            phase=phase,
            why=why,
        )

    def decide(self, outcome: Outcome, reason: str, numbers: Sequence[Mapping[str, Any]] = ()) -> bool:
        """Record the decision; return whether this call did, once for each round."""
        changed = (
            type(self)
            .objects.filter(pk=self.pk, outcome="")
            .update(outcome=outcome, reason=storable(reason), numbers=storable(list(numbers)), decided_at=Now())
        )
        return bool(changed)


def round_seed(experiment: Experiment, number: int) -> int:
    """Return the seed of the order of a round's trials."""
    return (int(experiment.specification.get("seed", 2007)) + number - 1) % 2**31
