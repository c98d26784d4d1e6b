"""Answers of comparisons of choices."""

from __future__ import annotations

import pytest

from analysis.conclusions import Deciding
from analysis.conclusions.context import Factor
from analysis.conclusions.questions import treatments
from analysis.conclusions.questions.sizes import answer_scale
from analysis.conclusions.wording import first_up
from tests.analysis.conclusions.designs import HOSTS, LOOP, METHOD, MOLECULES, asks, checked, values

RATE = Deciding("elapsed_s", "Aggregate bandwidth", "B/s", higher_is_better=True)
"""A second metric of every point; its name is one that the helper takes."""


def test_it_names_the_best_choice_and_its_factor():
    result = checked(asks([METHOD], {"pull": 4.0, "push": 2.0, "tree": 1.0}))

    assert result.strength == "firm"
    assert values(result, "best") == ["tree"]
    assert values(result, "times the best", method="pull") == [pytest.approx(4.0)]


@pytest.mark.parametrize(
    ("name", "times", "best", "worst"),
    [
        ("bind", {"none": 1.2, "core": 1.0}, "binding to cores", "no binding"),
        ("transport", {"native": 1.0, "tcp": 1.2}, "the native transport", "TCP"),
        ("transport", {"rc: UCX_TLS=rc --mca pml ucx": 1.0, "native": 1.2}, "rc", "the native transport"),
        ("distribution", {"block": 1.2, "cyclic": 1.0}, "cyclic distribution", "block distribution"),
    ],
)
def test_a_sweep_over_the_launch_is_answered_in_words(name: str, times: dict[str, float], best: str, worst: str):
    result = checked(asks([Factor(name, name, "treatment")], times))

    assert values(result, "best") == [best]
    assert result.sentence.startswith(f"{first_up(best)} is best: 1 s")
    assert "1.2 times" in result.sentence
    assert result.sentence.endswith(f"as fast as {worst}.")


def test_it_counts_all_choices_that_do_not_differ_from_the_best():
    result = checked(asks([METHOD], {"a": 1.0, "b": 1.001, "c": 1.002, "d": 1.003, "e": 2.0}))

    assert values(result, "as good") == ["b", "c", "d"]
    assert result.sentence.startswith("A, b, c and 1 more are best, without a measurable difference: 1 s")
    assert (result.strength, result.missing) == ("firm", None)


def test_it_finds_the_crossing_over_sizes():
    times = {(2, "pull"): 1.0, (2, "tree"): 1.5, (4, "pull"): 2.0, (4, "tree"): 1.7, (8, "pull"): 4.0, (8, "tree"): 1.9}

    result = checked(asks([HOSTS, METHOD], times))

    assert values(result, "best", hosts=2) == ["pull"]
    assert values(result, "best", hosts=4) == ["tree"]
    assert values(result, "best", hosts=8) == ["tree"]
    assert "from 4 hosts on" in result.sentence
    assert "at 2 hosts pull is" in result.sentence


def test_it_says_where_each_choice_stops_scaling_although_no_choice_is_better():
    times = {(hosts, name): s for hosts, s in ((1, 1.0), (2, 0.6), (8, 4.0)) for name in ("pull", "tree")}

    result = checked(asks([HOSTS, METHOD], times))

    assert not values(result, "best")
    starts = ["tree: Stop at 2 hosts", "pull: Stop at 2 hosts"]
    assert all(cause.statement.startswith(start) for cause, start in zip(result.causes, starts, strict=True))
    assert all("8 hosts take 6.7 times" in cause.statement for cause in result.causes)


def test_it_computes_the_scaling_of_the_listed_choices_only(monkeypatch):
    made = []
    monkeypatch.setattr(treatments, "answer_scale", lambda part: made.append(part) or answer_scale(part))
    times = {(hosts, str(n)): s * (1 + n / 10) for hosts, s in ((1, 1.0), (2, 0.6)) for n in range(9)}

    assert len(checked(asks([HOSTS, METHOD], times)).causes) == len(made) == 5


def test_it_reports_the_bandwidth_with_the_time():
    times = {(2, "pull"): 1.0, (2, "tree"): 1.0, (8, "pull"): 4.0, (8, "tree"): 2.0}
    rates = {key: 2e7 / seconds for key, seconds in times.items()}
    question = asks([HOSTS, METHOD], times, elapsed_s=rates, also=RATE, deciding=LOOP)

    result = checked(question)

    assert result.sentence.endswith("; aggregate bandwidth 10 MB/s against 5 MB/s.")
    assert values(result, "Aggregate bandwidth", hosts=8, method="tree") == [pytest.approx(1e7)]


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ({2: (1, 2), 8: (3, 3)}, "Pull is best at 2 hosts; at 8 hosts no choice is measurably better."),
        ({2: (1, 2), 4: (3, 3), 8: (4, 4)}, "Pull is best at 2 hosts; beyond 2 hosts no choice is measurably better."),
        ({2: (1, 2), 4: (1, 2), 8: (3, 3)}, "Pull is best up to 4 hosts; at 8 hosts no choice is measurably better."),
        ({2: (1, 2), 4: (1, 2), 8: (1, 2)}, "Pull is best at every number of hosts."),
    ],
)
def test_the_best_choice_is_named_only_for_the_sizes_at_which_it_is_better(
    times: dict[int, tuple[float, float]], start: str
):
    by_choice = {
        (size, name): s for size, pair in times.items() for name, s in zip(("pull", "tree"), pair, strict=True)
    }

    result = checked(asks([HOSTS, METHOD], by_choice))

    assert {*values(result, "best")} == {"pull"}
    assert result.sentence.startswith(start)


def test_choices_are_compared_at_one_problem_never_across_problems():
    times = {("pull", 100): 1.0, ("tree", 100): 2.0, ("pull", 1000): 100.0, ("tree", 1000): 50.0}

    result = checked(asks([METHOD, MOLECULES], times))

    assert values(result, "best", molecules=100) == ["pull"]
    assert values(result, "best", molecules=1000) == ["tree"]
    assert "100 times" not in result.sentence


def test_choices_that_do_not_differ_name_no_best():
    result = checked(asks([METHOD], {"a": 1.0, "b": 1.002}))

    assert result.sentence.startswith("Method does not matter: elapsed time changes by less than")
    assert (result.strength, result.missing) == ("firm", None)
    assert values(result, "best") == []


def test_choices_that_may_differ_by_much_ask_for_more():
    result = checked(asks([METHOD], {"a": 1.0, "b": 1.02}, repetitions=[0.8, 1.0, 1.2]))

    assert result.strength == "open"
    assert values(result, "best") == []
    assert result.missing is not None


def test_printed_methods_are_claimed_as_printed():
    result = checked(asks([HOSTS, METHOD], {(10, "pull"): 44.0, (10, "tree"): 10.0}, repetitions=[1.0], published=True))

    assert result.strength == "printed"
    assert values(result, "times the best", hosts=10) == [pytest.approx(4.4)]


def test_one_finished_choice_is_open_at_every_design():
    for factors, key in (([METHOD], "pull"), ([HOSTS, METHOD], (2, "pull"))):
        assert checked(asks(factors, {key: 1.0})).strength == "open"


def test_a_printed_factor_is_the_answer_itself():
    question = asks([HOSTS], {4: 1.8, 10: 4.4}, repetitions=[1.0], published=True, against=("broadcast", "pull"))

    assert values(checked(question), "factor") == [pytest.approx(1.8), pytest.approx(4.4)]
