"""Sizes that rounds choose, on curves of known shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from analysis.conclusions import ExperimentQuestion
from analysis.conclusions.exploring import first_sizes, next_sizes, possible_sizes
from analysis.conclusions.goals import decide
from analysis.conclusions.observations.grid import SizeGrid
from analysis.scaling import Point
from tests.analysis.conclusions.truth import HOSTS, TIME

ALL = range(1, 65)


def curve_of(times: Mapping[int, float]) -> SizeGrid:
    """Return a curve of three repetitions that scatter by 0.5 %."""
    points = [Point({"hosts": n}, {TIME.metric: [t, 1.005 * t, 0.995 * t]}) for n, t in times.items()]
    return SizeGrid(ExperimentQuestion(points=points, deciding=TIME, factors=[HOSTS]), HOSTS)


def knee(sizes: Sequence[int], best: int) -> dict[int, float]:
    return {n: 100 * (1 / n + n / best**2 + 0.1) for n in sizes}


@pytest.mark.parametrize(
    ("allowed", "first"),
    [
        (ALL, [1, 4, 16]),
        (range(1, 5), [1, 2, 4]),
        (range(1, 9), [1, 2, 4, 8]),
        ([3, 5], [3, 5]),
        ([2, 4, 60], [2, 4, 60]),
    ],
)
def test_first_sizes_are_few(allowed: Sequence[int], first: list[int]) -> None:
    assert first_sizes(allowed) == first


def test_next_size_is_the_best_one_of_the_law() -> None:
    assert next_sizes(curve_of(knee([1, 4, 16], 8)), ALL, 0.02).sizes == [8]


def test_next_size_is_larger_while_the_largest_is_best() -> None:
    assert next_sizes(curve_of(knee([1, 4], 24)), ALL, 0.02).sizes == [16]
    assert next_sizes(curve_of(knee([1, 4, 16], 40)), ALL, 0.02).sizes[0] > 16


def test_next_size_divides_the_gap_beside_the_best_without_a_law() -> None:
    times = {1: 10.0, 2: 10.2, 16: 5.0, 64: 9.0}

    assert next_sizes(curve_of(times), ALL, 0.02).sizes == [6]


def test_no_size_follows_once_the_best_has_close_neighbours() -> None:
    assert not next_sizes(curve_of(knee([1, 4, 6, 8, 16], 6)), ALL, 0.02).sizes
    assert not next_sizes(curve_of(knee([1, 2, 3, 4], 8)), [1, 2, 3, 4], 0.02).sizes


def test_sizes_near_a_failed_one_are_impossible() -> None:
    assert possible_sizes(ALL, [1, 4, 16], [64]) == list(range(1, 33))
    assert possible_sizes(range(8, 17), [8, 16], [11]) == [8, 9, 14, 15, 16]
    assert possible_sizes(ALL, [1], []) == list(ALL)


def test_next_size_needs_no_result_of_the_smallest() -> None:
    times = {n: n - 1 - 0.02 / n for n in (2, 4, 8)}

    assert next_sizes(curve_of(times), range(1, 9), 0.02).sizes == [3]


@pytest.mark.parametrize(("why", "are_impossible"), [("failed", True), ("lost", True), ("cancelled", False)])
def test_cancelled_size_is_no_failed_one(why: str, are_impossible: bool) -> None:
    times = {n: 100 / n for n in (1, 4, 16)}
    points = [*curve_of(times).points, Point({"hosts": 64}, {}, excluded={why: 3})]
    question = ExperimentQuestion(points=points, deciding=TIME, factors=[HOSTS], equal=1.02)

    decision = decide(question, precision=None, at_most=30, at_least=3, sizes=ALL)

    sizes = [parameters["hosts"] for parameters, _ in decision.more]
    assert (max(sizes) < 33) == are_impossible
