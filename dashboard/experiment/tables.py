"""Rows of tables and strips: configurations with one scale per column, squares of trials, metrics by catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis import numbers
from analysis.trust_level import FLAGGED
from dashboard.charts import Scale
from dashboard.labels import trial_role
from experiments.metrics import find
from experiments.models import Kind, State
from experiments.selectors import ConfigurationRow, TrialMark


@dataclass(frozen=True)
class Column:
    """One metric of the table: a scale for the whole column."""

    metric: str
    label: str
    unit: str
    scale: Scale

    @classmethod
    def of(cls, metric: str, rows: Sequence[ConfigurationRow]) -> Column:
        description = find(metric)
        medians = [value for row in rows if (value := row.median(metric)) is not None]
        scale = Scale.of(medians, description.unit)
        return cls(metric, description.label, scale.unit, scale)

    def cell(self, row: ConfigurationRow) -> tuple[str, str]:
        """(median, half the range with the same decimals; '' for a single trial)."""
        middle, ends = row.median(self.metric), row.range(self.metric)
        if middle is None or ends is None:
            return numbers.NOTHING, ""
        value = self.scale(middle)
        if len(row.values[self.metric]) < 2:
            return numbers.significant(value), ""
        return numbers.with_spread(value, self.scale(ends[1] - ends[0]) / 2)


def squares(trials: Sequence[TrialMark]) -> list[dict[str, str]]:
    """One square per trial for a strip: state (flagged when the capture is), and its name for people."""
    order = list(Kind)
    marks = []
    for mark in sorted(trials, key=lambda m: (order.index(Kind(m.kind)), m.repetition)):
        state = "flagged" if mark.state == State.FINISHED and mark.trust in FLAGGED else mark.state
        name = trial_role(mark.kind, mark.repetition)
        marks.append({"pk": str(mark.pk), "state": state, "name": name, "kind": mark.kind, "message": mark.message})
    return marks
