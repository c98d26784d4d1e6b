"""Answers: question, head line, figures, causes, strength, recommended trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from analysis.conclusions.context import ASKS, QuestionKind
from analysis.conclusions.observations.scatter import Scatter
from analysis.statistics import Interval

Strength = Literal["firm", "moderate", "printed", "open"]
"""Conclusive (firm), tentative (moderate), as printed, or inconclusive (open).

Tentative: the scatter is known from elsewhere, a part is unknown, or a drift over the order of trials would explain the answer.
Printed: the answer follows from published numbers without a scatter of their own.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the answer, in its unit; ``where`` holds its parameters."""

    name: str
    value: float | str | None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    where: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def within(
        cls, name: str, value: float, unit: str, interval: Interval | None, where: Mapping[str, Any] | None = None
    ) -> Figure:
        """Return a number with the ends of its interval, if it has one."""
        low, high = (None, None) if interval is None else (interval.low, interval.high)
        return cls(name, value, unit, low, high, where or {})


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause in one sentence.

    ``explains`` is its part of the change, in ``unit`` (s or share).
    """

    statement: str
    explains: float | None = None
    unit: str = ""
    chart: str = ""
    part: str = ""
    """Name of the part of the change that it is, if it is one."""
    at: str = ""
    """The group of points that it is of ("512 molecules"), if the experiment has several."""


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One part of a time at two points, s, and its change.

    The change has a 95 % confidence interval; None without repetitions.
    """

    name: str
    before_s: float
    after_s: float
    change_s: float
    low_s: float | None = None
    high_s: float | None = None
    least_s: float | None = None
    """The one-sided 95 % limit: it grew by at least so much."""

    @property
    def has_grown(self) -> bool:
        """Return whether it grew by more than the repetitions scatter."""
        return self.change_s > 0 and (self.least_s is None or self.least_s > 0)


@dataclass(frozen=True, slots=True)
class Missing:
    """Recommended next trials: repetitions of these points and their duration."""

    statement: str
    points: tuple[tuple[Mapping[str, Any], int], ...] = ()
    seconds: float | None = None
    at: str = ""
    """The group of points that they are of, if the experiment has several."""

    @property
    def words(self) -> str:
        """The statement, after the group that it is of."""
        return f"{self.at}: {self.statement}" if self.at else self.statement


@dataclass(frozen=True, slots=True)
class Answer:
    """The head line of an experiment and its evidence."""

    question: QuestionKind
    sentence: str
    strength: Strength
    figures: tuple[Figure, ...] = ()
    causes: tuple[Cause, ...] = ()
    missing: Missing | None = None
    scatter: Scatter | None = None
    parts: tuple[ChangePart, ...] = ()
    """Division of the change that the causes explain: the first is the whole, named by its metric, the others add up to it."""
    drift: Figure | None = None
    """Change of the deciding metric from one trial to the next, as a share of it, where the order of the trials lowers the strength."""
    compared: tuple[str, str] = ("", "")
    """Names of the two points of the parts: ("ideal from 1 host", "2 hosts")."""
    is_without_drift: bool = False
    """The values of the deciding metric are those without the drift."""

    @property
    def asks(self) -> str:
        return ASKS[self.question]

    def figure(self, name: str, **where: Any) -> Figure | None:
        """Return the first figure of that name (and place)."""
        return next(
            (f for f in self.figures if f.name == name and all(f.where.get(k) == v for k, v in where.items())), None
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON."""
        return {"asks": self.asks, **asdict(self)}
