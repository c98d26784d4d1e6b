"""What another setting gives, beside the curves of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from types import SimpleNamespace
from typing import Any

from analysis.statistics import Interval
from dashboard.panels.parts.steps import steps
from tests.words import plain


def row(delay: float, *values: float) -> Any:
    return SimpleNamespace(
        parameters={"link.delay": delay}, values={"elapsed_s": values}, median=lambda _: median(values)
    )


def told(over: Mapping[str, Any], under: Mapping[str, Any]) -> Interval:
    assert over["link.delay"] > under["link.delay"]
    return Interval(1.93, 2.07, 0.965, "Tukey")


def test_it_tells_each_step_with_the_interval_that_it_is_given() -> None:
    family = [row(0.001 * k, 1.0 + k, 1.02 * (1.0 + k)) for k in range(3)]

    ((_, words),) = steps({"": family}, "link.delay", "elapsed_s", told)

    assert plain(words) == "0 ms → 1 ms: 2× (1.93 to 2.07); 1 ms → 2 ms: 1.5× (1.93 to 2.07)"


def test_several_families_are_told_from_their_first_value_to_their_last() -> None:
    family = [row(0.001 * k, 1.0 + k) for k in range(3)]

    shown = steps({"a": family, "b": family}, "link.delay", "elapsed_s", lambda over, under: None)

    assert [(name, plain(words)) for name, words in shown] == [("a", "0 ms → 2 ms: 3×"), ("b", "0 ms → 2 ms: 3×")]
