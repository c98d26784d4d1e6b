"""Drift over the order in which the trials ran: its size, and whether an answer survives it.

In the model log(value) = point + slope * place + scatter the slope is estimated within the points: if points ran one after another, the
order of their means is also the order of what was varied. An answer is conclusive only if it holds for every slope that the trials do
not exclude (analysis of covariance, Fisher 1932).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy import special  # stdtrit is t.ppf, stdtr is t.cdf, without their checks

from analysis.conclusions.answer import Answer, Figure, Missing, Strength
from analysis.conclusions.asked import Asked, Factor
from analysis.conclusions.observations.scatter import SMALLEST, pooled
from analysis.conclusions.observations.scatter_groups import Division, by_name
from analysis.conclusions.wording import MOST_REPETITIONS, percent
from analysis.numbers import plural, signed
from analysis.scaling import Point

FOUND: Final = 0.01
"""P-value below which the trials drift."""
_LEVEL: Final = 0.98
"""Of the interval of slopes that are not excluded."""
_BALANCED: Final = 0.5
"""Share of the order's variance within the points from which on the design is interleaved; sequential points have 1 / points**2."""
_BEST: Final = frozenset({"best size", "best step", "best", "as good"})
"""Figures that name a best point or one that does not differ from it: an answer with more of them claims less."""
_LAWS: Final = frozenset({"exponent", "growth", "messages in a row"})
_UNITS: Final = frozenset({"s", "B", "B/s", "bit/s"})
"""Of numbers that are the answer themselves."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of the logarithm of the deciding metric from one trial to the next."""

    slope: float
    error: float
    """Standard error of the slope."""
    freedom: float
    trials: int
    balance: float
    """Share of the variance of the places that is within the points."""
    centre: float
    """Mean place of all trials."""

    @property
    def is_found(self) -> bool:
        return 2 * float(special.stdtr(self.freedom, -abs(self.slope) / self.error)) < FOUND

    @property
    def is_balanced(self) -> bool:
        """Whether every point ran early and late, so that the drift can be separated from what was varied."""
        return self.balance >= _BALANCED

    @property
    def is_taken_out(self) -> bool:
        """Whether the answer compares the values without the drift."""
        return self.is_found and self.is_balanced

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the interval of the slope."""
        half = float(special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.slope - half, self.slope + half

    def without(self, asked: Asked, slope: float) -> Asked:
        """Return the experiment as it would be at the mean place, if the points' means drifted by ``slope``.

        Within each point the estimated drift is taken out, and what is left is widened by the degree of freedom that the estimate takes.
        """
        wider = float(np.sqrt((self.freedom + 1) / self.freedom))

        def move(point: Point) -> Point:
            logs, places = _logs(asked, point)
            offsets = places - places.mean()
            within = wider * (logs - logs.mean() - self.slope * offsets)
            values = np.exp(logs.mean() - slope * (places.mean() - self.centre) + within)
            return replace(point, values={**point.values, asked.deciding.metric: values.tolist()})

        return replace(asked, points=[move(p) if len(asked.values(p)) else p for p in asked.points])


def drift_of(asked: Asked) -> Drift | None:
    """Return the drift over the order of the trials; None without the order, or if too few trials were repeated to estimate it."""
    points = asked.measured()
    if asked.published or any(len(_places(asked, p)) != len(asked.values(p)) for p in points):
        return None
    rows = [_logs(asked, point) for point in points]
    freedom = sum(len(logs) - 1 for logs, _ in rows) - 1
    scales = _scales(asked, points)
    if freedom < 1 or scales is None:
        return None
    all_places = np.concatenate([places for _, places in rows])
    within = np.concatenate([places - places.mean() for _, places in rows])
    weighted = np.concatenate([(places - places.mean()) / s for (_, places), s in zip(rows, scales, strict=True)])
    deviations = np.concatenate([(logs - logs.mean()) / s for (logs, _), s in zip(rows, scales, strict=True)])
    squares = float(weighted @ weighted)
    slope = float(weighted @ deviations) / squares
    residual = float(np.sqrt(np.sum((deviations - slope * weighted) ** 2) / freedom))
    return Drift(
        slope=slope,
        error=max(residual, SMALLEST / max(scales)) / squares**0.5,
        freedom=float(freedom),
        trials=len(all_places),
        balance=float(within @ within / np.sum((all_places - all_places.mean()) ** 2)),
        centre=float(all_places.mean()),
    )


def _places(asked: Asked, point: Point) -> Sequence[int]:
    return point.order.get(asked.deciding.metric, ())


def _logs(asked: Asked, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of a point's values, and the places of their trials in the order."""
    return np.log(asked.values(point)), np.asarray(_places(asked, point), dtype=np.float64)


def _scales(asked: Asked, points: Sequence[Point]) -> list[float] | None:
    """The scatter of each point, pooled as the answer pools it; None if nothing was repeated."""
    groups = [asked.values(p) for p in points]
    everything = pooled(groups)
    if everything is None:
        return None
    levels = [[repr(p.parameters.get(factor.name)) for p in points] for factor in asked.factors]
    names = Division.found(groups, levels).of
    known = {name: pooled(own) or everything for name, own in by_name(groups, names).items()}
    return [known[name].sd for name in names]


def judged(asked: Asked, drift: Drift, compute: Callable[[Asked], Answer]) -> Answer:
    """Return the answer with what the order of the trials leaves of its strength.

    A drift of an interleaved design is taken out. In any other one it cannot be separated from what was varied: a conclusive answer that
    some slope would change is tentative, and if a drift was found, inconclusive.
    """
    if drift.is_taken_out:
        answer = compute(drift.without(asked, drift.slope))
        words = f"A drift of {per_trial(drift)} is taken out of the comparison."
        return _lowered(asked, answer, "moderate", f"{answer.sentence} {words}", drift)
    answer = compute(asked)
    if answer.strength == "firm" or drift.is_found:
        others = (compute(drift.without(asked, slope)) for slope in drift.interval(_LEVEL))
        survives = answer.strength == "open" or all(_holds(asked, answer, other) for other in others)
        if drift.is_found and not survives:
            return _lowered(asked, answer, "open", _confounded(asked, drift), drift)
        if drift.is_found or not survives:
            words = f"The trials drift by {per_trial(drift)}." if drift.is_found else _not_excluded(drift)
            return _lowered(asked, answer, "moderate", f"{answer.sentence} {words}", drift)
    return answer


def _holds(asked: Asked, answer: Answer, other: Answer) -> bool:
    """Whether everything that an answer claims is claimed by another one too.

    Factors have to be on their side of 1, however large they are. Numbers that are the answer, those of a law, have to be within their
    intervals.
    """
    network = asked.of_role("network")
    if other.strength != answer.strength or not _claims(answer, network) <= _claims(other, network):
        return False
    equal, places = _equal(answer), {repr(f.where) for f in answer.figures if f.name in _BEST}
    if any(place in places and (value, place) not in equal for value, place in _equal(other)):
        return False
    laws = {repr((f.name, f.where)): f for f in answer.figures if _is_of_law(f) and f.name != asked.deciding.label}
    pairs = [(f, laws[key]) for f in other.figures if (key := repr((f.name, f.where))) in laws]
    return len(pairs) == len(laws) and all(_is_within(f.value, law) for f, law in pairs)


def _is_of_law(figure: Figure) -> bool:
    return (figure.low is not None or figure.high is not None) and (figure.unit in _UNITS or figure.name in _LAWS)


def _is_within(value: float | str | None, law: Figure) -> bool:
    low, high = (-np.inf if law.low is None else law.low), (np.inf if law.high is None else law.high)
    return not isinstance(value, int | float) or low <= value <= high


def _equal(answer: Answer) -> set[tuple[object, str]]:
    """The points among which an answer sees no difference to the best of their place."""
    return {(f.value, repr(f.where)) for f in answer.figures if f.name in _BEST}


def _claims(answer: Answer, network: Sequence[Factor]) -> set[str]:
    """What an answer claims: words and sizes, which side of 1 factors are on, and that there is a number at all."""
    claims = set()
    for figure in answer.figures:
        if figure.name in _BEST or figure.name == "efficiency" or figure.unit.startswith("share"):
            continue
        what: object = figure.value
        if figure.name == "carried":
            what = (figure.low, figure.high)
        elif figure.unit == "1" and (figure.low is not None or figure.high is not None):
            what = _side(figure)
            if not what:
                continue
        elif figure.low is not None or figure.high is not None:
            what = "a number"
        claims.add(repr((figure.name, what, _place(figure, network))))
    return claims


def _place(figure: Figure, network: Sequence[Factor]) -> dict[str, Any]:
    """The place of a claim: which of several equal steps it is counted from, or on which of several equal links, is no part of it."""
    others = {f.name for f in network if figure.value != f.name and not figure.name.startswith(f"factor of {f.label}")}
    return {name: value for name, value in figure.where.items() if name not in others and name != "over"}


def _side(figure: Figure) -> int:
    """1 above 1, -1 below, 0 where the interval holds 1."""
    above = figure.low is not None and figure.low > 1
    return above - (figure.high is not None and figure.high < 1)


def _rounds(asked: Asked) -> Missing:
    """As many repetitions as there are, of all points in rounds: with them the order is no longer that of what was varied."""
    points = asked.measured()
    more = min(max(2, int(np.median([len(asked.values(p)) for p in points]))), MOST_REPETITIONS)
    seconds = None if asked.trial_s is None else len(points) * more * asked.trial_s
    return Missing(
        f"{more} more rounds of all {plural(len(points), 'configuration')}",
        tuple((p.parameters, more) for p in points),
        seconds,
    )


def _lowered(asked: Asked, answer: Answer, most: Strength, sentence: str, drift: Drift) -> Answer:
    weaker: tuple[Strength, ...] = ("open", "moderate", "firm")
    strength = min(answer.strength, most, key=weaker.index)
    low, high = (float(np.expm1(end)) for end in drift.interval())
    figure = Figure("drift per trial", float(np.expm1(drift.slope)), "share of the value", low, high)
    missing = answer.missing if drift.is_balanced else _rounds(asked)
    return replace(answer, sentence=sentence, strength=strength, missing=missing, drift=figure)


def per_trial(drift: Drift) -> str:
    """ "+1.92 % per trial (+1.71 to +2.13 %)": a drift of 0.2 % needs more decimals than other changes."""
    middle, low, high = (signed(100 * float(np.expm1(end)), 2) for end in (drift.slope, *drift.interval()))
    return f"{middle}\u202f% per trial ({low} to {high}\u202f%)"


def _confounded(asked: Asked, drift: Drift) -> str:
    names = " and ".join(factor.label for factor in asked.factors) or "configurations"
    return (
        f"The trials drift by {per_trial(drift)}, and {names} changed with their order: "
        "differences between them may be the drift alone."
    )


def _not_excluded(drift: Drift) -> str:
    most = max(abs(end) for end in drift.interval(_LEVEL))
    return f"A drift of up to {percent(float(np.expm1(most)))} per trial, which these trials do not exclude, would change this."
