"""The fitted model for static/network.js, and its values for other networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log10
from statistics import geometric_mean, median
from typing import Any, Final

import numpy as np

from analysis import numbers, sensitivity
from analysis.conclusions.observations.needs import FittedNetwork
from analysis.sensitivity import Fit, Link, Outcome, held_out


def held_out_table(fitted: FittedNetwork) -> dict[str, Any] | None:
    """Table of links, each predicted from the others; None if no link can be omitted."""
    outcomes = held_out(fitted.fit.runs)
    if not outcomes:
        return None
    return {
        "at": fitted.at,
        "inside": sum(outcome.inside for outcome in outcomes),
        "trials": sum(len(outcome.seconds) for outcome in outcomes),
        "error": numbers.amount(median(abs(outcome.error) for outcome in outcomes), numbers.SHARE, 2),
        "rows": [_row(outcome) for outcome in outcomes],
    }


def _row(outcome: Outcome) -> dict[str, Any]:
    predicted = outcome.prediction.elapsed
    return {
        "link": link_words(outcome.prediction.link),
        "predicted": numbers.amount(predicted.value, "s", 3),
        "interval": numbers.interval(predicted.interval, "s"),
        "measured": numbers.amount(geometric_mean(outcome.seconds), "s", 3),
        "error": numbers.percent_change(1 + outcome.error),
        "inside": f"{outcome.inside} of {len(outcome.seconds)}",
        "all_inside": outcome.inside == len(outcome.seconds),
    }


_DIGITS: Final = 8
"""Significant digits of the numbers in the page, more than it shows."""
_GIGABIT: Final = 1e9
_SLIDER: Final = (1e-6, 20e-3, 10e6, 100e9)
"""Default ends of the sliders: one-way delay (s) and rate (bit/s)."""


@dataclass(frozen=True, slots=True)
class LinkChange:
    """Another link: delay times ``delay``, rate ``rate`` or times ``rate_times``."""

    words: str
    delay: float = 1.0
    rate_times: float = 1.0
    rate: float | None = None

    def of(self, link: Link) -> Link:
        return replace(link, delay_s=link.delay_s * self.delay, rate_bps=self.rate or link.rate_bps * self.rate_times)


CHANGES: Final = (
    LinkChange("Half the delay", delay=0.5),
    LinkChange("A tenth of the delay", delay=0.1),
    LinkChange("No delay at all", delay=0.0),
    LinkChange("Twice the rate", rate_times=2),
    LinkChange("10 Gbit/s", rate=10 * _GIGABIT),
    LinkChange("10 Gbit/s and half the delay", delay=0.5, rate=10 * _GIGABIT),
    LinkChange("A tenth of the rate", rate_times=0.1),
    LinkChange("Ten times the delay", delay=10),
)


def link_effects(fit: Fit, link: Link) -> list[dict[str, Any]]:
    """Return the effect of each change of ``link`` in words."""
    gains = [(change, sensitivity.gain(fit, link, change.of(link))) for change in CHANGES]
    return [
        {
            "words": change.words,
            "link": link_words(effect.link),
            "elapsed": numbers.amount(effect.elapsed.value, "s", 3),
            "faster": numbers.times(effect.speedup.value),
            "interval": numbers.interval(effect.speedup.interval),
            "basis": "measured" if effect.measured else "extended",
        }
        for change, effect in gains
    ]


def link_words(link: Link) -> str:
    return f"{numbers.amount(link.delay_s, 's', 3)}, {numbers.amount(link.rate_bps, 'bit/s', 3)}"


def as_json(fitted: FittedNetwork) -> dict[str, Any]:
    """Return the model of one combination as JSON; times in s, rates in s/bit."""
    runs, draws = fitted.fit.runs, fitted.fit.draws
    columns = {
        "base": draws.base,
        "messages": draws.messages,
        "hidden_delay": draws.hidden_delay,
        "bits": draws.bits,
        "hidden_inverse_rate": draws.hidden_inverse_rate,
        "loss_timeouts": draws.loss_timeouts,
        "loss_round_trips": draws.loss_round_trips,
        "of_a_trial": draws.of_a_trial,
    }
    return {
        "at": fitted.at,
        "here": {"delay": fitted.here.delay_s, "rate": fitted.here.rate_bps, "loss": fitted.here.loss},
        "draws": {name: [numbers.rounded(value, _DIGITS) for value in column] for name, column in columns.items()},
        "measured": {
            name: [float(column.min()), float(column.max())]
            for name, column in (("delay", runs.delay), ("inverse_rate", runs.inverse_rate), ("loss", runs.loss))
        },
    }


def sliders(fitted: list[FittedNetwork]) -> dict[str, float]:
    """Return slider ends as powers of ten, their start, and the most loss."""
    delays = np.concatenate([fit.fit.runs.delay for fit in fitted])
    rates = np.concatenate([1 / fit.fit.runs.inverse_rate for fit in fitted])
    least_delay, most_delay, least_rate, most_rate = _SLIDER
    here = fitted[0].here
    return {
        "least_delay": log10(least_delay),
        "most_delay": log10(max(most_delay, 2 * delays.max())),
        "delay": round(log10(max(here.delay_s, least_delay)), 3),
        "least_rate": log10(min(least_rate, 0.5 * rates.min())),
        "most_rate": log10(max(most_rate, rates.max())),
        "rate": round(log10(here.rate_bps), 3),
        "loss": here.loss,
        "most_loss": max(float(fit.fit.runs.loss.max()) for fit in fitted),
    }
