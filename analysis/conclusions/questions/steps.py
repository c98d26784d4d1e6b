"""Which change paid, and how far from the limit? A ladder of settings that are changed one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.asked import Asked
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.strength import settle, strength
from analysis.conclusions.wording import factor_words, level, percent, value
from analysis.scaling import Point
from analysis.statistics import Interval

_WORTH_A_WARNING: Final = 0.8
"""A step that reaches less of the best one before it is told as what to avoid."""


@dataclass(frozen=True, slots=True)
class Gain:
    """A step against the best one before it; ``step`` counts from 1 as in the design, finished or not."""

    gain: float
    step: int
    over: int
    point: Point
    before: Point
    interval: Interval | None
    clear: bool
    lost: bool
    """Whether the step is measurably worse."""


def answer_steps(asked: Asked) -> Answer:
    """The best step of a ladder, the best single change, and the share of what could be reached."""
    grid = Grid(asked)
    if len(grid.points) < 2:
        return Answer("steps", "A second step has to finish before a change can be judged.", "open")
    best = min(grid.points, key=grid.cost)
    gains = _gains(asked, grid)
    paid = _paid(gains)
    typical = value(asked, grid.typical(best), grid.claims.value(grid.index(best)))
    share = _share_words(asked, grid.typical(best))
    equal = [p for p in grid.points if p is not best and not grid.clearly(p, best)]
    if paid is None:
        sentence = (
            f"No single change can be told to have paid; best so far is step {_step(asked, best)}: {typical}{share}."
        )
    else:
        steps = "steps" if len(equal) > 1 else "step"
        beside = f" ({steps} {_joined(asked, equal)} cannot be told from it)" if equal else ""
        sentence = f"Step {_step(asked, best)} is best{beside}: {typical}{share}; {_paid_words(asked, paid)}."
    held = strength(asked, grid.claims) if paid or asked.published else "open"
    hoped = max(gains, key=lambda g: g.gain)
    missing = settle(asked, grid, hoped.before, hoped.point) if held == "open" else None
    causes = _causes(asked, gains)
    figures = _figures(asked, grid, best, equal, gains, paid)
    return Answer("steps", sentence, held, figures, causes, missing, grid.claims.scatter)


def _step(asked: Asked, point: Point) -> int:
    return next(i for i, p in enumerate(asked.points) if p is point) + 1


def _joined(asked: Asked, points: Sequence[Point]) -> str:
    words = [str(_step(asked, p)) for p in points]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _share_words(asked: Asked, reached: float) -> str:
    if not asked.peak:
        return ""
    if reached > asked.peak:
        return ", more than the stated peak: check the stated facts of the cluster"
    return f", {percent(reached / asked.peak)} of the peak"


def _gains(asked: Asked, grid: Grid) -> list[Gain]:
    """Every step against the best one before it."""
    gains = []
    for i in range(1, len(grid.points)):
        point, before = grid.points[i], min(grid.points[:i], key=grid.cost)
        gain, interval, clear = grid.worse(grid.index(before), i)
        gains.append(
            Gain(
                gain,
                _step(asked, point),
                _step(asked, before),
                point,
                before,
                interval,
                clear,
                grid.clearly(point, before),
            )
        )
    return gains


def _paid(gains: Sequence[Gain]) -> Gain | None:
    """The change that paid most. The first step is where one started, often a sample input that nobody would keep: what was
    gained over it is told only where no later change paid."""
    clear = [g for g in gains if g.clear]
    later = [g for g in clear if g.over > 1]
    return max(later or clear, key=lambda g: g.gain, default=None)


def _paid_words(asked: Asked, paid: Gain) -> str:
    gave = f"gave {factor_words(paid.gain, paid.interval)} as much as"
    if not asked.deciding.higher_is_better:
        gave = f"was {factor_words(paid.gain, paid.interval)} as fast as"
    return f"the best single change, step {paid.step} ({_changed(asked, paid)}), {gave} step {paid.over}"


def _changed(asked: Asked, gain: Gain) -> str:
    """What differs from the step that the gain is over."""
    before, after = gain.before.parameters, gain.point.parameters
    changed = [f for f in asked.factors if before.get(f.name) != after.get(f.name)]
    words = [
        words if f.plural else f"{f.label} {words}" for f in changed[:3] for words in [level(f, after.get(f.name))]
    ]
    return ", ".join(words) or "nothing"


def _causes(asked: Asked, gains: Sequence[Gain]) -> tuple[Cause, ...]:
    """What paid, the most first, and what cost so much that it is to be avoided."""
    paid = sorted((g for g in gains if g.clear), key=lambda g: -g.gain)[:4]
    words = [(g, f"{factor_words(g.gain, g.interval)} step {g.over}") for g in paid]
    worst = min(gains, key=lambda g: g.gain)
    if worst.lost and worst.gain < _WORTH_A_WARNING:
        words.append((worst, f"only {percent(worst.gain)} of step {worst.over}"))
    return tuple(Cause(f"step {g.step} ({_changed(asked, g)}): {told}", g.gain, "1", "ladder") for g, told in words)


def _figures(
    asked: Asked, grid: Grid, best: Point, equal: Sequence[Point], gains: Sequence[Gain], paid: Gain | None
) -> tuple[Figure, ...]:
    figures = [Figure("best step", _step(asked, best))]
    figures += [Figure("as good", _step(asked, p)) for p in equal]
    if paid is not None:
        figures.append(Figure("best change", paid.step))
    if asked.peak and grid.typical(best) <= asked.peak:
        figures.append(Figure("share of peak", grid.typical(best) / asked.peak, "share"))
    for g in gains:
        ends = (None, None) if g.interval is None else (g.interval.low, g.interval.high)
        figures.append(Figure("gain", g.gain, "1", *ends, {"step": g.step, "over": g.over}))
    return tuple(figures)
