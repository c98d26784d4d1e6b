"""Suggestions of what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from analysis.scaling import Point, Study, Suggestion
from analysis.scaling import points as next_points
from analysis.scaling.laws import USL, fit_law
from tests.analysis.scaling.studies import published_water, simulated, usl_time

_TRUTH = usl_time(100, 0.05, 0.01)
_TURNING = usl_time(100, 0.05, 0.03)


def suggest_points(study: Study, *, budget_trials: int, sizes: Sequence[float] | None = None) -> list[Suggestion]:
    """Suggest among all sizes up to 1.5 times the largest, if none are given."""
    measured = [point.parameters["hosts"] for point in study.points]
    whole = range(min(measured), int(1.5 * max(measured)) + 1) if measured else ()
    return next_points.suggest_points(study, budget_trials=budget_trials, sizes=whole if sizes is None else sizes)


def test_it_keeps_the_budget_and_suggests_at_most_five() -> None:
    study = simulated({"elapsed_s": _TRUTH}, repetitions=3)
    suggestions = suggest_points(study, budget_trials=23)
    assert 1 <= len(suggestions) <= 5
    assert sum(s.repetitions for s in suggestions) <= 23
    assert len({s.parameters["hosts"] for s in suggestions}) == len(suggestions)


@pytest.mark.filterwarnings("error")
def test_repetitions_that_are_all_equal_leave_defined_gains() -> None:
    equal = simulated({"elapsed_s": _TRUTH}, repetitions=3, noise=0)
    for suggestion in suggest_points(equal, budget_trials=20):
        assert suggestion.reduction is None or 0 < suggestion.reduction <= 1


def test_it_only_suggests_sizes_that_the_cluster_can_run() -> None:
    study = simulated({"elapsed_s": _TRUTH}, repetitions=3)
    suggestions = suggest_points(study, budget_trials=20, sizes=[2, 4, 6, 8, 10, 12])
    assert {s.parameters["hosts"] for s in suggestions} <= {2, 4, 6, 8, 10, 12}


def test_it_suggests_no_measured_size_that_the_cluster_has_lost() -> None:
    single = Study([Point({"hosts": n}, {"elapsed_s": [10.0 / n]}) for n in (1, 4)])
    assert {s.parameters["hosts"] for s in suggest_points(single, budget_trials=20)} == {1, 2, 4, 6}
    assert {s.parameters["hosts"] for s in suggest_points(single, budget_trials=20, sizes=[1, 2, 3])} == {1, 2}
    for study in (single, simulated({"elapsed_s": _TRUTH}, repetitions=3)):
        assert suggest_points(study, budget_trials=20, sizes=[]) == []


def test_measuring_what_it_suggests_narrows_the_best_size_more_than_repeating_evenly() -> None:
    def width(study: Study) -> float:
        fit = fit_law(USL, study, "elapsed_s", resamples=400)
        assert fit is not None
        assert fit.best_size is not None
        assert fit.best_size.interval is not None
        low, high = fit.best_size.interval.low, fit.best_size.interval.high
        return np.inf if low is None or high is None else high / low

    ratios = []
    for seed in range(12):
        study = simulated({"elapsed_s": _TRUTH}, seed=seed)
        rng = np.random.default_rng(1000 + seed)

        def more(sizes: list[tuple[int, int]], base: Study = study, rng: np.random.Generator = rng) -> Study:
            points = [
                Point({"hosts": n}, {"elapsed_s": (_TRUTH(n) * (1 + 0.05 * rng.standard_normal(k))).tolist()})
                for n, k in sizes
            ]
            return replace(base, points=[*base.points, *points])

        chosen = [(int(s.parameters["hosts"]), s.repetitions) for s in suggest_points(study, budget_trials=12)]
        even = [(int(p.parameters["hosts"]), 2) for p in study.points]
        ratios.append(width(more(chosen)) / width(more(even)))
    assert float(np.median(ratios)) < 1.0


def test_it_brackets_the_best_size_where_the_models_miss() -> None:
    bumpy = simulated({"elapsed_s": lambda n: _TURNING(n) * (1 + 0.06 * (n % 4 == 0))}, noise=0.005)
    suggestions = suggest_points(bumpy, budget_trials=25)
    assert [s.parameters["hosts"] for s in suggestions[:2]] == [5, 7]
    assert "models miss" in suggestions[0].reason
    assert suggestions[0].reduction is None


def test_it_brackets_the_best_printed_size_and_repeats_none() -> None:
    suggestions = suggest_points(published_water(), budget_trials=25)
    assert [s.parameters["hosts"] for s in suggestions] == [3, 5]
    assert suggestions[0].reason == "next to the best measured size, as no model predicts"


def test_where_no_model_predicts_it_measures_next_to_the_best_size() -> None:
    turning = simulated({"elapsed_s": lambda n: 5 + abs(n - 6)}, hosts=(2, 6, 12), repetitions=5)
    (below, above) = suggest_points(turning, budget_trials=25)
    assert [below.parameters["hosts"], above.parameters["hosts"]] == [4, 9]
    assert below.reason == "next to the best measured size, as no model predicts"


def test_where_no_model_predicts_and_the_largest_size_is_the_best_it_measures_beyond() -> None:
    falling = simulated({"elapsed_s": lambda n: 100 / n}, hosts=(1, 2, 4), repetitions=5)
    assert [s.parameters["hosts"] for s in suggest_points(falling, budget_trials=25)] == [3, 6]
    assert [s.parameters["hosts"] for s in suggest_points(falling, budget_trials=25, sizes=[1, 2, 3, 4])] == [3]


def test_a_study_without_repetitions_to_fit_is_repeated_first() -> None:
    points = [Point({"hosts": n, "steps": 100}, {"elapsed_s": [1.0]}) for n in (2,)]
    (suggestion,) = suggest_points(Study(points), budget_trials=10)
    assert (suggestion.parameters, suggestion.repetitions) == ({"hosts": 2, "steps": 100}, 2)


@pytest.mark.parametrize("study", [Study([]), simulated({"elapsed_s": _TRUTH})])
def test_it_suggests_nothing_without_a_study_or_a_budget(study: Study) -> None:
    assert suggest_points(study, budget_trials=0) == []
    assert suggest_points(Study([]), budget_trials=9) == []
