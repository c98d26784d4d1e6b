"""List of histories, newest first, with their steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from django.db.models import Count, F, FloatField, Max, QuerySet, Sum, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Extract

from analysis.statistics import History, HistoryPoint, detect_changes
from analysis.statistics.changes import SHORTEST
from experiments.access import visible_experiments
from experiments.models import Configuration, ExpectedChange, Experiment, HistoryPart
from experiments.selectors.history import MOST_TRIALS, with_value

METRIC: Final = "elapsed_s"
FEWEST: Final = 2 * SHORTEST
"""Minimum trials of a history in which a step can be found."""


SORTS: Final = ("newest", "trials", "hosts", "workload")
"""Sort keys of the list of histories; '-' reverses."""


_SAME: Final = {"hosts": "configuration__hosts", "workload": "experiment__workload"}
"""Sort keys equal in all configurations of a history, which share a hash."""
EndedTrial = tuple[float, int, float, str]
"""End (s), key, value and transport of a trial."""
_ROW: Final = ("hash", "cluster__slug", "count", "experiments", "newest")


class HistoryRow(NamedTuple):
    """A listed history; its newest configuration represents it."""

    hash: str
    cluster: str
    trials: int
    experiments: int
    newest: int


@dataclass(frozen=True, slots=True)
class ListedHistory:
    """A listed history with its steps."""

    configuration: Configuration
    trials: int
    experiments: int
    ended_at: datetime
    """End of its newest trial."""
    history: History
    stepped_at: int | None
    """First trial of the last step; None if there is no step."""
    excluded: int = 0
    """Trials of the listed experiments that other load slowed, with an undisturbed one of theirs."""

    def to_dict(self) -> dict[str, Any]:
        history, changes = self.history, self.history.changes
        return {
            "configuration": self.configuration.hash,
            "cluster": self.configuration.experiment.cluster.slug,  # type: ignore[union-attr]  # listed by its cluster
            "workload": self.configuration.experiment.workload,
            "parameters": self.configuration.parameters,
            "trials": self.trials,
            "experiments": self.experiments,
            "ended_at": self.ended_at.isoformat(),
            "median": None if history.baseline is None else history.baseline.summary.median,
            "steps": len(changes),
            "last_step": None if not changes else {"ratio": changes[-1].ratio, "expected": changes[-1].expected},
            "latest": history.latest,
            "flagged": history.flagged,
        }


def with_histories(user: Any) -> QuerySet[Experiment]:
    """Return the visible experiments that ran on a cluster."""
    return visible_experiments(user, Experiment.objects.filter(cluster__isnull=False))


def histories(
    experiments: QuerySet[Experiment], *, first: int = 0, most: int = 10, ordering: str = "-newest"
) -> tuple[list[HistoryRow], bool]:
    """Return ``most`` histories in an order of `SORTS`, and whether more follow."""
    name = ordering.removeprefix("-")
    rows = (
        HistoryPart.objects.filter(experiment__in=experiments, trials__gt=0)
        .values("hash", "cluster__slug")
        # a configuration occurs once per experiment
        .annotate(count=Sum("trials"), experiments=Count("pk"), newest=Max("configuration_id"))
        .filter(count__gte=FEWEST)
    )
    if name in _SAME:
        rows = rows.annotate(**{name: Max(_SAME[name])})
    name = "count" if name == "trials" else name
    # The newest configuration is unique: as a tie-breaker it keeps pages disjoint.
    order = F(name).desc() if ordering.startswith("-") else F(name).asc()
    page = rows.order_by(order, "-newest")[first : first + most + 1]
    listed = [HistoryRow(*row) for row in page.values_list(*_ROW)]
    return listed[:most], len(listed) > most


def named(user: Any, configurations: Iterable[int]) -> list[HistoryRow]:
    """Return the visible histories of these configurations, for `standing`."""
    rows = Configuration.objects.filter(pk__in=configurations, experiment__in=with_histories(user))
    return [HistoryRow(*row) for row in rows.values_list("hash", "experiment__cluster__slug", Value(0), Value(0), "pk")]


def histories_with_steps(user: Any, rows: Sequence[HistoryRow]) -> list[ListedHistory]:
    """Return listed histories with their steps of elapsed time, in three queries."""
    if not rows:
        return []
    parts = [
        with_value(user, row.hash, row.cluster, METRIC)
        .annotate(index=Value(index))
        .annotate(
            ended_s=Cast(Extract("ended_at", "epoch"), FloatField())
        )  # thousands of datetimes cost more than the query
        .annotate(transport=KeyTextTransform("transport", "environment__facts"))
        .values_list("index", "pk", F("value"), "ended_s", "transport")[:MOST_TRIALS]
        for index, row in enumerate(rows)
    ]
    trials: dict[int, list[EndedTrial]] = defaultdict(list)
    for index, pk, value, ended_s, transport in parts[0].union(*parts[1:], all=True) if len(parts) > 1 else parts[0]:
        if value is not None:
            trials[index].append((ended_s, pk, value, transport or ""))
    marks = ExpectedChange.objects.filter(metric=METRIC, trial__configuration__hash__in={row.hash for row in rows})
    expected = set(marks.values_list("trial_id", flat=True))
    newest = Configuration.objects.select_related("experiment__cluster").in_bulk([row.newest for row in rows])
    return [
        _listed_history(row, newest[row.newest], ended, expected)
        for index, row in enumerate(rows)
        if (ended := sorted(trials[index]))
    ]


def _listed_history(
    row: HistoryRow, newest: Configuration, trials: Sequence[EndedTrial], expected: set[int]
) -> ListedHistory:
    history = _history(trials, expected)
    stepped_at = trials[history.changes[-1].index][1] if history.changes else None
    count = row.trials if len(trials) == MOST_TRIALS else len(trials)  # stored counts include slowed trials
    excluded = max(0, row.trials - count)
    return ListedHistory(newest, count, row.experiments, _moment(trials[-1][0]), history, stepped_at, excluded)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _history(trials: Sequence[EndedTrial], expected: set[int]) -> History:
    points = [HistoryPoint(value, {}, f"trial {pk}", transport) for _, pk, value, transport in trials]
    return detect_changes(points, expected={n for n, (_, pk, *_) in enumerate(trials) if pk in expected})
