"""What another setting gives, beside the curves of a grid."""

from __future__ import annotations

from statistics import median
from types import SimpleNamespace
from typing import Any

from dashboard.parts.steps import steps
from tests.words import plain


def row(delay: float, *values: float) -> Any:
    return SimpleNamespace(
        parameters={"link.delay": delay}, values={"elapsed_s": values}, median=lambda _: median(values)
    )


def test_its_interval_takes_the_scatter_of_all_rows_together() -> None:
    family = [row(0.001 * k, 1.0 + k, 1.02 * (1.0 + k)) for k in range(6)]
    alone = [row(0.0, 1.0, 1.02), row(0.001, 2.0, 2.04)]

    ((_, together),) = steps({"": family}, "link.delay", "elapsed_s")
    ((_, apart),) = steps({"": alone}, "link.delay", "elapsed_s")

    assert "0 ms → 1 ms: 2× (95 % CI 1.93 to 2.07)" in plain(together)
    assert "0 ms → 1 ms: 2× (95 % CI 1.88 to 2.12)" in plain(apart)


def test_values_that_were_not_repeated_have_no_interval() -> None:
    assert "CI" not in steps({"": [row(0.0, 1.0), row(0.001, 2.0)]}, "link.delay", "elapsed_s")[0][1]
