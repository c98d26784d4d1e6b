"""Changes of ticked histories: mark the last step as expected, or remove the mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from django.urls import reverse

from analysis.numbers import percent_change
from analysis.statistics.changes import Change
from dashboard.labels import parameters_sentence, telling, workload_title
from dashboard.pages.lists.chosen import NUMBER, ListChange, TickedList, TickedRow, view
from experiments.access import may_submit
from experiments.models import Cluster, ExpectedChange, Trial
from experiments.selectors.history import expect
from experiments.selectors.history_list import METRIC, Kept, named, standing


@dataclass(frozen=True, slots=True)
class _Stepped:
    """A history with the first trial after its last step, if it has one."""

    entry: Kept
    first: Trial | None

    @property
    def last(self) -> Change | None:
        return self.entry.history.changes[-1] if self.entry.history.changes else None

    @property
    def cluster(self) -> Cluster:
        return cast("Cluster", self.entry.configuration.experiment.cluster)  # a history is of a cluster

    def get_absolute_url(self) -> str:
        return reverse("history", args=[self.entry.configuration.hash, self.cluster.slug])


def _against(user: Any, history: _Stepped) -> str:
    if history.first is None:
        return "has no step"
    allowed = may_submit(user, history.first.experiment.project)
    return "" if allowed else "can be marked only by submitters and maintainers of that trial's project"


def _against_marking(user: Any, history: _Stepped) -> str:
    if history.last is not None and history.last.expected:
        return "is marked as expected already"
    return _against(user, history)


def _against_clearing(user: Any, history: _Stepped) -> str:
    if history.last is not None and not history.last.expected:
        return "is not marked as expected"
    return _against(user, history)


def _reason(texts: Mapping[str, str]) -> Mapping[str, Any]:
    if not (reason := texts["reason"].strip()):
        raise ValueError("Enter the reason why the change is expected.")
    return {"reason": reason}


EXPECTED: Final = ListChange(
    "Mark as expected",
    "Mark the last step of {count} as expected",
    "Expected steps are not flagged. The histories do not change.",
    "The last step of {count} is marked as expected.",
    _against_marking,
    lambda history, values: expect(history.first, METRIC, values["reason"], values["author"]),
    undo="histories-unexpected",
    read_fields=_reason,
    fields="lists/_reason.html",
)
UNEXPECTED: Final = ListChange(
    "Remove the mark",
    "Remove the mark of {count}",
    "Their last steps are flagged again.",
    "The last step of {count} is no longer marked as expected.",
    _against_clearing,
    lambda history, _: ExpectedChange.objects.filter(trial=history.first, metric=METRIC).delete()[0],
)


def _find(user: Any, tokens: Sequence[str]) -> list[TickedRow]:
    listed = {str(entry.configuration.pk): entry for entry in standing(user, named(user, map(int, tokens)))}
    entries = [listed[token] for token in tokens if token in listed]
    trials = Trial.objects.select_related("experiment__project").in_bulk(
        [entry.stepped_at for entry in entries if entry.stepped_at is not None]
    )
    return [_row(_Stepped(entry, trials.get(entry.stepped_at))) for entry in entries]


def _row(history: _Stepped) -> TickedRow:
    configuration = history.entry.configuration
    title = workload_title(configuration.experiment.workload)
    name = f"{title}, {parameters_sentence(configuration.parameters, telling(configuration.parameters))}"
    step = (
        "no step"
        if history.last is None
        else f"last step {percent_change(history.last.ratio)} from {history.last.label}"
    )
    state = "look" if history.entry.history.flagged else "expected"
    return TickedRow(f"c:{configuration.pk}", history, name, f"on {history.cluster.name}, {step}", state)


HISTORIES: Final = TickedList("history", "histories", "Histories", "c:", _find, NUMBER)


expected = view(HISTORIES, EXPECTED)
unexpected = view(HISTORIES, UNEXPECTED)
