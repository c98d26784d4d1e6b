"""Figures over time name the moment of their zero, for one cursor over all."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.mpi.timeline import Timeline
from dashboard.charts.hosts import HostLine, hosts_over_time
from dashboard.charts.ranks import inside_over_time, ranks_over_time
from dashboard.charts.trial import throughput_over_time


def test_figures_over_time_have_the_moment_of_their_zero() -> None:
    lines = [HostLine("n1", [0.5], [(0.5, 0.5, 1)])]
    many = [HostLine(f"n{number}", [0.5], [(0.5, 0.5, 1)]) for number in range(20)]
    figures = [
        throughput_over_time([60], 1.0, zero_s=12.5),
        hosts_over_time([1.0], lines, quantity="CPU", unit="share", zero_s=12.5),
        hosts_over_time([1.0], many, quantity="CPU", unit="share", zero_s=12.5),
        inside_over_time([{"rank": 0, "bin_s": 1.0, "shares": [0.5]}], zero_s=12.5),
    ]
    assert [figure["layout"]["meta"] for figure in figures] == [{"zero_s": 12.5, "unit_s": 1.0}] * 4


def test_figure_of_an_unknown_moment_has_no_zero() -> None:
    assert "meta" not in throughput_over_time([60], 1.0)["layout"]
    assert "meta" not in inside_over_time([{"rank": 0, "bin_s": 1.0, "shares": [0.5]}])["layout"]


def test_axis_of_the_ranks_has_its_unit() -> None:
    edges_ns = np.array([12_500_000_000, 12_502_000_000, 12_504_000_000])
    shares = np.array([[0.5, 1.0]])
    layout = ranks_over_time(Timeline([0], edges_ns, shares, shares / 2), 12_500_000_000)["layout"]
    assert layout["xaxis"]["title"]["text"].endswith("(ms)")
    assert layout["meta"] == {"zero_s": 12.5, "unit_s": pytest.approx(1e-3)}
