"""Where should I stop, and why? Best size with its range, the loss beyond, and the parts of the loss in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from analysis.answers.answer import Answer, Cause, Figure, Missing, Strength
from analysis.answers.asked import Asked, Factor
from analysis.answers.scatter import Claims, repetitions_needed
from analysis.answers.wording import factor_words, level, levels, value
from analysis.findings.wording import percent, quantity
from analysis.scaling import Point
from analysis.statistics import Interval

_EFFICIENT: float = 0.8


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
        groups = [asked.values(p) for p in ordered]
        claims = Claims(groups, printed=asked.published, prior=asked.prior)
        return cls(factor, ordered, claims, asked.deciding.higher_is_better)

    def level(self, i: int) -> float:
        return float(self.points[i].parameters[self.factor.name])

    def typical(self, i: int) -> float:
        """The geometric mean of a point's values."""
        return exp(self.claims.cells[i].mean)

    def worse(self, i: int, j: int) -> bool:
        """Whether point i is measurably worse than point j."""
        return self.claims.larger(j, i) if self.higher_is_better else self.claims.larger(i, j)

    def slowdown(self, i: int, j: int) -> tuple[float, Interval | None]:
        """How many times worse point i is than point j."""
        a, b = (j, i) if self.higher_is_better else (i, j)
        return exp(self.claims.cells[a].mean - self.claims.cells[b].mean), self.claims.ratio(a, b)

    @property
    def best(self) -> int:
        means = [cell.mean for cell in self.claims.cells]
        return means.index(max(means) if self.higher_is_better else min(means))

    @property
    def as_good(self) -> list[int]:
        """The positions that cannot be told from the best, itself included."""
        return [i for i in range(len(self.points)) if i == self.best or not self.worse(i, self.best)]


def answer_scale(asked: Asked) -> Answer:
    """The answer of a sweep over one measure of size with the problem kept."""
    factor = next(f for f in asked.factors if f.role == "scale")
    curve = Curve.of(asked, factor, asked.measured())
    if len(curve.points) < 2:
        from_one = level(factor, curve.points[0].parameters[factor.name]) if curve.points else ""
        return Answer("scale", f"Only {from_one} finished: a second size is needed to tell where to stop.", "open")
    strength: Strength = _strength(asked, curve.claims)
    best, last, as_good = curve.best, len(curve.points) - 1, curve.as_good
    if len(as_good) == len(curve.points):
        return _no_difference(asked, curve)
    figures = _figures(asked, curve)
    causes = _loss(asked, curve) if last not in as_good else _gain_lost(asked, curve)
    range_words = _range_words(curve)
    at = value(asked, curve.typical(best), curve.claims.value(best))
    size = level(factor, curve.points[best].parameters[factor.name])
    if last in as_good and 0 not in as_good:
        ratio, interval = curve.slowdown(0, best)
        efficiency = ratio / (curve.level(best) / curve.level(0))
        limit = "the largest measured" if best == last else range_words
        smallest = level(factor, curve.points[0].parameters[factor.name])
        head = (
            f"{_first_up(size)} {_are(curve, best)} best, {limit}: {at}, {factor_words(ratio, interval)} as fast as "
            f"{smallest}, {percent(efficiency)} of the ideal. Where to stop lies beyond."
        )
        return Answer("scale", head, strength, figures, causes, None, curve.claims.scatter)
    ratio, interval = curve.slowdown(last, best)
    end = level(factor, curve.points[last].parameters[factor.name])
    verb = "Stay at" if best == 0 else "Stop at"
    because = f", {causes[0].statement}" if causes else ""
    beside = f" ({range_words})" if len(as_good) > 1 else ""
    head = f"{verb} {size}{beside}: {at}. {_first_up(end)} take {factor_words(ratio, interval)} as long{because}."
    if curve.higher_is_better:
        head = f"{verb} {size}{beside}: {at}. {_first_up(end)} reach {factor_words(1 / ratio)} of it{because}."
    return Answer("scale", head, strength, figures, causes, _settle(asked, curve), curve.claims.scatter)


def _are(curve: Curve, i: int) -> str:
    return "is" if curve.level(i) == 1 else "are"


def _first_up(words: str) -> str:
    return words[:1].upper() + words[1:]


def _strength(asked: Asked, claims: Claims) -> Strength:
    if asked.published:
        return "printed"
    if claims.scatter is None:
        return "open"
    return "firm" if claims.scatter.source == "repetitions" else "moderate"


def _range_words(curve: Curve) -> str:
    others = [curve.points[i].parameters[curve.factor.name] for i in curve.as_good if i != curve.best]
    return f"{levels(curve.factor, others)} cannot be told from it" if others else ""


def _no_difference(asked: Asked, curve: Curve) -> Answer:
    """No size is measurably better: said with the largest difference that could hide, or as open where that is much."""
    factor, claims = curve.factor, curve.claims
    ends = [claims.ratio(i, curve.best) for i in range(len(curve.points)) if i != curve.best]
    known = [max(e.high, 1 / e.low) for e in ends if e is not None and e.low and e.high]
    first, last = (curve.points[i].parameters[factor.name] for i in (0, -1))
    between = f"{level(factor, first, counted=False)} and {level(factor, last)}"
    if asked.published:
        return Answer("scale", f"Between {between} the printed values differ by less than 5 %.", "printed")
    if known and max(known) < 1.25:
        label = asked.deciding.label.lower()
        sentence = (
            f"The size makes no difference: between {between} {label} changes by less than {percent(max(known) - 1)}."
        )
        return Answer("scale", sentence, _strength(asked, claims), _figures(asked, curve), (), None, claims.scatter)
    best = level(factor, curve.points[curve.best].parameters[factor.name])
    size = claims.resolution()
    seen = f": trials scatter so much that only changes above {percent(size - 1)} would show" if size else ""
    looks = f"{best} {'looks' if curve.level(curve.best) == 1 else 'look'} best so far"
    sentence = f"Too few repetitions to tell where to stop{seen}; {looks}, {value(asked, curve.typical(curve.best))}."
    missing = _settle(asked, curve)
    return Answer("scale", sentence, "open", _figures(asked, curve), (), missing, claims.scatter)


def _settle(asked: Asked, curve: Curve) -> Missing | None:
    """Repetitions that would tell the best size from its nearest rival, where one is left."""
    rivals = [i for i in curve.as_good if i != curve.best]
    if not rivals or asked.published:
        return None
    rival = min(rivals, key=lambda i: abs(curve.claims.cells[i].mean - curve.claims.cells[curve.best].mean))
    ratio, _ = curve.slowdown(rival, curve.best)
    sd = curve.claims.scatter.sd if curve.claims.scatter else 0.05
    now = min(curve.claims.cells[i].n for i in (rival, curve.best))
    more = repetitions_needed(max(ratio, 1.02), sd, points=len(curve.points), now=now) - now
    more = min(more, 20)
    pair = sorted((rival, curve.best))
    names = levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in pair])
    seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
    points = tuple((curve.points[i].parameters, more) for i in pair)
    return Missing(f"{more} more repetitions at {names}", points, seconds)


def _figures(asked: Asked, curve: Curve) -> tuple[Figure, ...]:
    factor, best = curve.factor, curve.best
    figures = [Figure("best size", curve.level(best), factor.plural)]
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


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time of one rank goes, seconds; the three add up to the elapsed time."""

    computing: float
    core: float
    """Waiting for a core, where ranks share fewer cores: at least what the cores need for all ranks beyond one rank's share."""
    messages: float
    """Everything else: waiting for messages, starting and ending."""


def parts(asked: Asked, point: Point) -> Parts | None:
    """Return the parts of a point's elapsed time; None where CPU time was not measured."""
    elapsed, cpu = point.median("elapsed_s"), point.median("cpu_mean_rank_s")
    if elapsed is None or cpu is None:
        return None
    computing = min(cpu, elapsed)
    ranks = point.ranks or 1
    shared = cpu * ranks / asked.cores - cpu if asked.cores and ranks > asked.cores else 0.0
    core = min(max(shared, 0.0), elapsed - computing)
    return Parts(computing, core, elapsed - computing - core)


_NAMED = {
    "core": "waiting for a core",
    "messages": "waiting for messages",
    "computing": "computing more",
}


def _loss(asked: Asked, curve: Curve) -> tuple[Cause, ...]:
    """The parts by which the largest size takes longer than the best one, the largest first."""
    best, last = parts(asked, curve.points[curve.best]), parts(asked, curve.points[-1])
    if best is None or last is None:
        return ()
    more = {name: getattr(last, name) - getattr(best, name) for name in _NAMED}
    total = sum(more.values())
    if total <= 0:
        return ()
    causes = []
    for name, seconds in sorted(more.items(), key=lambda item: -item[1]):
        if seconds < 0.1 * total:
            continue
        share = min(seconds, total)
        part = f"{quantity(share, 's')} of the {quantity(total, 's')} more" if seconds < total else "all of it"
        causes.append(Cause(f"{part} {_NAMED[name]}", share, "s", "where-time-goes"))
    return tuple(causes)


def _gain_lost(asked: Asked, curve: Curve) -> tuple[Cause, ...]:
    """What keeps the largest size from being ideal: its waiting, as a part of its time."""
    last = parts(asked, curve.points[-1])
    if last is None:
        return ()
    elapsed = last.computing + last.core + last.messages
    waits = {name: getattr(last, name) for name in ("core", "messages")}
    return tuple(
        Cause(f"{quantity(s, 's')} of {quantity(elapsed, 's')} {_NAMED[name]}", s, "s", "where-time-goes")
        for name, s in sorted(waits.items(), key=lambda item: -item[1])
        if s > 0.1 * elapsed
    )
