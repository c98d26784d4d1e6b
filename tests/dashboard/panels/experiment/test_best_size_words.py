"""A predicted best size in the words of the table of models."""

from __future__ import annotations

from math import inf

import pytest

from analysis.scaling import Estimate
from analysis.statistics import Interval
from dashboard.panels.experiment.diagnosis import _best_words


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (1.5, 1.2, 2.4, "2 hosts, 95 % CI 1 to 3"),
        (0.4, 0.1, 0.9, "1 host, 95 % CI 1"),
        (6.6, 5.2, None, "7 hosts, at least 5"),
        (1.2, 0.3, None, "1 host, at least 1"),
    ],
)
def test_it_names_hosts_that_exist(value, low, high, words):
    best = Estimate(value, Interval(low, high, 0.95, "bootstrap"))
    assert _best_words(best, "hosts", extrapolated=False) == words
    assert _best_words(best, "hosts", extrapolated=True) == f"{words}; extrapolated"


def test_a_model_without_an_optimum_says_so():
    assert "no optimum" in _best_words(Estimate(inf), "hosts", extrapolated=False)
