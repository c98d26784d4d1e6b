"""What a program needs from its network, where enough links were measured for slopes and bends (analysis.sensitivity)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analysis import sensitivity
from analysis.answers.answer import Figure
from analysis.answers.asked import Asked, Factor
from analysis.answers.grid import ordinal
from analysis.answers.wording import ANY, factor_words, place
from analysis.findings.wording import percent
from analysis.numbers import amount, between, plural, rounded
from analysis.scaling import Point
from analysis.sensitivity import Fit, Link, Quantity, Run, Runs

DELAY: Final = "link.delay"
RATE: Final = "link.bandwidth"
LOSS: Final = "link.loss"
_MODELLED: Final = frozenset({DELAY, RATE, LOSS})
FEWEST_LEVELS: Final = 4
"""Of delay or rate: with fewer, factors between them are told, not slopes and bends."""
_TOLD: Final = 1.25
"""What could hide an effect larger than this is not called none."""
_VAGUE: Final = 3.0
"""An interval whose ends are further apart than this does not tell a number."""
_ALONE: Final = 1.5
"""Fewer messages than this do not wait for each other."""


@dataclass(frozen=True, slots=True)
class Told:
    """One combination of the other factors."""

    sentence: str
    figures: tuple[Figure, ...]


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
    """What these points say the program needs; None where nothing of it can be told."""
    fitted = fit_of(asked, points)
    if fitted is None:
        return None
    fit, here = fitted
    told = sensitivity.needs(fit, here)
    if told.most_delay is None and told.least_rate is None:
        return None
    where = {f.name: points[0].parameters.get(f.name) for f in others}
    at = place(others, points[0].parameters)
    bounds = _bounds(asked, fit, told)
    here_words = f"{amount(told.elapsed.value, 's', 3)} at {amount(here.rate_bps, 'bit/s', 3)}"
    stays = f"it stays within {percent(told.tolerated)} of its {here_words} as long as {bounds}"
    sentence = f"{at}: {stays}" if at else stays[:1].upper() + stays[1:]
    why = _why(fit)
    return Told(f"{sentence}{f'; {why}' if why else ''}.", tuple(_figures(fit, told, where)))


def _bounds(asked: Asked, fit: Fit, told: sensitivity.Needs) -> str:
    """ "one-way delay is below 104 µs (74 to 220 µs) and the rate is above 410 Mbit/s (350 to 480 Mbit/s)"."""
    delay = None if told.most_delay is None else f"one-way delay is below {_bound(told.most_delay, 's')}"
    rate = None if told.least_rate is None else f"the rate is above {_bound(told.least_rate, 'bit/s')}"
    if delay and rate:
        return f"{delay} and {rate}"
    other = RATE if delay else DELAY
    words = _without_need(fit, told.here, other) if other in {f.name for f in asked.factors} else ""
    return f"{delay or rate}{f'; {words}' if words else ''}"


def _without_need(fit: Fit, here: Link, name: str) -> str:
    """What is known of a factor of which no effect is told: that there is little, or what it could be."""
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
        return f"what {to} does is not told by these links"
    return f"what {to} does cannot be told yet: at most {factor_words(most)} as long"


def _bound(drawn: Quantity, unit: str) -> str:
    low, high = drawn.interval.low, drawn.interval.high
    if not np.isfinite(drawn.value):
        return amount(low, unit, 2)
    ends = between(low, high, unit, 2) if low is not None and high is not None else ""
    return f"{amount(drawn.value, unit, 2)}{f' ({ends})' if ends else ''}"


def _why(fit: Fit) -> str:
    """How many messages wait for each other and what is sent meanwhile, as far as their intervals tell a number."""
    told = []
    if fit.delay_matters:
        messages = sensitivity.quantity(fit.draws.messages)
        if _clear(messages):
            waiting = _waiting(float(rounded(messages.value, 2)))
            hidden = fit.hidden_delay
            told.append(
                waiting + (f", {amount(hidden.value, 's', 2)} of each delay are hidden" if fit.delay_bends else "")
            )
    if fit.rate_matters:
        sent = sensitivity.quantity(fit.draws.bits / 8)
        if _clear(sent):
            told.append(f"{amount(sent.value, 'B', 2)} are sent while nothing else proceeds")
    return ", and ".join(told)


def _waiting(messages: float) -> str:
    if messages < _ALONE:
        return f"about {plural(messages, 'message')} one way is waited for"
    return f"about {plural(messages, 'message')} wait for each other in a row"


def _clear(drawn: Quantity) -> bool:
    low, high = drawn.interval.low, drawn.interval.high
    return bool(low and high and high < _VAGUE * low)


def _figures(fit: Fit, told: sensitivity.Needs, where: dict[str, object]) -> list[Figure]:
    rows: list[tuple[str, Quantity | None, str]] = [
        ("most one-way delay", told.most_delay, "s"),
        ("least rate", told.least_rate, "bit/s"),
        ("messages in a row", sensitivity.quantity(fit.draws.messages) if fit.delay_matters else None, ""),
        (
            "sent while nothing else proceeds",
            sensitivity.quantity(fit.draws.bits / 8) if fit.rate_matters else None,
            "B",
        ),
        ("hidden delay", fit.hidden_delay if fit.delay_bends else None, "s"),
    ]
    return [
        Figure(name, drawn.value, unit, drawn.interval.low, drawn.interval.high, where)
        for name, drawn, unit in rows
        if drawn is not None and np.isfinite(drawn.value)
    ]
