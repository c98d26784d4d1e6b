"""Running and recently ended trials, for the header and for experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final, Self

from django.db.models import Count, Max, Q

from dashboard.labels import parameters_sentence, trial_role
from dashboard.panels.experiment.list_rows import chip_state, chip_words
from dashboard.states import chip_of
from experiments.access import visible_experiments, visible_trials
from experiments.models import ACTIVE, State, Trial
from experiments.models.states import NOT_REQUESTED
from experiments.selectors import Progress, progress_of, running_trials, waiting
from experiments.selectors.queue_forecast import outlooks

KEPT_S: Final = 5.0
"""Most age (s) of estimates and totals; running and queued trials are always current."""


def running_entry(trial: Trial) -> dict[str, Any]:
    """A running trial with its point of the sweep."""
    swept = list(trial.experiment.specification.get("sweep", {}))
    point = parameters_sentence(trial.configuration.parameters, swept or ["hosts"])
    return {"trial": trial, "point": point, "role": trial_role(trial.kind, trial.repetition, trial.attempt)}


@dataclass(frozen=True, slots=True)
class _Ahead:
    """Trials of all unfinished experiments, and seconds until the last one ends."""

    at: float
    """Time on the monotonic clock."""
    trials: Mapping[int, int]
    left_s: Mapping[int, float | None]

    @classmethod
    def read(cls) -> Self:
        """Read it from the database with eight queries."""
        unfinished = Trial.objects.unfinished().values("experiment")
        rows = Trial.objects.current().filter(experiment__in=unfinished).values_list("experiment_id")
        rows = rows.exclude(state=State.CANCELLED, message=NOT_REQUESTED)
        trials = dict(rows.annotate(count=Count("pk")).order_by())
        outlook = outlooks(waiting(), list(running_trials()))
        return cls(monotonic(), trials, {pk: forecast.left_s for pk, forecast in outlook.items()})

    def latest_s(self, experiments: Iterable[int]) -> float | None:
        """Return seconds until the last of these ends; None if any has no estimate."""
        remaining = [self.left_s[pk] for pk in experiments if pk in self.left_s]
        estimates = [estimate for estimate in remaining if estimate is not None]
        return (
            max(0.0, max(estimates) - (monotonic() - self.at))
            if estimates and len(estimates) == len(remaining)
            else None
        )


_ahead: list[_Ahead] = []
"""Latest snapshot, shared by all users of this process."""


def _ahead_of(experiments: Set[int]) -> _Ahead:
    if not _ahead or monotonic() - _ahead[0].at > KEPT_S or not experiments <= _ahead[0].trials.keys():
        _ahead[:] = [_Ahead.read()]
    return _ahead[0]


def header_of(user: Any) -> dict[str, Any]:
    """Return counts of running and queued trials and the estimated end.

    One query; the snapshot for all users is read every KEPT_S.
    """
    unfinished = visible_trials(user, Trial.objects.unfinished()).order_by().values("experiment_id")
    rows = unfinished.annotate(
        running=Count("pk", filter=Q(state__in=ACTIVE)),
        queued=Count("pk", filter=Q(state=State.QUEUED)),
        current=Count("pk", filter=Q(superseded=False, configuration__in_design=True)),
        repeated=Count("pk", filter=Q(superseded=False, configuration__in_design=True, attempt__gt=1)),
        newest=Max("pk"),
    )
    current = {row["experiment_id"]: row["current"] for row in rows}
    running, queued = (sum(row[name] for row in rows) for name in ("running", "queued"))
    newest = max((row["newest"] for row in rows), default=0)  # a trial may end while another is queued
    header: dict[str, Any] = {"running": running, "queued": queued, "seen": f"{running}-{queued}"}
    if not current:
        return header
    header["seen"] += f"-{newest}"
    ahead = _ahead_of(current.keys())
    total = sum(ahead.trials.get(pk, 0) for pk in current)
    over = max(0, total - sum(current.values()))
    left_s = ahead.latest_s(current)
    if queued and left_s is not None and left_s < 1:  # later than expected: trials that wait are not finishing
        left_s = None
    repeated = sum(row["repeated"] for row in rows)
    return {
        **header,
        "total": total,
        "over": over,
        "repeated": repeated,
        "experiments": len(current),
        "left_s": left_s,
    }


def ended_among(user: Any, slugs: Sequence[str]) -> list[dict[str, str]]:
    """Return ended experiments, and those that the user can no longer see."""
    visible = {experiment.slug: experiment for experiment in visible_experiments(user).filter(slug__in=slugs)}
    progress = progress_of(list(visible.values()))
    over = {slug: experiment for slug, experiment in visible.items() if progress[experiment.pk].is_over}
    invisible = [{"slug": slug, "words": ""} for slug in slugs if slug not in visible]
    return invisible + [{"slug": slug, "words": _words(progress[experiment.pk])} for slug, experiment in over.items()]


def _words(progress: Progress) -> str:
    return f"{chip_words(progress) or chip_of(chip_state(progress)).word}: {progress.finished} of {progress.total} trials finished"
