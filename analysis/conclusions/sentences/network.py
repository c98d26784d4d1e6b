"""Head lines of network sweeps: needs, slopes and effects of single factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from analysis import sensitivity
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.effects import Effect, Slope, first_matters, slope_of, together
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.needs import BYTES, DELAY, LOSS, MESSAGES, RATE, NetworkNeeds, is_clear
from analysis.conclusions.wording import (
    ANY,
    amount,
    between,
    clauses,
    factor_words,
    first_up,
    joined,
    level,
    lower_first,
    percent,
    point_words,
)
from analysis.numbers import plural, rounded
from analysis.scaling import Point
from analysis.sensitivity import Quantity
from analysis.statistics import Interval

MOST_HIDDEN: Final = 1.25
"""Ratio up to which an unmeasured effect is called none."""
NO_INTERVAL: Final = "not enough data for an interval"
SECOND_SETTING: Final = "Not enough data yet: the effect of the network needs a second setting."


def needs(question: ExperimentQuestion, needed: NetworkNeeds) -> tuple[str, str]:
    """Return the bounds of one combination and its critical path."""
    needs = needed.needs
    # The time of the charts and of the model has the drift.
    here = "current link, without drift" if question.is_without_drift else "current link"
    bounds = (
        f"{lower_first(question.deciding.label)} stays within {percent(needs.tolerated)} of "
        f"{amount(needs.elapsed.value, 's')} ({here}) {_bounds(needed)}"
    )
    other = RATE if needs.least_rate is None else DELAY if needs.most_delay is None else ""
    without = _without_need(needed, other) if other in {f.name for f in question.factors} else ""
    return bounds, clauses([clause for clause in (_critical_path(needed), without) if clause])


def more_needs(others: int) -> str:
    return f"{plural(others, 'more combination is', 'more combinations are')} in the key figures"


def sentences(at: str, first: str, second: str) -> str:
    """Return the two sentences of a head line; the first names the combination."""
    return " ".join(f"{first_up(sentence)}." for sentence in (_with_place(at, first), second) if sentence)


def combinations(verdicts: Sequence[tuple[str, str]], at: str, detail: str) -> str:
    """Return the verdicts of all combinations, then the detail of one of them."""
    places: dict[str, list[str]] = {}
    for where, verdict in verdicts:
        places.setdefault(verdict, []).append(where)
    texts = [f"{joined(where)}: {verdict}" for verdict, where in places.items()]
    first = clauses(texts) if len(places) > 1 else f"in all {len(verdicts)} combinations {verdicts[0][1]}"
    return sentences("", first, _with_place(at, detail))


def _bounds(needed: NetworkNeeds) -> str:
    """Return "if one-way delay is below 52 µs (48 to 57 µs) and the rate is ..."."""
    needs = needed.needs
    if needs.joint is not None and all(np.isfinite(bound.value) for bound in needs.joint):
        delay, rate = (_bound(needed, bound, unit) for bound, unit in zip(needs.joint, ("s", "bit/s"), strict=True))
        return f"if one-way delay is below {delay} and the rate is above {rate}"
    if needs.most_delay is not None:
        here = amount(needs.here.rate_bps, "bit/s")
        return f"at {here} if one-way delay is below {_bound(needed, needs.most_delay, 's')}"
    if needs.least_rate is None:
        raise ValueError("neither delay nor rate has an effect")
    return f"if the rate is above {_bound(needed, needs.least_rate, 'bit/s')}"


def _bound(needed: NetworkNeeds, drawn: Quantity, unit: str) -> str:
    value = amount(drawn.value if np.isfinite(drawn.value) else drawn.interval.low, unit)
    ends = between(drawn.interval.low, drawn.interval.high, unit) if needed.is_clear(drawn) else NO_INTERVAL
    return f"{value} ({ends})"


def _without_need(needed: NetworkNeeds, name: str) -> str:
    """Return the largest effect that a factor without a measured effect may have."""
    runs = needed.fit.runs
    if name == RATE:
        harshest = replace(needed.here, rate_bps=1 / float(runs.inverse_rate.max()))
        to = f"a rate down to {amount(harshest.rate_bps, 'bit/s', 2)}"
    else:
        harshest = replace(needed.here, delay_s=float(runs.delay.max()))
        to = f"delay up to {amount(harshest.delay_s, 's', 2)}"
    most = sensitivity.gain(needed.fit, harshest, needed.here).speedup.interval.high or 1.0
    if most < MOST_HIDDEN:
        return f"{to} changes the time by less than {percent(most - 1)}"
    if most >= ANY:
        return f"these links do not show the effect of {to}"
    return f"{to} takes at most {factor_words(most)} as long, by a model of all points"


def _critical_path(needed: NetworkNeeds) -> str:
    """Return "4 300 messages (95 % CI ...) and 12 MB (...) are on its critical path"."""
    parts: list[str] = []
    for name, drawn, unit in needed.rows:
        if name not in (MESSAGES, BYTES):
            continue
        words = amount(drawn.value, unit) if unit else plural(float(rounded(drawn.value, 3)), "message")
        prefix = "" if parts else "95\u202f% CI "
        ends = f"{prefix}{between(drawn.interval.low or 0.0, drawn.interval.high or 0.0, unit)}"
        parts.append(f"{words} ({ends if needed.is_clear(drawn) else NO_INTERVAL})")
    one = len(parts) == 1 and parts[0].startswith("1 message")
    return f"{' and '.join(parts)} {'is' if one else 'are'} on its critical path" if parts else ""


def effects(
    grid: Grid, part: Sequence[Point], network_effects: Sequence[Effect], slopes: Sequence[Slope]
) -> tuple[str, str]:
    """Return the verdict on the factors, and the numbers of the largest effects.

    "delay matters more", "16 ms delay takes 26 times as long as 0 ms; 1 % loss 1.3 times".
    """
    matter = [effect for effect in network_effects if effect.matters]
    quiet = [effect.factor.label for effect in network_effects if not effect.matters]
    none = f"{joined(quiet)} {'make' if len(quiet) > 1 else 'makes'} no measurable difference" if quiet else ""
    if not matter:
        return none, ""
    first, worst = matter[0], together(grid, part)
    verdict = f"{joined([effect.factor.label for effect in matter])} matter"
    if len(matter) == 1:
        verdict = f"{'only ' if quiet else ''}{first.factor.label} matters"
    elif first_matters(grid, matter):
        verdict = f"{first.factor.label} matters {'more' if len(matter) == 2 else 'most'}"
    slope = slope_of(first, slopes)
    numbers = [
        _largest(grid, first),
        *([per_delay(slope)] if len(matter) == 1 and slope is not None else []),
        *(_in_short(grid, effect) for effect in matter[1:]),
        *([f"together {_factor(*worst)}"] if worst is not None and len(matter) > 1 else []),
    ]
    return f"{verdict}: {none}" if none else verdict, clauses(numbers)


def _largest(grid: Grid, effect: Effect) -> str:
    if effect.clear or effect.harshest is None:
        return _alone(grid, effect)
    there, here = _elsewhere(grid, effect.harshest), _elsewhere(grid, effect)
    return f"{_alone(grid, effect.harshest)}{there}, with no measurable difference{here}"


def _in_short(grid: Grid, effect: Effect) -> str:
    """Return a further effect: "1 % loss 1.5 times at 16 ms delay"."""
    if effect.clear or effect.harshest is None:
        return _times(grid, effect)
    return f"{_times(grid, effect.harshest)}{_elsewhere(grid, effect.harshest)}"


def _times(grid: Grid, effect: Effect) -> str:
    to = point_words([effect.factor], effect.costliest.parameters)
    is_rate = grid.question.deciding.higher_is_better
    return f"{to} {percent(1 / effect.ratio) if is_rate else _factor(effect.ratio, effect.interval)}"


def _factor(ratio: float, interval: Interval | None) -> str:
    is_shown = interval is None or is_clear(interval)
    return factor_words(ratio, interval) if is_shown else f"{factor_words(ratio)} ({NO_INTERVAL})"


def per_delay(slope: Slope) -> str:
    """Return "each ms of delay adds 3.9 ms (3.6 to 4.2 ms), 1.9 round trips"."""
    ends = slope.interval
    words = f"each ms of delay adds {amount(slope.per_unit * 1e-3, 's')}"
    if ends is not None and ends.low is not None and ends.high is not None and is_clear(ends):
        words += f" ({between(ends.low * 1e-3, ends.high * 1e-3, 's')})"
    return f"{words}, {plural(rounded(slope.per_unit / 2, 3), 'round trip', digits=2)}"


def _alone(grid: Grid, effect: Effect) -> str:
    to = level(effect.factor, effect.costliest.parameters[effect.factor.name])
    start = level(effect.factor, effect.cheapest.parameters[effect.factor.name])
    rate = effect.factor.unit == "bit/s"  # says itself what it is
    words = to if rate else f"{to} {effect.factor.label}"
    if grid.question.deciding.higher_is_better:
        return f"{words} leaves {percent(1 / effect.ratio)} of what {start} gives"
    return f"{words} takes {_factor(effect.ratio, effect.interval)} as long as {start}"


def _elsewhere(grid: Grid, effect: Effect) -> str:
    others = [f for f in grid.question.of_role("network") if f is not effect.factor]
    return f" at {point_words(others, effect.costliest.parameters)}"


def _with_place(at: str, words: str) -> str:
    return f"{at}: {words}" if at else words


def cause(grid: Grid, at: str, effect: Effect, is_harshest: bool) -> str:
    return _with_place(at, _alone(grid, effect) + (_elsewhere(grid, effect) if is_harshest else ""))


def slopes_by_loss(at: str, slopes: Sequence[Slope]) -> str:
    """Return the cost of a millisecond of delay at least and most loss, or ""."""
    if len(slopes) < 2 or LOSS not in slopes[0].where:
        return ""
    others = {name: level for name, level in slopes[0].where.items() if name != LOSS}
    row = [s for s in slopes if all(s.where.get(name) == level for name, level in others.items()) and s.clear]
    ordered = sorted(row, key=lambda s: ordinal(s.where[LOSS]))
    if len(ordered) < 2:
        return ""
    mild, harsh = ordered[0], ordered[-1]
    least, most = (ordinal(s.where[LOSS]) for s in (mild, harsh))
    words = (
        f"a ms of delay adds {amount(mild.per_unit * 1e-3, 's')} "
        f"{f'at {percent(least)}' if least else 'without'} loss and {amount(harsh.per_unit * 1e-3, 's')} at {percent(most)}"
    )
    return _with_place(at, words)


def no_effect(
    question: ExperimentQuestion, network: Sequence[Factor], *, printed: float | None = None, most: float | None = None
) -> str:
    """Return the sentence of no measurable effect.

    ``printed`` is the change that print could hide, ``most`` the one that the trials leave open.
    """
    verdict = f"{first_up(joined([f.label for f in network]))} {'do' if len(network) > 1 else 'does'} not matter"
    label, share = lower_first(question.deciding.label), percent(most or 0.0 if printed is None else printed)
    return f"{verdict}. Over the {'measured' if printed is None else 'printed'} range {label} changes by less than {share}."


def too_few(network: Sequence[Factor], below: float | None) -> str:
    names = joined([f.label for f in network])
    if below:
        return f"Not enough repetitions: effects of {names} below {factor_words(below)} would not show."
    return f"Not enough repetitions: the effect of {names} is not known yet."
