"""The head line of a ladder: the best step, the change that paid most, and the share of the peak."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analysis.conclusions.context import Asked
from analysis.conclusions.observations.advances import Advance, step_of
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.wording import factor_words, joined, level, percent, value
from analysis.scaling import Point

SECOND_STEP: Final = "A second step has to finish before a change can be judged."


def best_step(grid: Grid, best: Point, equal: Sequence[Point], paid: Advance | None) -> str:
    asked, step = grid.asked, step_of(grid.asked, best)
    reached = f"{value(asked, grid.typical(best), grid.interval(best))}{_share(asked, grid.typical(best))}"
    if paid is None:
        return f"No single change can be told to have paid; best so far is step {step}: {reached}."
    names = joined([str(step_of(asked, p)) for p in equal]) if equal else ""
    beside = f" ({'steps' if len(equal) > 1 else 'step'} {names} cannot be told from it)" if equal else ""
    gave = f"was {_times(paid)} as fast as"
    if asked.deciding.higher_is_better:
        gave = f"gave {_times(paid)} as much as"
    change = f"the best single change, step {paid.step} ({_changed(asked, paid)}), {gave} step {paid.over}"
    return f"Step {step} is best{beside}: {reached}; {change}."


def paid(asked: Asked, advance: Advance) -> str:
    return f"step {advance.step} ({_changed(asked, advance)}): {_times(advance)} step {advance.over}"


def lost(asked: Asked, advance: Advance) -> str:
    return f"step {advance.step} ({_changed(asked, advance)}): only {percent(advance.gain)} of step {advance.over}"


def _times(advance: Advance) -> str:
    return factor_words(advance.gain, advance.interval)


def _share(asked: Asked, reached: float) -> str:
    if not asked.peak:
        return ""
    if reached > asked.peak:
        return ", more than the stated peak: check the stated facts of the cluster"
    return f", {percent(reached / asked.peak)} of the peak"


def _changed(asked: Asked, advance: Advance) -> str:
    """Return what differs from the step that the gain is over."""
    before, after = advance.before.parameters, advance.point.parameters
    changed = [f for f in asked.factors if before.get(f.name) != after.get(f.name)]
    levels = [(f, level(f, after.get(f.name))) for f in changed[:3]]
    return ", ".join(words if f.plural else f"{f.label} {words}" for f, words in levels) or "nothing"
