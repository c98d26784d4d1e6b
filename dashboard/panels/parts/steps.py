"""What another setting gives, in words: a metric at one value of a swept parameter over the same at another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from analysis import numbers
from analysis.statistics import Interval
from dashboard.labels import value_words
from experiments.selectors import ConfigurationRow

IntervalOf = Callable[[Mapping[str, Any], Mapping[str, Any]], Interval | None]
"""Of the ratio of two points, by their parameters."""


def steps(
    families: Mapping[str, Sequence[ConfigurationRow]], x: str, metric: str, interval_of: IntervalOf
) -> list[tuple[str, str]]:
    """Return (family, words) for each family of rows: a single one step by step, several from their first value to their last.

    The words are ratios of medians with the intervals of the experiment's answer; none where no row was repeated.
    """
    told = []
    for name, family in families.items():
        ordered = sorted((row for row in family if row.median(metric)), key=lambda row: row.parameters[x])
        pairs = (
            list(pairwise(ordered)) if len(families) == 1 else [(ordered[0], ordered[-1])] if len(ordered) > 1 else []
        )
        if words := "; ".join(_step(first, second, x, metric, interval_of) for first, second in pairs):
            told.append((name, words))
    return told


def _step(first: ConfigurationRow, second: ConfigurationRow, x: str, metric: str, interval_of: IntervalOf) -> str:
    ratio = (second.median(metric) or 0.0) / (first.median(metric) or 1.0)
    ends = numbers.interval(interval_of(second.parameters, first.parameters))
    change = f"{value_words(x, first.parameters[x])} → {value_words(x, second.parameters[x])}"
    return f"{change}: {numbers.times(ratio)}" + (f" ({ends})" if ends else "")
