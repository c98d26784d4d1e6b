"""Second sentence of a sweep over hosts: the size of least energy."""

from __future__ import annotations

import pytest

from analysis.conclusions import Deciding
from tests.analysis.conclusions.designs import GFLOPS, HOSTS, asks, checked, points, values
from tests.words import plain

TIMES = {1: 116.0, 2: 57.6, 4: 47.6, 8: 61.9}
JOULES = {1: 49.3, 2: 43.5, 4: 72.5, 8: 185.2}
ENERGY = Deciding("energy_j", "Energy", "J")


def test_scale_names_the_size_of_least_energy_and_its_price():
    result = checked(asks([HOSTS], TIMES, energy_j=JOULES))
    assert values(result, "enough") == [4]
    assert values(result, "least energy") == [2]
    (more,) = [figure for figure in result.figures if figure.name == "times the least energy"]
    assert more.value == pytest.approx(72.5 / 43.5)
    assert more.low is not None
    assert more.high is not None
    assert more.low < 72.5 / 43.5 < more.high
    assert result.sentence.endswith(
        "2 hosts use 40 % less energy (96.5 % CI 38 to 42 %) and take 1.21 times (1.18 to 1.24) as long."
    )


def test_scale_names_sizes_between_as_compromises():
    result = checked(asks([HOSTS], TIMES | {3: 50.9}, energy_j=JOULES | {3: 58.0}))
    (compromise,) = [cause for cause in result.causes if cause.chart == "energy"]
    assert plain(compromise.statement).startswith("A compromise: 3 hosts use 20 % less energy (96.5 % CI 18 to 22 %)")
    assert plain(compromise.statement).endswith("and take 1.07 times (1.04 to 1.1) as long")
    near = checked(asks([HOSTS], TIMES | {3: 57.5}, energy_j=JOULES | {3: 58.0}))
    assert [cause for cause in near.causes if cause.chart == "energy"] == [], "not measurably faster than 2 hosts"


def test_scale_says_when_the_fastest_size_uses_the_least_energy():
    result = checked(asks([HOSTS], TIMES, energy_j={1: 90.0, 2: 80.0, 4: 60.0, 8: 99.0}))
    assert values(result, "least energy") == [4]
    assert values(result, "times the least energy") == []
    assert result.sentence.endswith("4 hosts also use the least energy.")


def test_scale_never_calls_unclear_energies_equal():
    near = checked(asks([HOSTS], TIMES, energy_j={1: 90.0, 2: 72.3, 4: 72.5, 8: 99.0}))
    assert "no clear change: 2 hosts use" in near.sentence


def test_scale_leaves_energy_out_when_a_trial_lacks_it():
    question = asks([HOSTS], TIMES, energy_j=JOULES)
    del question.points[1].values["energy_j"][0]
    assert values(checked(question), "least energy") == []
    assert values(checked(asks([HOSTS], TIMES)), "least energy") == []
    rate = asks([HOSTS], {1: 10.0, 2: 19.0, 4: 30.0}, deciding=GFLOPS, energy_j={1: 1.0, 2: 2.0, 4: 9.0})
    assert values(checked(rate), "least energy") == [], "trials of a rate may do unequal work"


def test_a_rate_is_traded_for_energy_per_result():
    rates = {1: 10.0, 2: 19.0, 4: 30.0}
    result = checked(asks([HOSTS], rates, deciding=GFLOPS, energy_per_result_j={1: 5.0, 2: 4.0, 4: 6.0}))
    assert values(result, "enough") == [4]
    assert values(result, "least energy") == [2]
    (more,) = [figure for figure in result.figures if figure.name == "times the least energy"]
    assert more.value == pytest.approx(1.5)
    assert result.sentence.endswith(
        "2 hosts use 33 % less energy per result (96.5 % CI 31 to 35 %) and reach 63 % (62 to 65 %) of that rate."
    )
    best = checked(asks([HOSTS], rates, deciding=GFLOPS, energy_per_result_j={1: 5.0, 2: 4.0, 4: 3.0}))
    assert best.sentence.endswith("4 hosts also use the least energy per result.")


def test_energy_can_decide():
    question = asks([HOSTS], JOULES, deciding=ENERGY)
    assert values(checked(question), "best size") == [2]
    assert points([HOSTS], JOULES, deciding=ENERGY)[0].median("energy_j") == pytest.approx(49.3)


@pytest.mark.parametrize(
    ("joules", "head", "words"),
    [
        ({1: 50.0, 2: 80.0, 4: 200.0}, "Stay at 1 host:", "Energy of 2 hosts is 1.6 times that of 1 host"),
        ({1: 200.0, 2: 90.0, 4: 50.0}, "4 hosts, the most measured, are best:", "Energy of 1 host is 4 times ("),
    ],
    ids=["grows", "falls"],
)
def test_energy_that_decides_is_no_time(joules: dict[int, float], head: str, words: str):
    sentence = plain(checked(asks([HOSTS], joules, deciding=ENERGY)).sentence)
    assert sentence.startswith(head)
    assert words in sentence
    assert "as long as" not in sentence
    assert "as fast as" not in sentence
