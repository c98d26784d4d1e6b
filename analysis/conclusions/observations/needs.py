"""What a program needs from its network, where enough links were measured for slopes and bends (analysis.sensitivity)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analysis import sensitivity
from analysis.conclusions.answer import Figure
from analysis.conclusions.asked import Asked, Factor
from analysis.conclusions.observations.grid import ordinal
from analysis.conclusions.wording import ANY, factor_words, percent, place
from analysis.numbers import amount, between, plural, rounded
from analysis.scaling import Point
from analysis.sensitivity import NO_BURSTS, Bursts, Fit, Link, Quantity, Run, Runs
from analysis.statistics import Interval

DELAY: Final = "link.delay"
RATE: Final = "link.bandwidth"
LOSS: Final = "link.loss"
_MODELLED: Final = frozenset({DELAY, RATE, LOSS})
FEWEST_LEVELS: Final = 4
"""Of delay or rate: with fewer, factors between them are told, not slopes and bends."""
_TOLD: Final = 1.25
"""What could hide an effect larger than this is not called none."""
_VAGUE: Final = 10.0
"""An interval whose ends differ by a larger factor is not shown as numbers."""
_FEWEST_FREEDOM: Final = 2
"""Degrees of freedom below which no interval is shown."""
NO_INTERVAL: Final = "not enough data for an interval"
_BURST: Final = "link.burst"


@dataclass(frozen=True, slots=True)
class Told:
    """One combination of the other factors."""

    sentence: str
    figures: tuple[Figure, ...]
    is_vague: bool
    """Whether a number has no interval that can be shown."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The model of one combination of the other factors."""

    at: str
    """The combination in words; empty where there is only one."""
    where: dict[str, object]
    fit: Fit
    here: Link
    """The mildest link that was measured: the one that the program runs on today."""
    points: tuple[Point, ...]


def fits_of(asked: Asked) -> list[Fitted]:
    """Return the models that the trials bear, by ascending levels of the other factors."""
    others = [f for f in asked.factors if f.role != "network"]
    parts: dict[tuple[object, ...], list[Point]] = {}
    for point in asked.measured():
        parts.setdefault(tuple(point.parameters.get(f.name) for f in others), []).append(point)
    ordered = sorted(parts.items(), key=lambda part: [(ordinal(level), str(level)) for level in part[0]])
    return [
        Fitted(
            place(others, points[0].parameters) if len(parts) > 1 else "",
            dict(zip((f.name for f in others), levels, strict=True)),
            *fitted,
            tuple(points),
        )
        for levels, points in ordered
        if (fitted := fit_of(asked, points)) is not None
    ]


def fit_of(asked: Asked, points: Sequence[Point]) -> tuple[Fit, Link] | None:
    """Return the model of these points and the mildest link among them; None where the design or the trials do not bear one."""
    if asked.published or asked.deciding.unit != "s" or asked.deciding.higher_is_better:
        return None
    network = {f.name for f in asked.of_role("network")}
    if not network & {DELAY, RATE} or network - _MODELLED:
        return None
    if max(len({p.parameters.get(name) for p in points}) for name in (DELAY, RATE)) < FEWEST_LEVELS:
        return None
    measured = [(link, point) for point in points if (link := link_of(point)) is not None]
    runs = [Run(link, float(seconds)) for link, point in measured for seconds in asked.values(point)]
    try:
        fitted = sensitivity.fit(Runs.of(runs))
    except ValueError:  # too few of the trials have ended yet
        return None
    return fitted, _mildest([link for link, _ in measured])


def _mildest(links: Sequence[Link]) -> Link:
    """The link with the least loss, delay and inverse rate, each as a share of its range: certificates of one rate scatter."""
    delay, inverse_rate = (
        max(column) or 1.0 for column in zip(*((e.delay_s, e.inverse_rate) for e in links), strict=True)
    )
    return min(links, key=lambda link: (link.loss, link.delay_s / delay + link.inverse_rate / inverse_rate))


def link_of(point: Point) -> Link | None:
    """The link of a point as it was measured, and where it was not, as it was asked for; None without a rate."""
    asked = {name: point.parameters.get(name) for name in _MODELLED}
    rate = point.link.get(RATE) or asked[RATE]
    if not rate:
        return None
    delay = point.link.get(DELAY, asked[DELAY] or 0.0)
    # Few packets tell little of a loss: what was asked for is nearer to the truth than what they lost.
    return Link(max(0.0, float(delay)), float(rate), float(asked[LOSS] or 0.0))


def needs_of(asked: Asked, others: Sequence[Factor], points: Sequence[Point]) -> Told | None:
    """Return the bounds of these points and what they come from; None if the trials show no effect of the network."""
    fitted = fit_of(asked, points)
    if fitted is None:
        return None
    fit, here = fitted
    needs = sensitivity.needs(fit, here)
    if needs.most_delay is None and needs.least_rate is None:
        return None
    rows = _rows(fit, needs, bursts_of(points))
    at = place(others, points[0].parameters)
    stays = f"it stays within {percent(needs.tolerated)} of its {amount(needs.elapsed.value, 's', 3)}"
    bounds = f"{stays} {_bounds(fit, needs)}"
    sentences = [f"{at}: {bounds}" if at else bounds[:1].upper() + bounds[1:], _critical_path(fit, rows)]
    other = RATE if needs.least_rate is None else DELAY if needs.most_delay is None else ""
    if other in {f.name for f in asked.factors}:
        sentences[1] = "; ".join(filter(None, [sentences[1], _without_need(fit, here, other)]))
    where = {f.name: points[0].parameters.get(f.name) for f in others}
    return Told(
        " ".join(f"{each[:1].upper()}{each[1:]}." for each in sentences if each),
        tuple(_figure(row, fit, where) for row in rows if np.isfinite(row[1].value)),
        any(not _is_clear(drawn, fit) for name, drawn, _ in rows if name != _HIDDEN),
    )


def bursts_of(points: Sequence[Point]) -> Bursts:
    """Return the bursts of the fastest and of the slowest link, as their certificates measured them."""
    measured = [(point.link[RATE], point.link[_BURST]) for point in points if {RATE, _BURST} <= point.link.keys()]
    return Bursts(max(measured)[1], min(measured)[1]) if measured else NO_BURSTS


def _bounds(fit: Fit, needs: sensitivity.Needs) -> str:
    """ "if one-way delay is below 52 µs (48 to 57 µs) and the rate is above 450 Mbit/s (430 to 470 Mbit/s)"."""
    if needs.joint is not None and all(np.isfinite(each.value) for each in needs.joint):
        delay, rate = needs.joint
        return f"if one-way delay is below {_bound(delay, 's', fit)} and the rate is above {_bound(rate, 'bit/s', fit)}"
    here = f"at {amount(needs.here.rate_bps, 'bit/s', 3)}"
    if needs.most_delay is not None:
        return f"{here} if one-way delay is below {_bound(needs.most_delay, 's', fit)}"
    if needs.least_rate is None:
        raise ValueError("neither delay nor rate has an effect")
    return f"if the rate is above {_bound(needs.least_rate, 'bit/s', fit)}"


def _without_need(fit: Fit, here: Link, name: str) -> str:
    """Return the largest effect that a factor without a measured effect may have."""
    harshest = (
        replace(here, rate_bps=1 / float(fit.runs.inverse_rate.max()))
        if name == RATE
        else replace(here, delay_s=float(fit.runs.delay.max()))
    )
    most = sensitivity.gain(fit, harshest, here).speedup.interval.high or 1.0
    to = (
        f"a rate down to {amount(harshest.rate_bps, 'bit/s', 2)}"
        if name == RATE
        else f"delay up to {amount(harshest.delay_s, 's', 2)}"
    )
    if most < _TOLD:
        return f"{to} makes less than {percent(most - 1)} of a difference"
    if most >= ANY:
        return f"these links do not show the effect of {to}"
    return f"{to} takes at most {factor_words(most)} as long: too few trials to say more"


def is_clear(interval: Interval) -> bool:
    """Return whether the ends of an interval are near enough to each other to be shown as numbers."""
    low, high = interval.low, interval.high
    return bool(low and low > 0 and high and high <= _VAGUE * low)


def _is_clear(drawn: Quantity, fit: Fit) -> bool:
    return fit.freedom >= _FEWEST_FREEDOM and is_clear(drawn.interval)


def _bound(drawn: Quantity, unit: str, fit: Fit) -> str:
    """ "104 µs (74 to 220 µs)"."""
    value = amount(drawn.value if np.isfinite(drawn.value) else drawn.interval.low, unit, 2)
    if not _is_clear(drawn, fit):
        return f"{value} ({NO_INTERVAL})"
    return f"{value} ({between(drawn.interval.low, drawn.interval.high, unit, 2)})"


_Row = tuple[str, Quantity, str]
"""Name, estimate and unit of a figure."""
_MESSAGES: Final = "messages in a row"
_HIDDEN: Final = "hidden delay"
_BYTES: Final = "sent while nothing else proceeds"


def _critical_path(fit: Fit, rows: Sequence[_Row]) -> str:
    """ "4 300 messages (95 % CI 4 100 to 4 500) and 12 MB (11 to 13 MB) are on its critical path"."""
    parts: list[str] = []
    for name, drawn, unit in rows:
        if name not in (_MESSAGES, _BYTES):
            continue
        words = amount(drawn.value, unit, 3) if unit else plural(float(rounded(drawn.value, 3)), "message")
        low, high = (float(rounded(end or 0.0, 3)) for end in (drawn.interval.low, drawn.interval.high))
        level = "" if parts else "95\u202f% CI "
        ends = between(low, high, unit, 3)
        parts.append(f"{words} ({level}{ends})" if _is_clear(drawn, fit) else f"{words} ({NO_INTERVAL})")
    one = len(parts) == 1 and parts[0].startswith("1 message")
    return f"{' and '.join(parts)} {'is' if one else 'are'} on its critical path" if parts else ""


def _rows(fit: Fit, needs: sensitivity.Needs, bursts: Bursts) -> list[_Row]:
    """Return the numbers that the trials show, in the order of the answer."""
    delay, rate = needs.joint or (None, None)
    rows: list[tuple[str, Quantity | None, str]] = [
        ("most one-way delay", needs.most_delay, "s"),
        ("least rate", needs.least_rate, "bit/s"),
        (_MESSAGES, sensitivity.quantity(fit.draws.messages) if fit.delay_matters else None, ""),
        (_BYTES, sensitivity.sent(fit, needs.here, bursts) if fit.rate_matters else None, "B"),
        (_HIDDEN, fit.hidden_delay if fit.delay_bends else None, "s"),
        ("most one-way delay, with the least rate", delay, "s"),
        ("least rate, with the most one-way delay", rate, "bit/s"),
    ]
    return [(name, drawn, unit) for name, drawn, unit in rows if drawn is not None]


def _figure(row: _Row, fit: Fit, where: dict[str, object]) -> Figure:
    name, drawn, unit = row
    ends = (drawn.interval.low, drawn.interval.high) if _is_clear(drawn, fit) else (None, None)
    return Figure(name, drawn.value, unit, *ends, where)
