"""Rows of tables: configurations, squares of trials, metrics by catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from analysis import numbers
from analysis.trust_level import FLAGGED
from dashboard.charts.parts import Scale
from dashboard.labels import trial_role
from dashboard.states import chip_of
from experiments.metrics import find
from experiments.models import Kind, State
from experiments.selectors import ConfigurationRow, TrialMark


@dataclass(frozen=True)
class Column:
    """One metric of the table, with one scale for the column."""

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
        """Return (median, 'lowest to highest'); the range is '' for a single trial.

        Without a counted value the second states if flagged captures have some.
        """
        middle, ends = row.median(self.metric), row.range(self.metric)
        if middle is None or ends is None:
            return numbers.NOTHING, "flagged" if row.flagged.get(self.metric) else ""
        several = len(row.values[self.metric]) > 1
        span = numbers.between(self.scale(ends[0]), self.scale(ends[1])) if several else ""
        return numbers.significant(self.scale(middle)), span


MOST_ROWS: Final = 50
"""Configurations on one page of the table."""
MOST_SQUARES: Final = 300
"""Squares on one page of the table; further ones are a number that links to the list."""
_PLAIN: Final = (State.FINISHED, State.QUEUED)


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of one page of the table, from ``first`` (counted from 1) on."""

    first: int
    last: int
    total: int

    @classmethod
    def of(cls, text: str, total: int) -> Slice:
        """Return the page that contains the requested row, else the first."""
        row = int(text) if text.isdecimal() and 0 < len(text) < 8 else 1
        index = row - 1 if 0 < row <= total else 0
        first = index - index % MOST_ROWS
        return cls(first + 1, min(total, first + MOST_ROWS), total)

    @property
    def is_part(self) -> bool:
        return self.total > MOST_ROWS

    @property
    def earlier(self) -> int:
        """Return the first row of the previous page; 0 without one."""
        return max(0, self.first - MOST_ROWS)

    @property
    def later(self) -> int:
        return self.last + 1 if self.last < self.total else 0


@dataclass(frozen=True, slots=True)
class TrialDots:
    """Trials of a configuration: squares, and the others in words ('19 finished')."""

    squares: list[dict[str, str]]
    others: str


def trial_dots(trials: Sequence[TrialMark], most: int) -> TrialDots:
    """Return squares for all trials, or beyond ``most`` for unusual ones only."""
    marks = squares(trials)
    if len(marks) <= most:
        return TrialDots(marks, "")
    notable = [mark for mark in marks if mark["state"] not in _PLAIN][:most]
    state = {mark["pk"] for mark in notable}
    counts = Counter(chip_of(mark["state"]).word.lower() for mark in marks if mark["pk"] not in state)
    return TrialDots(notable, ", ".join(f"{numbers.grouped(count)} {word}" for word, count in counts.items()))


def squares(trials: Sequence[TrialMark]) -> list[dict[str, str]]:
    """Return one square per trial: state (or flagged), and its accessible name."""
    order = list(Kind)
    marks = []
    for mark in sorted(trials, key=lambda m: (order.index(Kind(m.kind)), m.repetition, m.attempt)):
        state = "flagged" if mark.state == State.FINISHED and mark.trust in FLAGGED else mark.state
        name = trial_role(mark.kind, mark.repetition, mark.attempt)
        marks.append({"pk": str(mark.pk), "state": state, "name": name, "kind": mark.kind, "message": mark.message})
    return marks
