"""Every setting has its tick; numbers that would lie over each other on a phone are left out."""

from __future__ import annotations

import pytest

from dashboard.charts.parts import log_ticks, ticks
from dashboard.charts.sweep import x_axis


def test_settings_far_apart_all_have_their_number() -> None:
    assert ticks([1.0, 2.0, 4.0], 0.5, 4.5) == {"tickvals": [1.0, 2.0, 4.0]}


def test_the_first_and_the_last_keep_theirs_and_close_ones_between_do_not() -> None:
    axis = x_axis([1, 2, 4, 8, 16, 32, 64, 128], "Hosts")
    assert axis["tickvals"] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert axis["ticktext"] == ["1", "", "", "", "16", "32", "64", "128"]


def test_the_last_stays_where_the_one_before_is_near() -> None:
    assert ticks([0, 0.99, 1], 0, 1)["ticktext"] == ["0", "", "1"]


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0]])
def test_few_or_equal_settings_are_no_trouble(values: list[float]) -> None:
    assert ticks(values, 2.0, 4.0)["tickvals"] == values


def test_a_logarithmic_axis_is_measured_in_powers() -> None:
    assert log_ticks([1, 10, 100, 1000], 0, 3) == {"tickvals": [1, 10, 100, 1000]}
    assert log_ticks([1, 1.1, 100], 0, 2)["ticktext"] == ["1", "", "100"]
