"""Network needs of a program, if there are enough links (analysis.sensitivity)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis import sensitivity
from analysis.conclusions.answer import Figure
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import ordinal
from analysis.conclusions.wording import point_words
from analysis.scaling import Point
from analysis.sensitivity import NO_BURSTS, Bursts, Fit, Link, Quantity, Run, Runs
from analysis.statistics import Interval

DELAY: Final = "link.delay"
RATE: Final = "link.bandwidth"
LOSS: Final = "link.loss"
_MODELLED: Final = frozenset({DELAY, RATE, LOSS})
FEWEST_LEVELS: Final = 4
"""Values of delay or rate; with fewer, the answer states factors between them instead of slopes and bends."""
VAGUE: Final = 10.0
"""An interval whose ends differ by a larger factor is not shown as numbers."""
_FEWEST_FREEDOM: Final = 2
"""Degrees of freedom below which no interval is shown."""
_BURST: Final = "link.burst"
MESSAGES: Final = "messages in a row"
BYTES: Final = "sent while nothing else proceeds"
_HIDDEN: Final = "hidden delay"
Row = tuple[str, Quantity, str]
"""Name, estimate and unit of a number."""


@dataclass(frozen=True, slots=True)
class NetworkNeeds:
    """The network needs of one combination of the other factors."""

    fit: Fit
    here: Link
    needs: sensitivity.Needs
    rows: tuple[Row, ...]

    @property
    def is_vague(self) -> bool:
        """Return whether a number has no interval that can be shown."""
        return any(not self.is_clear(drawn) for name, drawn, _ in self.rows if name != _HIDDEN)

    def is_clear(self, drawn: Quantity) -> bool:
        return self.fit.freedom >= _FEWEST_FREEDOM and is_clear(drawn.interval)

    def figures(self, where: Mapping[str, object]) -> list[Figure]:
        """Return the numbers as figures of the answer."""
        return [
            Figure.within(name, drawn.value, unit, drawn.interval if self.is_clear(drawn) else None, where)
            for name, drawn, unit in self.rows
            if np.isfinite(drawn.value)
        ]


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """The model of one combination of the other factors."""

    at: str
    """The combination in words; empty for a single one."""
    where: dict[str, object]
    fit: Fit
    here: Link
    """The mildest link that was measured: the one that the program runs on today."""
    points: tuple[Point, ...]


def fits_of(question: ExperimentQuestion) -> list[FittedNetwork]:
    """Return the models of all combinations, by ascending levels of the other factors."""
    others = [f for f in question.factors if f.role != "network"]
    parts: dict[tuple[object, ...], list[Point]] = {}
    for point in question.measured():
        parts.setdefault(tuple(point.parameters.get(f.name) for f in others), []).append(point)
    ordered = sorted(parts.items(), key=lambda part: [(ordinal(level), str(level)) for level in part[0]])
    return [
        FittedNetwork(
            point_words(others, points[0].parameters) if len(parts) > 1 else "",
            dict(zip((f.name for f in others), levels, strict=True)),
            *fitted,
            tuple(points),
        )
        for levels, points in ordered
        if (fitted := fit_of(question, points)) is not None
    ]


def fit_of(question: ExperimentQuestion, points: Sequence[Point]) -> tuple[Fit, Link] | None:
    """Return the model of these points and their mildest link; None if too few."""
    unit_s = question.deciding.seconds
    if question.published or unit_s is None:
        return None
    network = {f.name for f in question.of_role("network")}
    if not network & {DELAY, RATE} or network - _MODELLED:
        return None
    if max(len({p.parameters.get(name) for p in points}) for name in (DELAY, RATE)) < FEWEST_LEVELS:
        return None
    measured = [(link, point) for point in points if (link := link_of(point)) is not None]
    runs = [Run(link, unit_s * value) for link, point in measured for value in question.values(point)]
    try:
        fitted = sensitivity.fit(Runs.of(runs))
    except ValueError:  # too few of the trials have ended yet
        return None
    return fitted, _mildest([link for link, _ in measured])


def _mildest(links: Sequence[Link]) -> Link:
    """Return the link with the least loss, delay and inverse rate.

    Each counts as a share of its range: certificates of one rate scatter.
    """
    delay, inverse_rate = (
        max(column) or 1.0 for column in zip(*((e.delay_s, e.inverse_rate) for e in links), strict=True)
    )
    return min(links, key=lambda link: (link.loss, link.delay_s / delay + link.inverse_rate / inverse_rate))


def link_of(point: Point) -> Link | None:
    """Return the measured link of a point, else the specified one, else None."""
    specified = {name: point.parameters.get(name) for name in _MODELLED}
    rate = point.link.get(RATE) or specified[RATE]
    if not rate:
        return None
    delay = point.link.get(DELAY, specified[DELAY] or 0.0)
    # Few packets do not measure a loss: the specified one is closer to the truth.
    return Link(max(0.0, float(delay)), float(rate), float(specified[LOSS] or 0.0))


def needed_of(question: ExperimentQuestion, points: Sequence[Point]) -> NetworkNeeds | None:
    """Return the bounds of these points; None if the network has no measurable effect."""
    fitted = fit_of(question, points)
    if fitted is None:
        return None
    fit, here = fitted
    needs = sensitivity.needs(fit, here)
    if needs.most_delay is None and needs.least_rate is None:
        return None
    delay, rate = needs.joint or (None, None)
    rows: list[tuple[str, Quantity | None, str]] = [
        ("most one-way delay", needs.most_delay, "s"),
        ("least rate", needs.least_rate, "bit/s"),
        (MESSAGES, sensitivity.quantity(fit.draws.messages) if fit.delay_matters else None, ""),
        (BYTES, sensitivity.sent(fit, needs.here, bursts_of(points)) if fit.rate_matters else None, "B"),
        (_HIDDEN, fit.hidden_delay if fit.delay_bends else None, "s"),
        ("most one-way delay, with the least rate", delay, "s"),
        ("least rate, with the most one-way delay", rate, "bit/s"),
    ]
    return NetworkNeeds(fit, here, needs, tuple((name, drawn, unit) for name, drawn, unit in rows if drawn is not None))


def bursts_of(points: Sequence[Point]) -> Bursts:
    """Return the certified bursts of the fastest and the slowest link."""
    measured = [(point.link[RATE], point.link[_BURST]) for point in points if {RATE, _BURST} <= point.link.keys()]
    return Bursts(max(measured)[1], min(measured)[1]) if measured else NO_BURSTS


def is_clear(interval: Interval) -> bool:
    """Return whether the ends of an interval are close enough to be shown."""
    low, high = interval.low, interval.high
    return bool(low and low > 0 and high and high <= VAGUE * low)
