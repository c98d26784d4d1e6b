"""One quantity has one interval: all views give the intervals of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from analysis.conclusions import ExperimentQuestion, answer, experiment_intervals
from analysis.conclusions.observations.scatter import SimultaneousIntervals
from analysis.scaling import Study, scaling_table
from tests.analysis.conclusions.designs import GFLOPS, HOSTS, METHOD, MOLECULES, asks

SIZES = {1: 9.0, 2: 5.9, 3: 5.5, 4: 6.2, 8: 15.0}
METHODS = {(2, "pull"): 0.7, (2, "tree"): 0.71, (4, "pull"): 1.9, (4, "tree"): 0.7}


def unsteady(asked: ExperimentQuestion, spread: float = 0.04) -> ExperimentQuestion:
    random = np.random.default_rng(11)
    points = [
        replace(p, values={m: [v * float(np.exp(spread * random.standard_normal())) for v in vs] for m, vs in p.values.items()})
        for p in asked.points
    ]  # fmt: skip
    return replace(asked, points=points)


@pytest.mark.parametrize(
    "asked",
    [
        asks([HOSTS], SIZES),
        asks([HOSTS], {size: 100 / time for size, time in SIZES.items()}, deciding=GFLOPS),
        asks([HOSTS, METHOD], METHODS),
        asks([HOSTS, MOLECULES], {(h, m): t * m for h, t in SIZES.items() for m in (1, 2)}),
    ],
)
def test_it_gives_the_intervals_of_the_answer(asked: ExperimentQuestion) -> None:
    asked = unsteady(asked)
    output, given = experiment_intervals(asked), answer(asked)
    where = {repr(sorted(p.parameters.items())): p.parameters for p in asked.points}
    values = [f for f in given.figures if f.name == asked.deciding.label]
    ratios = [f for f in given.figures if f.name == "times the best"]
    best = {f.value for f in given.figures if f.name == "best size"}
    assert len(values) == len(asked.points)
    for figure in values:
        interval = output.value(where[repr(sorted(figure.where.items()))])
        assert interval is not None
        assert (interval.low, interval.high) == (figure.low, figure.high)
    assert ratios
    for figure in ratios if len(best) == 1 else ():
        here = dict(figure.where)
        there = {**here, "hosts": int(next(iter(best)))}
        interval = output.ratio(there, here) if asked.deciding.higher_is_better else output.ratio(here, there)
        assert interval is not None
        assert (interval.low, interval.high) == (figure.low, figure.high)


def test_points_that_the_answer_does_not_compare_have_no_ratio() -> None:
    asked = asks([HOSTS, MOLECULES], {(h, m): t * m for h, t in SIZES.items() for m in (1, 2)})
    output = experiment_intervals(asked)
    assert output.ratio({"hosts": 1, "molecules": 1}, {"hosts": 2, "molecules": 1}) is not None
    assert output.ratio({"hosts": 1, "molecules": 1}, {"hosts": 1, "molecules": 2}) is None
    assert output.value({"hosts": 5, "molecules": 1}) is None
    assert experiment_intervals(replace(asked, points=())).value({"hosts": 1, "molecules": 1}) is None


def test_the_table_by_size_and_the_answer_give_one_interval() -> None:
    asked = unsteady(asks([HOSTS], SIZES))
    rows = scaling_table(Study(asked.points, intervals=experiment_intervals(asked)))
    figures = {f.where["hosts"]: f for f in answer(asked).figures if f.name == "Elapsed time"}
    for row in rows:
        output = figures[int(row.size)]
        assert (row.elapsed.median, row.elapsed.interval and row.elapsed.interval.low) == (
            pytest.approx(output.value),
            output.low,
        )
    best = next(f for f in answer(asked).figures if f.name == "times the best" and f.where["hosts"] == 1)
    at_best = next(row for row in rows if row.size == 3)
    assert (at_best.speedup.value, at_best.speedup.low, at_best.speedup.high) == (
        pytest.approx(best.value),
        best.low,
        best.high,
    )


def test_what_is_reported_is_the_median_and_is_in_its_interval() -> None:
    """The interval is narrower than mean to median of a thousand skewed values."""
    random = np.random.default_rng(5)
    skewed = [(k + 1) * np.exp(random.exponential(0.1, 1000)) for k in range(3)]
    claims = SimultaneousIntervals(skewed)
    for i in range(3):
        interval = claims.value(i)
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low <= np.median(skewed[i]) <= interval.high
        assert interval.high / interval.low < np.mean(skewed[i]) / np.median(skewed[i])


def test_a_pair_whose_medians_do_not_differ_is_not_distinguished() -> None:
    """Outliers alone move a mean: a claim needs the medians to say the same."""
    steady = [[1.0] * 8 + [1.01] * 7, [1.0] * 8 + [1.3] * 7]
    assert not SimultaneousIntervals(steady).larger(1, 0)


def asked_of_all(claims: SimultaneousIntervals, means: Sequence[float], errors: float) -> set[tuple[int, int]]:
    """Return the pairs of ordered points that differ, pair by pair.

    The difference of a pair exceeds the width of its range, and around it every wider range differs too.
    """
    n = len(means)
    widths = claims._steps(n, claims.scatter.freedom)  # type: ignore[union-attr]
    output: set[tuple[int, int]] = set()
    for span in range(n, 1, -1):
        for first in range(n - span + 1):
            last = first + span - 1
            around = [(a, b) for a, b in ((first - 1, last), (first, last + 1)) if a >= 0 and b < n]
            if means[last] - means[first] > widths[span - 2] * errors and all(pair in output for pair in around):
                output.add((first, last))
    return output


@pytest.mark.parametrize("apart", [0.0, 0.02, 0.05, 0.2])
def test_it_separates_the_pairs_that_one_by_one_differ(apart: float) -> None:
    random = np.random.default_rng(2)
    groups = [np.exp(apart * k + 0.05 * random.standard_normal(4)) for k in random.permutation(9)]
    claims = SimultaneousIntervals(groups)
    assert claims.scatter is not None
    order = sorted(range(9), key=lambda i: claims.cells[i].mean)
    expected = asked_of_all(claims, [claims.cells[i].mean for i in order], claims.scatter.sd * np.sqrt(2 / 4))
    found = {(a, b) for a in range(9) for b in range(a + 1, 9) if claims._step(order[b], order[a]) is not None}
    assert found == expected
