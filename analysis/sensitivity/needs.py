"""Needs, gains and predictions from the fitted model, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from analysis.sensitivity.fit import Fit
from analysis.sensitivity.fit import fit as fit_runs
from analysis.sensitivity.model import CARRIED, DELAY_ERROR_S, RATE_ERROR, Draws, Link, Quantity, Runs, quantity
from analysis.statistics.summary import Floats

TOLERATED: Final = 0.1
"""Longer than here by this share is still "the same" for a program's needs."""
_REACH: Final = 1.03
"""Beyond the harshest measured level by more than this, the model is extended, not read off."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Harshest link on which the program stays within ``tolerated`` of its time.

    The time is that on ``here``; each bound is with the other as on ``here``. None if the factor was not swept or has
    no measurable effect.
    """

    here: Link
    elapsed: Quantity
    """Seconds on ``here``."""
    tolerated: float
    most_delay: Quantity | None
    """Seconds one way."""
    least_rate: Quantity | None
    """bit/s."""
    joint: tuple[Quantity, Quantity] | None
    """Delay and rate that together keep the program within ``tolerated``, each with half of the time; None if one has no effect."""


@dataclass(frozen=True, slots=True)
class Bursts:
    """Bytes that leave a link ahead of its rate after a pause, by its certificate."""

    here_bytes: float
    slowest_bytes: float


NO_BURSTS: Final = Bursts(0.0, 0.0)
"""Bursts of links whose certificates did not measure them."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The change of the elapsed time from ``here`` to ``link``."""

    link: Link
    elapsed: Quantity
    """Seconds of the program, as a median of trials."""
    speedup: Quantity
    """Elapsed time here / there: above 1 is faster."""
    measured: bool
    """True if the link is within the measured range."""


def needs(fit: Fit, here: Link, *, tolerated: float = TOLERATED) -> Needs:
    """Return the bounds on delay and rate; ``here`` is the current link."""
    draws = fit.draws
    allowed = tolerated * draws.elapsed(here)
    both = fit.delay_matters and fit.rate_matters
    delay = _most_delay(draws, here, allowed) if fit.delay_matters else None
    rate = _least_rate(draws, here, allowed) if fit.rate_matters else None
    joint = (_most_delay(draws, here, allowed / 2), _least_rate(draws, here, allowed / 2)) if both else None
    return Needs(here, quantity(draws.elapsed(here)[:CARRIED]), tolerated, delay, rate, joint)


def _most_delay(draws: Draws, here: Link, allowed: Floats) -> Quantity:
    """Return the one-way delay (s) that adds ``allowed`` seconds, shape (draws,)."""
    delays = np.maximum(0, here.delay_s + DELAY_ERROR_S * _errors(draws, 1))
    per_delay = draws.messages + here.loss * draws.loss_round_trips
    paid = draws.messages * np.maximum(0, delays - draws.hidden_delay)
    return quantity(np.maximum(delays, draws.hidden_delay + _quotient(allowed + paid, per_delay)))


def _least_rate(draws: Draws, here: Link, allowed: Floats) -> Quantity:
    """Return the rate (bit/s) that adds ``allowed`` seconds, shape (draws,)."""
    slower = here.inverse_rate * (1 + RATE_ERROR * _errors(draws, 2))
    paid = draws.bits * np.maximum(0, slower - draws.hidden_inverse_rate)
    slowest = draws.hidden_inverse_rate + _quotient(allowed + paid, draws.bits)
    return _inverse(quantity(np.maximum(slower, slowest)))


def _errors(draws: Draws, seed: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(len(draws))


def _quotient(effect: Floats, slope: Floats) -> Floats:
    """Return effect / slope, infinite without a slope."""
    return np.divide(effect, slope, out=np.full_like(effect, np.inf), where=slope > 0)


def _inverse(drawn: Quantity) -> Quantity:
    low, high = drawn.interval.low, drawn.interval.high
    interval = type(drawn.interval)(
        None if high is None else 1 / high, None if not low else 1 / low, drawn.interval.level, drawn.interval.method
    )
    return Quantity(1 / drawn.value, interval)


def sent(fit: Fit, here: Link, bursts: Bursts = NO_BURSTS) -> Quantity:
    """Return the bytes on the critical path.

    A burst leaves a link ahead of its rate after a pause, so each message costs up to as many bytes fewer: all of them if it is as
    long and the pause before it fills the bucket, none in a stream. The value takes half of that, the interval holds both ends.
    """
    draws = fit.draws
    slowest = float(fit.runs.inverse_rate.max())
    ahead_here = 8 * bursts.here_bytes * draws.messages * here.inverse_rate
    pauses_s = np.maximum(0, draws.elapsed(here) + ahead_here - draws.bits * here.inverse_rate)
    ahead = np.minimum(8 * bursts.slowest_bytes * draws.messages, pauses_s / slowest)
    least, middle, most = (quantity((draws.bits + share * fit.delay_matters * ahead) / 8) for share in (0.0, 0.5, 1.0))
    return replace(middle, interval=replace(middle.interval, low=least.interval.low, high=most.interval.high))


def gain(fit: Fit, here: Link, link: Link) -> Gain:
    """Return what ``link`` instead of ``here`` gives."""
    there = fit.draws.elapsed(link)
    return Gain(link, quantity(there), quantity(fit.draws.elapsed(here) / there), within(fit, link))


def within(fit: Fit, link: Link) -> bool:
    """Return whether ``link`` is within the range of measured links."""
    runs = fit.runs
    return all(
        column.min() / _REACH <= value <= column.max() * _REACH
        for column, value in (
            (runs.delay, link.delay_s),
            (runs.inverse_rate, link.inverse_rate),
            (runs.loss, link.loss),
        )
    )


def relative_times(fit: Fit, here: Link, delays_s: Sequence[float], rates_bps: Sequence[float]) -> Floats:
    """Return median times relative to ``here``, shape (rates, delays)."""
    on_here = fit.draws.elapsed(here)
    return np.array(
        [
            [float(np.median(fit.draws.elapsed(Link(delay, rate, here.loss)) / on_here)) for delay in delays_s]
            for rate in rates_bps
        ]
    )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction of one trial on any link."""

    link: Link
    elapsed: Quantity
    """Seconds; the interval is that of one trial."""
    measured: bool


def predict(fit: Fit, link: Link, *, level: float = 0.9) -> Prediction:
    """Return the prediction of one more trial on ``link``, with its interval.

    Its value is that of ``gain`` and ``needs``: the median of the program's time, without the scatter of a trial.
    """
    of_a_trial = quantity(fit.draws.trial(link), level=level)
    return Prediction(link, replace(of_a_trial, value=quantity(fit.draws.elapsed(link)).value), within(fit, link))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One link: its prediction from the others, and its measured times."""

    prediction: Prediction
    seconds: tuple[float, ...]

    @property
    def error(self) -> float:
        """Return predicted / measured - 1, with the geometric mean of the trials."""
        return float(self.prediction.elapsed.value / np.exp(np.mean(np.log(self.seconds))) - 1)

    @property
    def inside(self) -> int:
        """Return the number of trials within the interval."""
        ends = self.prediction.elapsed.interval
        return sum((ends.low or 0.0) <= value <= (ends.high or np.inf) for value in self.seconds)


def held_out(runs: Runs, *, level: float = 0.9) -> list[Outcome]:
    """Return the outcome of every link, predicted from the others."""
    columns = np.stack([runs.delay, runs.inverse_rate, runs.loss])
    links, members = np.unique(columns, axis=1, return_inverse=True)
    members = members.reshape(-1)
    outcomes = []
    if links.shape[1] < 2:
        return []
    for number, (delay, inverse_rate, loss) in enumerate(links.T):
        is_held_out = members == number
        try:
            fitted = fit_runs(
                Runs(*(column[~is_held_out] for column in (runs.delay, runs.inverse_rate, runs.loss, runs.elapsed)))
            )
        except ValueError:  # the others are too few, or all one link
            continue
        link = Link(float(delay), float(1 / inverse_rate), float(loss))
        outcomes.append(Outcome(predict(fitted, link, level=level), tuple(map(float, runs.elapsed[is_held_out]))))
    return outcomes


@dataclass(frozen=True, slots=True)
class BestSize:
    """One program at several sizes on one link."""

    link: Link
    elapsed: tuple[Quantity, ...]
    """Seconds at each size, as a median of trials."""
    best: int
    """Place of the size that is the fastest in most draws."""
    share: float
    """Share of the draws in which it is."""
    measured: bool
    """True if the link is within the measured range of every fit."""


def best_size_on(fits: Sequence[Fit], link: Link) -> BestSize:
    """Return the best size on ``link``; ``fits`` are by ascending size.

    ValueError for fewer than two sizes.
    """
    if len(fits) < 2:
        raise ValueError("scaling takes at least two sizes")
    draws = min(len(fit.draws) for fit in fits)
    elapsed = np.stack([fit.draws.first(draws).elapsed(link) for fit in fits])
    wins = np.bincount(elapsed.argmin(axis=0), minlength=len(fits))
    return BestSize(
        link,
        tuple(quantity(row) for row in elapsed),
        int(wins.argmax()),
        float(wins.max() / draws),
        all(within(fit, link) for fit in fits),
    )
