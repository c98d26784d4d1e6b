"""What an answer adds to its head line about the experiment as a whole: slices, outliers, other load, and drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis.conclusions.context import Factor
from analysis.conclusions.observations.drift import Drift
from analysis.conclusions.wording import levels, percent, place
from analysis.numbers import change, grouped, plural, signed

NO_TRIAL: Final = "No trial has finished."
_MOST_SLICES: Final = 4


def slices(sentences: Mapping[str, Sequence[str]]) -> str:
    """One sentence for all places (the values) of which it holds."""
    rows = list(sentences.items())
    shown = " ".join(f"{'; '.join(places)}: {words}" for words, places in rows[:_MOST_SLICES])
    left = sum(len(places) for _, places in rows[_MOST_SLICES:])
    return f"{shown} {more_combinations(left)}" if left else shown


def more_combinations(left: int) -> str:
    return f"{left} more combination{'s are' if left > 1 else ' is'} in the table."


def outliers(total: int, trials: int) -> str:
    are = "is an outlier" if total == 1 else "are outliers"
    return f"{total} of {plural(trials, 'trial')} {are} and not part of the scatter."


def other_load(slowed: int, excluded: int, trials: int, weakens: bool) -> str:
    words = f"Other load slowed {slowed} of {plural(trials, 'trial')}"
    if excluded:
        words += f", {grouped(excluded)} of which {'is' if excluded == 1 else 'are'} excluded"
    return f"{words}: measure again on idle machines." if weakens else f"{words}."


def per_trial(drift: Drift) -> str:
    """ "+1.92 % per trial (+1.71 to +2.13 %)": a drift of 0.2 % needs more decimals than other changes."""
    middle, low, high = (signed(100 * float(np.expm1(end)), 2) for end in (drift.slope, *drift.interval()))
    return f"{middle}\u202f% per trial ({low} to {high}\u202f%)"


def drift_taken_out(drift: Drift) -> str:
    return f"A drift of {per_trial(drift)} is taken out of the comparison."


def drifts(drift: Drift) -> str:
    return f"The trials drift by {per_trial(drift)}."


def confounded(drift: Drift, factors: Sequence[Factor]) -> str:
    names = " and ".join(factor.label for factor in factors) or "configurations"
    return (
        f"The trials drift by {per_trial(drift)}, and {names} changed with their order: "
        "differences between them may be the drift alone."
    )


def not_excluded(most: float) -> str:
    return f"A drift of up to {percent(most)} per trial, which these trials do not exclude, would change this."


def rounds(more: int, configurations: int) -> str:
    return f"{more} more rounds of all {plural(configurations, 'configuration')}"


def drift_fact(label: str, drift: Drift, whole: float) -> tuple[str, str]:
    """Return the size of a drift over the experiment, and what to do about it."""
    what = "the comparison takes it out" if drift.is_balanced else "it cannot be separated from what was varied"
    look = "look for what changes on the machines meanwhile: temperature, caches, files, other programs."
    step = look[:1].upper() + look[1:]
    if not drift.is_balanced:
        step = f"Add rounds of all configurations, or clone it with interleaved order; {look}"
    return f"{label} drifts by {per_trial(drift)}, {change(whole)} over {plural(drift.trials, 'trial')}: {what}.", step


def also_at(
    where: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    slices: Sequence[Mapping[str, Any]],
    factors: Sequence[Factor],
    *,
    is_everywhere: bool,
) -> str:
    """ "pull", "pull; alike for multicast and tree", "100 Mbit/s, 2 ms delay; alike for 4 of 6 combinations"."""
    known = {factor.name: factor for factor in factors}
    varying = [name for name in where if len({repr(each.get(name)) for each in slices}) > 1]
    named = [known.get(name) or Factor(name, name.replace("_", " "), "treatment") for name in varying]
    own = place(named, where)
    if not others:
        return own
    if len(named) == 1:
        return f"{own}; alike for {levels(named[0], [each.get(named[0].name) for each in others])}"
    return f"{own}; alike for {'all' if is_everywhere else f'{len(others)} of {len(slices) - 1}'} others"
