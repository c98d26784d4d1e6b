"""Which experiments tell what a program needs from its network, and the models that their trials bear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, Q, QuerySet
from django.db.models.fields.json import KeyTextTransform

from analysis.answers import Answer, Asked, answer
from analysis.answers.needs import DELAY, FEWEST_LEVELS, RATE, Fitted, fits_of
from experiments.access import visible_experiments
from experiments.models import Experiment
from experiments.selectors.question import asked_of
from experiments.selectors.study import study_of

_LEVELS: Final = (("delays", DELAY), ("rates", RATE))


@dataclass(frozen=True, slots=True)
class NetworkStudy:
    """What an experiment over links came to."""

    asked: Asked
    answer: Answer
    fits: Sequence[Fitted]
    """Empty while too few trials have ended."""


def network_studies(user: Any) -> QuerySet[Experiment]:
    """Return the experiments that ``user`` may see with enough delays or rates in their design for slopes and bends, newest first."""
    levels = {
        name: Count(
            KeyTextTransform(parameter, "configurations__parameters"),
            filter=Q(configurations__in_design=True),
            distinct=True,
        )
        for name, parameter in _LEVELS
    }
    counted = Experiment.objects.filter(published=False).annotate(**levels)
    enough = counted.filter(Q(delays__gte=FEWEST_LEVELS) | Q(rates__gte=FEWEST_LEVELS)).order_by()
    # By key, because rows with their specifications cannot be grouped.
    return visible_experiments(user).filter(pk__in=enough.values("pk")).order_by("-created_at", "-pk")


def network_study_of(experiment: Experiment) -> NetworkStudy:
    """Return answer and models of the trials as they are; some hundredths of a second, without what the trials sent."""
    asked = asked_of(experiment, study_of(experiment, with_traffic=False))
    return NetworkStudy(asked, answer(asked), fits_of(asked))
