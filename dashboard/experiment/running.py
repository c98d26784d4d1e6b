"""What runs: a trial in a worker's hands in one line, all of it in the header, and what has ended since somebody asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q

from dashboard.experiment.list_rows import chip_state, chip_words
from dashboard.labels import parameters_sentence, trial_role
from dashboard.states import chip_of
from experiments.access import visible_experiments, visible_trials
from experiments.models import ACTIVE, State, Trial
from experiments.selectors import Progress, progress_of, running_trials, waiting
from experiments.selectors.outlook import outlooks


def running_entry(trial: Trial) -> dict[str, Any]:
    """A running trial with its point of the sweep in words."""
    swept = list(trial.experiment.specification.get("sweep", {}))
    point = parameters_sentence(trial.configuration.parameters, swept or ["hosts"])
    return {"trial": trial, "point": point, "role": trial_role(trial.kind, trial.repetition)}


def header_of(user: Any) -> dict[str, Any]:
    """How many trials run and wait, how far their experiments are, and when the last of them will end. One query where none does."""
    counts = visible_trials(user, Trial.objects.unfinished()).aggregate(
        running=Count("pk", filter=Q(state__in=ACTIVE)), queued=Count("pk", filter=Q(state=State.QUEUED))
    )
    if not any(counts.values()):
        return {**counts, "seen": "0-0"}
    unfinished = Trial.objects.unfinished().values("experiment")
    experiments = list(visible_experiments(user).filter(pk__in=unfinished).only("pk", "hold"))
    progress = progress_of(experiments)
    outlook = outlooks(waiting(), list(running_trials()))
    left = [outlook[pk].left_s for pk in progress if pk in outlook]
    return {
        **counts,
        "total": sum(each.total for each in progress.values()),
        "over": sum(each.over for each in progress.values()),
        "left_s": None if not left or None in left else max(each for each in left if each is not None),
        "seen": f"{counts['running']}-{counts['queued']}",
    }


def ended_among(user: Any, slugs: Sequence[str]) -> list[dict[str, str]]:
    """Those that are over, and those that are no longer there for this reader: nobody waits for them any more."""
    found = {each.slug: each for each in visible_experiments(user).filter(slug__in=slugs)}
    progress = progress_of(list(found.values()))
    over = {slug: each for slug, each in found.items() if progress[each.pk].is_over}
    gone = [{"slug": slug, "words": ""} for slug in slugs if slug not in found]
    return gone + [{"slug": slug, "words": _words(progress[each.pk])} for slug, each in over.items()]


def _words(progress: Progress) -> str:
    return f"{chip_words(progress) or chip_of(chip_state(progress)).word}: {progress.finished} of {progress.total} trials complete"
