"""Every setting has its tick; numbers never overlap on a phone."""

from __future__ import annotations

from dashboard.charts.parts import log_ticks, ticks
from dashboard.charts.sweep import x_axis


def test_the_first_and_the_last_keep_theirs_and_close_ones_between_do_not() -> None:
    axis = x_axis([1, 2, 4, 8, 16, 32, 64, 128], "Hosts")
    assert axis["tickvals"] == [1, 2, 4, 8, 16, 32, 64, 128]
    assert axis["ticktext"] == ["1", "", "", "", "16", "32", "64", "128"]


def test_of_many_settings_only_those_with_a_number_have_a_line() -> None:
    reported = ticks([float(size) for size in range(100)], 0, 99)
    assert (reported["tickvals"][0], reported["tickvals"][-1]) == (0, 99)
    assert len(reported["tickvals"]) <= 24
    assert "" not in reported["ticktext"]


def test_a_logarithmic_axis_is_measured_in_powers() -> None:
    assert log_ticks([1, 10, 100, 1000], 0, 3) == {"tickvals": [1, 10, 100, 1000]}
    assert log_ticks([1, 1.1, 100], 0, 2)["ticktext"] == ["1", "", "100"]
