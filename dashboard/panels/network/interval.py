"""How the model's predictions turned out on the links that were measured, in words."""

from __future__ import annotations

from statistics import median
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.needs import Fitted
from analysis.sensitivity import Outcome, held_out
from dashboard.panels.network.model import link_words


def belief(fitted: Fitted) -> dict[str, Any] | None:
    """The table of links, each left out of the fit, with its sums; None where no link can be left out."""
    outcomes = held_out(fitted.fit.runs)
    if not outcomes:
        return None
    return {
        "at": fitted.at,
        "inside": sum(each.inside for each in outcomes),
        "trials": sum(len(each.seconds) for each in outcomes),
        "error": numbers.amount(median(abs(each.error) for each in outcomes), numbers.SHARE, 2),
        "rows": [_row(each) for each in outcomes],
    }


def _row(outcome: Outcome) -> dict[str, Any]:
    foretold = outcome.prediction.elapsed
    return {
        "link": link_words(outcome.prediction.link),
        "predicted": numbers.amount(foretold.value, "s", 3),
        "interval": numbers.interval(foretold.interval, "s"),
        "measured": numbers.amount(median(outcome.seconds), "s", 3),
        "error": numbers.percent_change(1 + outcome.error),
        "inside": f"{outcome.inside} of {len(outcome.seconds)}",
        "all_inside": outcome.inside == len(outcome.seconds),
    }
