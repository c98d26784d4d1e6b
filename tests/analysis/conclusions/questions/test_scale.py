"""Answers of sweeps over hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.conclusions import Deciding, Factor, Scatter, answer
from analysis.conclusions.text import render
from analysis.scaling import Point
from tests.analysis.conclusions.designs import GFLOPS, HOSTS, JOBS, asks, checked, values
from tests.words import plain


def test_it_stops_at_the_knee_and_names_the_largest_part_of_the_loss():
    times, cpu = {1: 10.0, 2: 6.0, 4: 9.0}, {1: 9.5, 2: 5.0, 4: 5.0}

    result = checked(asks([HOSTS], times, cpu_mean_rank_s=cpu))

    assert result.strength == "firm"
    assert values(result, "best size") == [2]
    assert values(result, "as good") == []
    assert result.causes[0].explains == pytest.approx(3.0, rel=0.02)
    assert result.causes[0].part == "off_cpu"


def test_the_scatter_hides_no_less_than_differences_that_are_not_measurable():
    trials = {1: [9.0, 10.0, 11.0], 2: [9.5, 10.5, 11.6], 4: [16.0, 16.5, 11.5]}
    question = asks([HOSTS], {1: 10.0, 2: 10.5, 4: 16.0})
    points = [replace(point, values={"elapsed_s": trials[point.parameters["hosts"]]}) for point in question.points]
    result = answer(replace(question, points=points))
    assert max(values(result, "times the best")) == pytest.approx(1.6)
    assert "hides changes below 60 %" in plain(result.sentence)


def test_it_compares_the_next_size_and_names_a_single_trial():
    question = asks([HOSTS], {1: 10.0, 2: 6.0, 3: 8.0, 4: 20.0})
    result = checked(question)
    assert "3 hosts take 1.33 times" in plain(result.sentence)
    assert "one trial" not in result.sentence
    points = [
        replace(point, values={name: values[:1] for name, values in point.values.items()})
        if point.parameters["hosts"] == 3
        else point
        for point in question.points
    ]
    assert "as long as 2 hosts, in one trial" in plain(answer(replace(question, points=points)).sentence)


def test_the_smallest_of_equal_sizes_is_enough():
    result = checked(asks([HOSTS], {1: 10.0, 2: 5.02, 4: 5.0, 8: 7.0}))

    assert values(result, "enough") == [2]
    assert values(result, "best size") == [4]
    assert values(result, "as good") == [2]
    assert result.strength == "firm"
    assert result.missing is None, "nothing is left to decide"
    assert result.sentence.startswith("2 hosts are enough: 5.02 s")


def test_sizes_that_may_differ_by_much_are_not_called_equal():
    result = checked(asks([HOSTS], {1: 10.0, 2: 5.3, 4: 5.0, 8: 9.0}, repetitions=(0.9, 1.0, 1.1)))

    assert values(result, "enough") == [2]
    assert result.strength == "moderate"
    assert result.missing is not None
    assert {p["hosts"] for p, _ in result.missing.points} == {2, 4}


def test_the_first_size_of_a_plateau_is_enough():
    result = checked(asks([HOSTS], {1: 10.0, 2: 5.0, 4: 4.0, 8: 4.01}))

    assert values(result, "enough") == [4]
    assert set(values(result, "best size") + values(result, "as good")) == {4, 8}


def test_the_largest_size_is_best_where_it_still_gains():
    result = checked(asks([HOSTS], {1: 10.0, 2: 5.1, 4: 2.7}))

    assert values(result, "enough") == values(result, "best size") == [4]
    assert values(result, "as good") == []


def test_neither_end_is_worse_where_only_the_middle_is():
    result = checked(asks([HOSTS], {1: 5.0, 2: 8.0, 4: 5.01}))

    assert set(values(result, "best size") + values(result, "as good")) == {1, 4}
    assert values(result, "enough") == [1]


def test_a_rate_is_better_where_it_is_higher():
    result = checked(asks([HOSTS], {1: 1.0, 2: 1.8, 4: 1.2}, deciding=GFLOPS))

    assert values(result, "best size") == [2]
    assert "4 hosts reach 0.67 times the rate of 2 hosts" in plain(result.sentence)


def test_equal_sizes_make_no_difference_and_bound_it():
    result = checked(asks([HOSTS], {1: 5.0, 2: 5.0, 4: 5.0}))

    assert result.strength == "firm"
    assert values(result, "enough") == [1]
    assert 0 < values(result, "largest difference")[0] < 0.06


def test_one_repetition_without_known_scatter_is_open():
    result = checked(asks([HOSTS], {1: 10.0, 2: 9.0, 4: 11.0}, repetitions=[1.0], trial_s=30.0))

    assert result.strength == "open"
    assert values(result, "enough") == []
    assert result.missing is not None
    assert result.missing.seconds == 30 * sum(more for _, more in result.missing.points)


def test_one_repetition_with_known_scatter_is_moderate():
    result = checked(
        asks(
            [HOSTS], {1: 10.0, 2: 6.0, 4: 11.0}, repetitions=[1.0], prior=Scatter(0.02, 10, "warm-ups and control runs")
        )
    )

    assert result.strength == "moderate"
    assert values(result, "best size") == [2]


@pytest.mark.parametrize("typical", [{1: 10.0}, {2: 10.0}])
def test_one_finished_size_is_inconclusive(typical):
    assert checked(asks([HOSTS], typical)).strength == "open"


def test_no_finished_trial_is_said():
    result = checked(asks([HOSTS], {1: 1.0, 2: 1.0}, repetitions=[]))

    assert (result.sentence, result.strength) == ("No trial has finished.", "open")


def test_printed_values_are_as_printed():
    result = checked(asks([HOSTS], {1: 10.0, 2: 6.0, 4: 9.0}, repetitions=[1.0], published=True))

    assert result.strength == "printed"
    assert values(result, "best size") == [2]


def test_every_load_gets_its_own_best_size():
    result = checked(asks([HOSTS, JOBS], {(1, 1): 10.0, (2, 1): 5.0, (1, 9): 10.0, (2, 9): 30.0}))

    assert values(result, "best size", jobs=1) == [2]
    assert values(result, "best size", jobs=9) == [1]


@pytest.mark.parametrize(
    ("flagged", "words"), [(3, "all flagged: 1 packet in 7 lost"), (1, "without a value of mean rate")]
)
def test_finished_trials_without_the_deciding_metric_say_why(flagged, words):
    question = asks([HOSTS], {1: 1.0}, deciding=Deciding("throughput_Bps", "Mean rate", "B/s"), elapsed_s={1: 2.0})
    point = replace(question.points[0], trust={"degraded": flagged}, trust_reasons=["1 packet in 7 lost"])
    del point.values["throughput_Bps"]

    result = answer(replace(question, points=[point]))

    assert result.strength == "open"
    assert plain(result.sentence).startswith("3 trials finished")
    assert words in plain(result.sentence)


def test_causes_of_several_groups_name_their_group():
    times = {(1, 1): 10.0, (2, 1): 6.0, (4, 1): 9.0, (1, 9): 20.0, (2, 9): 12.0, (4, 9): 18.0}
    cpu = {(1, 1): 9.5, (2, 1): 5.0, (4, 1): 5.0, (1, 9): 19.0, (2, 9): 10.0, (4, 9): 10.0}

    result = answer(asks([HOSTS, JOBS], times, cpu_mean_rank_s=cpu))

    assert result.sentence == "In both combinations: 2 hosts are enough."
    assert [plain(cause.at) for cause in result.causes[:2]] == ["1 job", "9 jobs"]
    assert result.causes[0].explains == pytest.approx(3.0, rel=0.02)
    assert result.causes[1].explains == pytest.approx(6.0, rel=0.02)
    lines = [plain(line) for line in render(result, [], [])]
    assert [line.partition(": ")[0] for line in lines if line.startswith("- ")][:2] == ["- 1 job", "- 9 jobs"]
    alone = checked(asks([HOSTS], {1: 10.0, 2: 6.0, 4: 9.0}, cpu_mean_rank_s={1: 9.5, 2: 5.0, 4: 5.0}))
    assert {cause.at for cause in alone.causes} == {""}


def test_recommended_trials_of_several_groups_name_their_group():
    times = {(1, 1): 10.0, (2, 1): 5.3, (4, 1): 5.0, (8, 1): 9.0, (1, 9): 10.0, (2, 9): 30.0}

    result = checked(asks([HOSTS, JOBS], times, repetitions=(0.9, 1.0, 1.1)))

    assert result.missing is not None
    assert result.missing.at == "1 job"
    assert {parameters["jobs"] for parameters, _ in result.missing.points} == {1}
    assert plain(result.missing.words).startswith("1 job: ")


def test_sizes_whose_trials_failed_are_named_and_not_recommended_again():
    question = asks([HOSTS], {1: 1.0})
    failed, cancelled = Point({"hosts": 2}, {}, excluded={"failed": 3}), Point({"hosts": 4}, {})
    result = checked(replace(question, points=[*question.points, failed, cancelled]))
    assert "The trials at 2 hosts gave no result." in plain(result.sentence)
    assert result.missing is not None
    assert [parameters for parameters, _ in result.missing.points] == [{"hosts": 4}]


@pytest.mark.parametrize("weak", [False, True])
def test_one_measured_size_names_the_factor_that_needs_another(weak):
    ranks = Factor("ranks_per_host", "ranks per host", "scale", "", "ranks per host")
    result = answer(asks([ranks], {2: 1.0}, weak=weak))
    assert result.strength == "open"
    assert plain(result.sentence).endswith("a second number of ranks per host is needed.")


@pytest.mark.parametrize(("at_two", "is_named"), [(1.25, True), (1.05, False), (2.0, False)])
def test_a_smaller_size_that_may_lose_its_efficiency_is_named(at_two, is_named):
    result = checked(asks([HOSTS], {1: 1.0, 2: at_two, 4: 3.0}, weak=True))
    fallen = 2 if at_two == 2.0 else 4

    assert values(result, "falls below 80 %") == [fallen]
    assert (", perhaps at 2 hosts." in plain(result.sentence)) is is_named


def test_two_noisy_trials_give_no_interval_and_the_head_line_another_size():
    question = asks([HOSTS], {2: 0.33, 3: 0.66, 4: 1.12}, weak=True)
    question.points[0].values["elapsed_s"] = [0.332, 0.32, 0.328, 0.34, 0.312]
    question.points[1].values["elapsed_s"] = [0.613, 0.624, 0.694, 0.641]
    question.points[2].values["elapsed_s"] = [1.42, 0.82]

    result = checked(question)

    assert values(result, "falls below 80 %") == [3]
    assert " At 3 hosts it is 5" in plain(result.sentence)
    (noisy,) = [figure for figure in result.figures if figure.where == {"hosts": 4}]
    assert (noisy.low, noisy.high) == (None, None)
