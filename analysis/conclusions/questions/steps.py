"""Tuning ladders: the change that paid off, and the distance from the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.observations.ladder import Advance, advances, step_of
from analysis.conclusions.questions.strength import compared, repeat, settled, unsettled
from analysis.conclusions.sentences import answers as words
from analysis.scaling import Point

_WORTH_A_WARNING: Final = 0.8
"""A step that reaches less of the best one before it is named as a loss."""


def answer_steps(question: ExperimentQuestion) -> Answer:
    """Return the best step, the best single change, and the share of the peak."""
    grid = Grid(question)
    if len(grid.points) < 2:
        return Answer("steps", words.SECOND_STEP, "open")
    ranked = sorted(grid.points, key=grid.cost)
    best, equal = ranked[0], sorted(grid.as_good(ranked), key=lambda point: step_of(question, point))
    changes = advances(grid)
    paid = _paid(changes)
    certainty, missing = settled(grid, best, grid.points)
    if paid is None and not question.published:
        hoped = max(changes, key=lambda advance: advance.gain)
        open_ones = [compared(grid, hoped.before, hoped.point), *unsettled(grid, best, grid.points)]
        certainty, missing = "open", repeat(grid, open_ones)
    sentence = words.best_step(grid, best, equal, paid)
    figures = _figures(grid, best, equal, changes, paid)
    return Answer("steps", sentence, certainty, figures, _causes(question, changes), missing, grid.claims.scatter)


def _paid(changes: Sequence[Advance]) -> Advance | None:
    """Return the change that gained most.

    The first step is often a sample input: gains over it count only if no later change gained.
    """
    clear = [advance for advance in changes if advance.clear]
    later = [advance for advance in clear if advance.over > 1]
    return max(later or clear, key=lambda advance: advance.gain, default=None)


def _causes(question: ExperimentQuestion, changes: Sequence[Advance]) -> tuple[Cause, ...]:
    paid = sorted((change for change in changes if change.clear), key=lambda change: -change.gain)[:4]
    causes = [Cause(words.paid(question, change), change.gain, "1", "ladder") for change in paid]
    worst = min(changes, key=lambda change: change.gain)
    if worst.lost and worst.gain < _WORTH_A_WARNING:
        causes.append(Cause(words.lost(question, worst), worst.gain, "1", "ladder"))
    return tuple(causes)


def _figures(
    grid: Grid, best: Point, equal: Sequence[Point], changes: Sequence[Advance], paid: Advance | None
) -> tuple[Figure, ...]:
    question = grid.question
    figures = [Figure("best step", step_of(question, best)), *(Figure("as good", step_of(question, p)) for p in equal)]
    if paid is not None:
        figures.append(Figure("best change", paid.step))
    if question.peak and grid.typical(best) <= question.peak:
        figures.append(Figure("share of peak", grid.typical(best) / question.peak, "share"))
    figures += [Figure.within("gain", e.gain, "1", e.interval, {"step": e.step, "over": e.over}) for e in changes]
    return tuple(figures)
