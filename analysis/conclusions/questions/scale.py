"""Where should I stop, and why? Best size with its range, the loss beyond, and the parts of the loss in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

from analysis.conclusions.answer import Answer, Figure, Missing
from analysis.conclusions.asked import Asked, Factor
from analysis.conclusions.observations.scatter import Claims
from analysis.conclusions.questions.causes import Explanation, explained
from analysis.conclusions.questions.strength import further, strength
from analysis.conclusions.wording import (
    change_words,
    factor_words,
    first_up,
    level,
    levels,
    lower_first,
    percent,
    percent_level,
    repetitions_words,
    value,
)
from analysis.scaling import Point
from analysis.statistics import Interval

_NEAR_IDEAL: Final = 0.9
"""An efficiency from here on needs no cause in the head line."""
_EQUAL: Final = 1.25
"""Sizes that could differ by more than this are not called equal."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The points along one factor, smallest level first, with what may be claimed of them. ``best`` is a position."""

    factor: Factor
    points: Sequence[Point]
    claims: Claims
    higher_is_better: bool

    @classmethod
    def of(cls, asked: Asked, factor: Factor, points: Sequence[Point]) -> Curve:
        ordered = sorted(points, key=lambda p: p.parameters[factor.name])
        return cls(factor, ordered, asked.claims(ordered), asked.deciding.higher_is_better)

    def level(self, i: int) -> float:
        return float(self.points[i].parameters[self.factor.name])

    def typical(self, i: int) -> float:
        """The median of a point's values, as charts and tables tell it."""
        return exp(self.claims.cells[i].middle)

    def worse(self, i: int, j: int) -> bool:
        """Whether point i is measurably worse than point j."""
        return self.claims.larger(j, i) if self.higher_is_better else self.claims.larger(i, j)

    def slowdown(self, i: int, j: int) -> tuple[float, Interval | None]:
        """How many times worse point i is than point j."""
        a, b = (j, i) if self.higher_is_better else (i, j)
        return exp(self.claims.change(a, b)), self.claims.ratio(a, b)

    @property
    def best(self) -> int:
        middles = [cell.middle for cell in self.claims.cells]
        return middles.index(max(middles) if self.higher_is_better else min(middles))

    @property
    def as_good(self) -> list[int]:
        """The positions that cannot be told from the best, itself included."""
        return [i for i in range(len(self.points)) if i == self.best or not self.worse(i, self.best)]

    @property
    def enough(self) -> int:
        """The position of the smallest size that is not measurably worse than the best."""
        return self.as_good[0]

    @property
    def most_gained(self) -> float | None:
        """How many times better than the smallest sufficient size another one may be, at most; None without intervals."""
        others = [interval for i in self.as_good if i != self.enough and (interval := self.slowdown(self.enough, i)[1])]
        return max((interval.high for interval in others if interval.high is not None), default=None)

    @property
    def is_equal(self) -> bool:
        """Whether no other size may be more than ``_EQUAL`` times better than the smallest sufficient one."""
        return self.claims.printed or (self.most_gained or 1.0) < _EQUAL


def answer_scale(asked: Asked) -> Answer:
    """The answer of a sweep over one measure of size with the problem kept."""
    factor = next(f for f in asked.factors if f.role == "scale")
    curve = Curve.of(asked, factor, asked.measured())
    if len(curve.points) < 2:
        from_one = level(factor, curve.points[0].parameters[factor.name]) if curve.points else ""
        return Answer("scale", f"Only {from_one} finished: a second size is needed to tell where to stop.", "open")
    last, as_good = len(curve.points) - 1, curve.as_good
    if len(as_good) == len(curve.points):
        return _no_difference(asked, curve)
    if last not in as_good:
        why = explained(asked, curve.points[curve.best], curve.points[-1])
        sentence = _stop(asked, curve, why)
    elif 0 in as_good:
        why, sentence = Explanation(), _between_worse(asked, curve)
    else:
        why = explained(asked, curve.points[0], curve.points[curve.enough], curve.level(0) / curve.level(curve.enough))
        sentence = _still_gains(asked, curve, why)
    missing = None if curve.is_equal else _settle(asked, curve)
    held = strength(asked, curve.claims)
    if held == "firm" and not curve.is_equal:
        held = "moderate"
    return Answer(
        "scale",
        sentence,
        held,
        _figures(asked, curve),
        why.all_causes,
        missing,
        curve.claims.scatter,
        why.parts,
    )


def _size(curve: Curve, i: int) -> str:
    return level(curve.factor, curve.points[i].parameters[curve.factor.name])


def _at(asked: Asked, curve: Curve) -> str:
    """The median of the smallest sufficient size with its interval; the level is stated here, once for the sentence."""
    return value(asked, curve.typical(curve.enough), curve.claims.value(curve.enough), with_level=True)


def _verdict(asked: Asked, curve: Curve, alone: str) -> str:
    """The first sentence and what is known of equal sizes; ``alone`` is the verdict if no other size is as good as the best."""
    others = [i for i in curve.as_good if i != curve.enough]
    if not others:
        return f"{alone}: {_at(asked, curve)}."
    better = "faster" if asked.deciding.unit == "s" and not curve.higher_is_better else "better"
    enough = first_up(_size(curve, curve.enough))
    are = f"{_are(curve, curve.enough)} enough" if curve.is_equal else "may be enough"
    names = levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in others])
    plural = "is" if len(others) == 1 and curve.level(others[0]) == 1 else "are"
    return f"{enough} {are}: {_at(asked, curve)}. {first_up(names)} {plural} not measurably {better}{_at_most(curve)}"


def _at_most(curve: Curve) -> str:
    most = curve.most_gained
    return "" if most is None else f" (at most {factor_words(most)})"


def _with(verdict: str, more: str) -> str:
    """The verdict with what else is known: within its second sentence if it has two."""
    return f"{verdict} {first_up(more)}." if verdict.endswith(".") else f"{verdict}; {more}."


def _stop(asked: Asked, curve: Curve, why: Explanation) -> str:
    """Beyond the best size it gets worse; launch overhead has a sentence of its own, if it grew most."""
    last = len(curve.points) - 1
    ratio, interval = curve.slowdown(last, curve.best)
    take = "takes" if curve.level(last) == 1 else "take"
    beyond = f"{take} {factor_words(ratio, interval)} as long"
    if curve.higher_is_better:
        beyond = f"{take.replace('take', 'reach').replace('reachs', 'reaches')} {percent(1 / ratio)} of it"
    against = "" if curve.enough == curve.best else f" as {_size(curve, curve.best)}"
    verb = "Stay at" if curve.best == 0 else "Stop at"
    head = _verdict(asked, curve, f"{verb} {_size(curve, curve.best)}")
    return _with(head, f"{_size(curve, last)} {beyond}{against}{why.because}") + why.launch_sentence


def _still_gains(asked: Asked, curve: Curve, why: Explanation) -> str:
    """The largest size is as good as any: either it still gains, or from some size on nothing is gained."""
    enough = curve.enough
    ratio, interval = curve.slowdown(0, enough)
    efficiency = ratio / (curve.level(enough) / curve.level(0))
    ideal = f"{percent(efficiency)} of the ideal" if efficiency <= 1 else "more than the ideal"
    much = "much" if curve.higher_is_better else "fast"
    because = why.because if efficiency < _NEAR_IDEAL else ""
    words = f"{factor_words(ratio, interval)} as {much} as {_size(curve, 0)}, {ideal}{because}"
    if len(curve.as_good) > 1:
        return _with(_verdict(asked, curve, ""), f"{_size(curve, enough)} {_are(curve, enough)} {words}")
    largest = f"{first_up(_size(curve, enough))} {_are(curve, enough)} best: {_at(asked, curve)}, {words}"
    return f"{largest}. Larger sizes may be better still: none was measured."


def _between_worse(asked: Asked, curve: Curve) -> str:
    """Neither end is measurably worse than the best size, a size between them is."""
    worst = max(
        (i for i in range(len(curve.points)) if i not in curve.as_good), key=lambda i: curve.slowdown(i, curve.best)[0]
    )
    ratio, interval = curve.slowdown(worst, curve.best)
    words = f"{_size(curve, worst)} {_are(curve, worst)} {factor_words(ratio, interval)} worse than {_size(curve, curve.best)}"
    return _with(_verdict(asked, curve, ""), words)


def _are(curve: Curve, i: int) -> str:
    return "is" if curve.level(i) == 1 else "are"


def _no_difference(asked: Asked, curve: Curve) -> Answer:
    """No size is measurably better: said with the largest difference that could hide, or as open where that is much."""
    factor, claims = curve.factor, curve.claims
    ends = [claims.ratio(i, curve.best) for i in range(len(curve.points)) if i != curve.best]
    known = [max(e.high, 1 / e.low) for e in ends if e is not None and e.low and e.high]
    first, last = (curve.points[i].parameters[factor.name] for i in (0, -1))
    between = f"{level(factor, first, counted=False)} and {level(factor, last)}"
    enough = f"{first_up(_size(curve, 0))} {_are(curve, 0)} enough"
    if asked.published:
        figures = _figures(asked, curve)
        sentence = f"{enough}: between {between} the printed values differ by less than 5 %."
        return Answer("scale", sentence, "printed", figures)
    if known and max(known) < _EQUAL:
        label = lower_first(asked.deciding.label)
        sentence = (
            f"{enough}: between {between} {label} changes by less than {percent(max(known) - 1)} "
            f"({percent_level(claims.level)} CI)."
        )
        figures = (*_figures(asked, curve), Figure("largest difference", max(known) - 1, "share of the best"))
        return Answer("scale", sentence, strength(asked, claims), figures, (), None, claims.scatter)
    best = level(factor, curve.points[curve.best].parameters[factor.name])
    size = claims.resolution()
    seen = f": trials scatter so much that only changes above {change_words(size)} would show" if size else ""
    looks = f"{best} {'looks' if curve.level(curve.best) == 1 else 'look'} best so far"
    sentence = f"Too few repetitions to tell where to stop{seen}; {looks}, {value(asked, curve.typical(curve.best))}."
    missing = _settle(asked, curve)
    return Answer("scale", sentence, "open", _figures(asked, curve, is_open=True), (), missing, claims.scatter)


def _settle(asked: Asked, curve: Curve) -> Missing | None:
    """Repetitions that would tell the best size from its nearest rival, where one is left."""
    rivals = [i for i in curve.as_good if i != curve.best]
    if not rivals or asked.published:
        return None
    rival = min(rivals, key=lambda i: abs(curve.claims.change(i, curve.best)))
    ratio, _ = curve.slowdown(rival, curve.best)
    now = min(curve.claims.cells[i].n for i in (rival, curve.best))
    more = further(curve.claims, ratio, now)
    pair = sorted((rival, curve.best))
    names = levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in pair])
    seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
    points = tuple((curve.points[i].parameters, more) for i in pair)
    return Missing(repetitions_words(more, names), points, seconds)


def _figures(asked: Asked, curve: Curve, *, is_open: bool = False) -> tuple[Figure, ...]:
    factor, best = curve.factor, curve.best
    figures = [] if is_open else [Figure("enough", curve.level(curve.enough), factor.plural)]
    figures.append(Figure("best size", curve.level(best), factor.plural))
    figures += [Figure("as good", curve.level(i), factor.plural) for i in curve.as_good if i != best]
    for i, point in enumerate(curve.points):
        interval = curve.claims.value(i)
        ends = (None, None) if interval is None else (interval.low, interval.high)
        where = {factor.name: point.parameters[factor.name]}
        figures.append(Figure(asked.deciding.label, curve.typical(i), asked.deciding.unit, *ends, where))
        ratio, about = curve.slowdown(i, best)
        if i != best:
            low, high = (None, None) if about is None else (about.low, about.high)
            figures.append(Figure("times the best", ratio, "1", low, high, where))
    return tuple(figures)
