"""Numbers in sentences."""

from __future__ import annotations

import pytest

from analysis.findings.traffic_rules import spread_words
from analysis.findings.wording import number, percent, quantity, size_range, sizes, times

_THIN = "\u202f"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (200.4, 4, "200.4"), (245.99, 4, "246"), (0.000439, 4, "0.000439"), (191377, 6, f"191{_THIN}377"),
        (2277.9, 4, "2278"), (10000, 4, f"10{_THIN}000"), (-3.5, 4, "−3.5"), (0, 4, "0"), (9999.6, 4, "10000"),
        (0.04567, 2, "0.046"), (2.824, 2, "2.8"), (1.0, 2, "1"), (12.34, 2, "12"), (740.0, 2, "740"),
    ],
)  # fmt: skip
def test_it_rounds_to_digits_that_carry_meaning(value: float, digits: int, text: str) -> None:
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (264.85, "s", "264.9 s"), (0.00104, "s", "1.04 ms"), (0.0000005, "s", "500 ns"), (1.2e7, "bit/s", "12 Mbit/s"),
        (1e9, "bit/s", "1 Gbit/s"), (2231.2, "packets/s", "2231 packets/s"), (470706, "1", f"470{_THIN}706"), (0.0, "s", "0 s"),
    ],
)  # fmt: skip
def test_it_gives_every_number_its_unit(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.3215, "32 %"), (0.0207, "2.1 %"), (0.011, "1.1 %"), (0.0005, "0.05 %"), (0.02, "2 %"), (0, "0 %")],
)
def test_it_gives_shares_in_per_cent(share: float, text: str) -> None:
    assert percent(share) == text


def test_it_counts_hosts_and_factors() -> None:
    assert sizes(1, "hosts") == "1 host"
    assert sizes(4.0, "hosts") == "4 hosts"
    assert size_range([2, 4, 6], "hosts") == "2, 4 and 6 hosts"
    assert size_range([4], "ranks") == "4 ranks"
    assert times(2.8243) == "2.8 times"


def test_it_names_the_unit_of_a_range_once() -> None:
    assert spread_words([0.35, 0.45], percent) == "35 to 45 %"
    assert spread_words([0.4, 0.4], percent) == "40 %"
