"""Numbers in the sentences of findings."""

from __future__ import annotations

import pytest

from analysis.conclusions.wording import percent, size_range, sizes, spread_words, times, whole_size, whole_sizes
from analysis.numbers import NARROW, SHARE


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.3215, "32 %"),
        (0.0207, "2.1 %"),
        (0.011, "1.1 %"),
        (0.0005, "0.05 %"),
        (0.02, "2 %"),
        (1.234, "123 %"),
        (0, "0 %"),
    ],
)
def test_it_gives_shares_two_digits(share: float, text: str) -> None:
    assert percent(share).replace(NARROW, " ") == text


def test_it_counts_hosts_and_factors() -> None:
    assert sizes(1, "hosts") == "1 host"
    assert sizes(4.0, "hosts") == "4 hosts"
    assert size_range([2, 4, 6], "hosts") == "2, 4 and 6 hosts"
    assert size_range([4], "ranks") == "4 ranks"
    assert times(2.8243) == "2.8 times"


def test_it_names_the_unit_of_a_range_once() -> None:
    assert spread_words([0.35, 0.45], SHARE) == f"35 to 45{NARROW}%"
    assert spread_words([0.4, 0.404], SHARE) == f"40{NARROW}%"
    assert spread_words([541.3, 1448.0], "B") == f"541 to 1{NARROW}450{NARROW}B"


@pytest.mark.parametrize(("value", "whole"), [(0.3, 1), (1.5, 2), (2.5, 3), (4.49, 4), (8.0, 8)])
def test_a_predicted_size_is_one_that_exists(value: float, whole: int) -> None:
    assert whole_size(value) == whole


@pytest.mark.parametrize(
    ("low", "high", "words"), [(0.2, 1.4, "1 to 2"), (3.2, 5.1, "3 to 6"), (4.0, 4.0, "4"), (0.1, 0.9, "1")]
)
def test_an_interval_of_sizes_has_ends_that_exist(low: float, high: float, words: str) -> None:
    assert whole_sizes(low, high) == words
