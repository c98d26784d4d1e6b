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
from analysis.conclusions.sentences.answers import more_combinations
from analysis.conclusions.wording import ANY, factor_words, first_up, level, percent, place
from analysis.numbers import amount, between, plural, rounded
from analysis.scaling import Point
from analysis.sensitivity import Quantity
from analysis.statistics import Interval

MOST_HIDDEN: Final = 1.25
"""Ratio up to which an unmeasured effect is called none."""
NO_INTERVAL: Final = "not enough data for an interval"
SECOND_SETTING: Final = "Not enough data yet: the effect of the network needs a second setting."
_MOST_SHOWN: Final = 4
_MOST_LETTERS: Final = 600
"""Longest head line of several combinations."""


def combinations(sentences: Sequence[str]) -> str:
    """Return the first sentences and the last one; fewer if they are long."""
    letters = sum(map(len, [*sentences[: _MOST_SHOWN - 1], sentences[-1]]))
    most = _MOST_SHOWN if letters <= _MOST_LETTERS else 2
    remaining = len(sentences) - most
    if remaining <= 0:
        return " ".join(sentences)
    return " ".join([*sentences[: most - 1], sentences[-1], more_combinations(remaining)])


def needs(asked: ExperimentQuestion, at: str, needed: NetworkNeeds) -> str:
    """Return the bounds of one combination of the other factors and its critical path."""
    needs = needed.needs
    bounds = (
        f"it stays within {percent(needs.tolerated)} of its {amount(needs.elapsed.value, 's', 3)} {_bounds(needed)}"
    )
    other = RATE if needs.least_rate is None else DELAY if needs.most_delay is None else ""
    without = _without_need(needed, other) if other in {f.name for f in asked.factors} else ""
    sentences = [_with_place(at, bounds), "; ".join(filter(None, [_critical_path(needed), without]))]
    return " ".join(f"{first_up(each)}." for each in sentences if each)


def _bounds(needed: NetworkNeeds) -> str:
    """Return "if one-way delay is below 52 µs (48 to 57 µs) and the rate is ..."."""
    needs = needed.needs
    if needs.joint is not None and all(np.isfinite(each.value) for each in needs.joint):
        delay, rate = (_bound(needed, each, unit) for each, unit in zip(needs.joint, ("s", "bit/s"), strict=True))
        return f"if one-way delay is below {delay} and the rate is above {rate}"
    if needs.most_delay is not None:
        here = amount(needs.here.rate_bps, "bit/s", 3)
        return f"at {here} if one-way delay is below {_bound(needed, needs.most_delay, 's')}"
    if needs.least_rate is None:
        raise ValueError("neither delay nor rate has an effect")
    return f"if the rate is above {_bound(needed, needs.least_rate, 'bit/s')}"


def _bound(needed: NetworkNeeds, drawn: Quantity, unit: str) -> str:
    value = amount(drawn.value if np.isfinite(drawn.value) else drawn.interval.low, unit, 2)
    ends = between(drawn.interval.low, drawn.interval.high, unit, 2) if needed.is_clear(drawn) else NO_INTERVAL
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
    return f"{to} takes at most {factor_words(most)} as long (not enough trials for a closer bound)"


def _critical_path(needed: NetworkNeeds) -> str:
    """Return "4 300 messages (95 % CI ...) and 12 MB (...) are on its critical path"."""
    parts: list[str] = []
    for name, drawn, unit in needed.rows:
        if name not in (MESSAGES, BYTES):
            continue
        words = amount(drawn.value, unit, 3) if unit else plural(float(rounded(drawn.value, 3)), "message")
        low, high = (float(rounded(end or 0.0, 3)) for end in (drawn.interval.low, drawn.interval.high))
        level = "" if parts else "95\u202f% CI "
        ends = f"{level}{between(low, high, unit, 3)}"
        parts.append(f"{words} ({ends if needed.is_clear(drawn) else NO_INTERVAL})")
    one = len(parts) == 1 and parts[0].startswith("1 message")
    return f"{' and '.join(parts)} {'is' if one else 'are'} on its critical path" if parts else ""


def effects(
    grid: Grid, at: str, part: Sequence[Point], network_effects: Sequence[Effect], slopes: Sequence[Slope]
) -> str:
    """Return the verdict of one level of the other factors, then its effects.

    "4 MiB: delay matters most. Each ms of delay adds 33 ms ...; 1 % loss takes 1.3 times as long".
    """
    clauses = []
    for effect in network_effects:
        slope = slope_of(effect, slopes)
        if effect.clear:
            alone = _alone(grid, effect) + _also_harshest(grid, effect)
            clauses.append(_per_delay(slope, effect) if slope is not None else alone)
        elif effect.matters and effect.harshest is not None:
            there, here = _elsewhere(grid, effect.harshest), _elsewhere(grid, effect)
            clauses.append(f"{_alone(grid, effect.harshest)}{there}, with no measurable difference{here}")
    matter = [effect for effect in network_effects if effect.matters]
    worst = together(grid, part)
    if worst is not None and len(matter) > 1:
        clauses.append(f"together {_factor(*worst)}")
    quiet = [effect.factor.label for effect in network_effects if not effect.matters]
    none = f"{' and '.join(quiet)} {'make' if len(quiet) > 1 else 'makes'} no measurable difference" if quiet else ""
    verdict = ""
    if first_matters(grid, matter):
        verdict = f"{matter[0].factor.label} matters {'more' if len(matter) == 2 else 'most'}"
    elif len(matter) == 1 and none:
        verdict, none = f"only {matter[0].factor.label} matters: {none}", ""
    if none:
        clauses.append(none)
    sentences = [sentence for sentence in (verdict, "; ".join(clauses)) if sentence]
    first, *rest = [f"{sentence}." for sentence in sentences]
    return " ".join([_with_place(at, first) if at else first_up(first), *map(first_up, rest)])


def _factor(ratio: float, interval: Interval | None) -> str:
    is_shown = interval is None or is_clear(interval)
    return factor_words(ratio, interval) if is_shown else f"{factor_words(ratio)} ({NO_INTERVAL})"


def _per_delay(slope: Slope, effect: Effect) -> str:
    ends = slope.interval
    words = f"each ms of delay adds {amount(slope.per_unit * 1e-3, 's', 3)}"
    if ends is not None and ends.low is not None and ends.high is not None and is_clear(ends):
        words += f" ({between(ends.low * 1e-3, ends.high * 1e-3, 's')})"
    words += f", {plural(slope.per_unit / 2, 'round trip', digits=2)}"
    most = level(effect.factor, effect.costliest.parameters[DELAY])
    return f"{words}, and {most} take {_factor(effect.ratio, effect.interval)} as long"


def _alone(grid: Grid, effect: Effect) -> str:
    to = level(effect.factor, effect.costliest.parameters[effect.factor.name])
    start = level(effect.factor, effect.cheapest.parameters[effect.factor.name])
    rate = effect.factor.unit == "bit/s"  # says itself what it is
    words = to if rate else f"{to} {effect.factor.label}"
    if grid.asked.deciding.higher_is_better:
        return f"{words} {'leave' if rate else 'leaves'} {percent(1 / effect.ratio)} of what {start} gives"
    return f"{words} {'take' if rate else 'takes'} {_factor(effect.ratio, effect.interval)} as long as {start}"


def _elsewhere(grid: Grid, effect: Effect) -> str:
    others = [f for f in grid.asked.of_role("network") if f is not effect.factor]
    return f" at {place(others, effect.costliest.parameters)}"


def _also_harshest(grid: Grid, effect: Effect) -> str:
    """Return the effect at the costliest other levels: ", 1.6 times at 16 ms delay"."""
    harshest = effect.harshest
    if harshest is None or not harshest.clear or grid.asked.deciding.higher_is_better:
        return ""
    words = _factor(harshest.ratio, harshest.interval)
    return f", {'also ' if words == _factor(effect.ratio, effect.interval) else ''}{words}{_elsewhere(grid, harshest)}"


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
        f"a ms of delay adds {amount(mild.per_unit * 1e-3, 's', 3)} "
        f"{f'at {percent(least)}' if least else 'without'} loss and {amount(harsh.per_unit * 1e-3, 's', 3)} at {percent(most)}"
    )
    return _with_place(at, words)


def no_effect(network: Sequence[Factor], *, printed: float | None = None, most: float | None = None) -> str:
    """Return the sentence of no measurable effect.

    ``printed`` is the change that print could hide, ``most`` the one that the trials leave open.
    """
    names = " and ".join(f.label for f in network)
    make = "make" if len(network) > 1 else "makes"
    if printed is not None:
        return f"{first_up(names)} {make} no difference above {percent(printed)} over the printed range."
    return f"{first_up(names)} {make} less than {percent(most or 0.0)} of a difference over the measured range."


def too_few(network: Sequence[Factor], below: float | None) -> str:
    names = " and ".join(f.label for f in network)
    if below:
        return f"Not enough repetitions: effects of {names} below {factor_words(below)} would not show."
    return f"Not enough repetitions: no effect of {names} was measured."
