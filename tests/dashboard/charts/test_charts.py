"""Figures contain the values of the rows, and are valid for Plotly."""

import math

import numpy as np
import pytest
import scipy.stats

from dashboard.charts import marks, parts, sweep, traffic, trial
from dashboard.charts.parts import Line, Published
from dashboard.charts.sweep import x_axis
from dashboard.charts.traffic import MOST_ROWS
from tests.dashboard.charts.figures import checked

ELAPSED = Line("Elapsed", [2, 4, 6], [[228.4, 227.0, 233.0], [183.1, 180.6], []])
PUBLISHED = Published("Published 2007", [2, 4, 6], [245.99, 200.4, 227.58])


def over_hosts(lines=(ELAPSED,), published=(PUBLISHED,), unit="s", **options):
    return sweep.over_parameter(lines, published, quantity="Time", unit=unit, parameter="Hosts", **options)


def test_it_shows_every_trial_of_a_sweep_with_median_and_range():
    reference, dots, medians = over_hosts()["data"]
    assert dots["x"] == [2, 2, 2, 4, 4]
    assert sorted(dots["y"]) == [180.6, 183.1, 227.0, 228.4, 233.0]
    assert medians["x"] == [2, 4]
    assert medians["y"] == pytest.approx([228.4, 181.85])
    assert medians["error_y"]["array"] == pytest.approx([4.6, 1.25])
    assert medians["error_y"]["arrayminus"] == pytest.approx([1.4, 1.25])
    assert medians["customdata"] == [[227.0, 233.0, 3], [180.6, 183.1, 2]]
    assert reference["y"] == [245.99, 200.4, 227.58]


def test_it_shows_a_configuration_without_trials_as_a_gap_and_never_as_zero():
    medians = over_hosts(published=())["data"][1]
    assert 6 not in medians["x"]
    assert 0 not in medians["y"]


def test_it_starts_the_axis_at_zero_and_names_quantity_and_prefixed_unit():
    gaps = Line("Mean", [2, 4], [[0.00122], [0.000458]])
    figure = over_hosts([gaps], (), unit="s")
    assert figure["layout"]["yaxis"]["title"]["text"] == "Time (ms)"
    assert figure["data"][1]["y"] == pytest.approx([1.22, 0.458])
    assert figure["layout"]["yaxis"]["range"][0] == 0


def test_it_marks_the_fastest_point():
    layout = over_hosts(fastest="fastest")["layout"]
    assert layout["shapes"][0]["x0"] == 4
    assert "fastest: 4 hosts" in layout["annotations"][0]["text"]


def test_it_marks_the_size_that_is_enough_beside_the_fastest():
    layout = over_hosts(fastest="fastest", enough=2)["layout"]
    assert [shape["x0"] for shape in layout["shapes"]] == [4, 2]
    assert "enough: 2 hosts" in layout["annotations"][1]["text"]
    assert len(over_hosts(fastest="fastest", enough=4)["layout"]["annotations"]) == 1


def test_it_gives_every_series_its_own_colour_marker_and_dash_and_stops_at_six():
    lines = [Line(f"series {i}", [1, 2], [[1.0], [2.0]]) for i in range(8)]
    medians = over_hosts(lines, ())["data"][1::2]
    assert len(medians) == parts.MOST_SERIES
    looks = {(m["line"]["color"], m["line"]["dash"], m["marker"]["symbol"]) for m in medians}
    assert len(looks) == parts.MOST_SERIES


def test_it_draws_only_axes_without_trials():
    figure = over_hosts([Line("Elapsed", [2, 4], [[], []])], ())
    assert figure["data"] == []
    checked(figure)


def test_throughput_shows_the_rate_of_a_port_if_it_comes_near():
    near, far = (trial.throughput_over_time([1000], 0.1, port_bytes_per_s=rate)["layout"] for rate in (12_000, 90_000))
    assert [shape["y0"] for shape in near["shapes"]] == [12]
    assert "shapes" not in far


def test_each_line_of_throughput_has_a_label():
    layout = trial.throughput_over_time([1000], 0.1, mean_bytes_per_s=9_000, port_bytes_per_s=12_000)["layout"]
    (note,) = layout["annotations"]
    assert [word in note["text"] for word in ("mean", "rate of one port")] == [True, True]
    assert (note["yref"], note["y"], note["yanchor"]) == ("paper", 1, "bottom"), "above the curve, not over it"


def test_one_size_has_one_labelled_tick():
    axis = x_axis([1.0, 1.0], "Hosts")
    assert (axis["tickvals"], "ticktext" in axis) == ([1.0], False)


def test_it_keeps_all_bytes_when_it_groups_throughput_over_time():
    wire_bytes = list(range(2000))
    figure = trial.throughput_over_time(wire_bytes, 0.1, mean_bytes_per_s=9995.0)
    mean = figure["data"][-1]
    assert len(mean["y"]) == 500
    assert figure["layout"]["yaxis"]["title"]["text"] == "Throughput (kB/s)"
    assert sum(y * 1000 * 0.4 for y in mean["y"]) == pytest.approx(sum(wire_bytes))
    assert mean["x"][1] == pytest.approx(0.4)


def test_it_draws_packet_sizes_as_shares_and_colours_small_frames():
    figure = trial.packet_sizes(
        [(0, 53, 0), (54, 66, 30), (67, 99, 10), (100, 199, 0), (200, 1514, 60), (1515, 9000, 0)]
    )
    bars = figure["data"][0]
    assert bars["y"] == ["54–66", "67–99", "100–199", "200–1514"]
    assert bars["x"] == [30, 10, 0, 60]
    assert bars["marker"]["color"] == ["--s2", "--s2", "--s1", "--s1"]


FITS = [
    {"distribution": "lognormal", "parameters": {"mu": -9.75, "sigma": 1.95}},
    {"distribution": "weibull", "parameters": {"shape": 0.48, "scale_s": 1.6e-4}},
    {"distribution": "gamma", "parameters": {"shape": 0.3, "scale_s": 1e-4}},
    {"distribution": "pareto", "parameters": {"alpha": 0.19, "minimum_s": 1e-8}},
    {"distribution": "exponential", "parameters": {"mean_s": 4.6e-4}},
]


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit["distribution"])
def test_it_draws_a_fit_as_scipy_computes_it(fit):
    names = {"lognormal": "lognorm", "weibull": "weibull_min", "exponential": "expon"}
    p, x = fit["parameters"], [1e-6, 1e-5, 1e-4]
    shape = {"lognormal": p.get("sigma"), "pareto": p.get("alpha")}.get(fit["distribution"], p.get("shape"))
    scale = p.get("scale_s") or p.get("mean_s") or p.get("minimum_s") or math.exp(p["mu"])
    distribution = getattr(scipy.stats, names.get(fit["distribution"], fit["distribution"]))
    expected = distribution.sf(x, *([] if shape is None else [shape]), scale=scale)
    curve = traffic.interarrival_ccdf(x, [0.9, 0.5, 1e-6], [fit])["data"][1]
    assert curve["y"] == pytest.approx(list(expected))


def test_gaps_have_a_number_for_each_power_of_ten():
    layout = traffic.interarrival_ccdf([1e-6, 1e-3], [0.5, 0.001], FITS)["layout"]
    assert [layout[axis]["dtick"] for axis in ("xaxis", "yaxis")] == [1, 1]


def test_it_adds_neighbours_up_where_a_matrix_has_too_many_rows():
    count = 2 * MOST_ROWS - 1
    sent = np.zeros((count, count), int)
    sent[0, 2], sent[1, 3], sent[count - 1, 0] = 1_000_000, 2_000_000, 4_000_000
    heat = traffic.traffic_matrix(range(count), sent.tolist(), of="rank")["data"][0]
    assert traffic.neighbours_together(count) == 2
    assert (len(heat["x"]), heat["x"][:2], heat["y"][-1]) == (MOST_ROWS, ["0 to 1", "2 to 3"], str(count - 1))
    assert {(row, column): z for row, cells in enumerate(heat["z"]) for column, z in enumerate(cells) if z} == {
        (0, 1): 3.0,
        (MOST_ROWS - 1, 0): 4.0,
    }


@pytest.mark.parametrize(
    "figure",
    [
        over_hosts(fastest="fastest"),
        over_hosts([Line("Elapsed", ["a", "b"], [[1.0, 2.0], [2.0]])], ()),
        trial.throughput_over_time([1, 2, 3], 1.0, mean_bytes_per_s=2.0),
        trial.throughput_over_time(list(range(1200)), 0.01),
        trial.throughput_over_time([], 1.0),
        trial.packet_sizes([(54, 66, 3), (67, 99, 1)]),
        trial.packet_sizes([]),
        traffic.interarrival_ccdf([1e-6, 1e-3], [0.5, 0.001], FITS),
        traffic.interarrival_ccdf([], [], []),
        traffic.traffic_matrix([0, 1], [[0, 5_000_000], [3, 0]], of="rank"),
        traffic.traffic_matrix([], [], of="host"),
    ],
)
def test_plotly_accepts_every_attribute_it_gets(figure):
    assert len(checked(figure).data) == len(figure["data"])


def test_it_sorts_frame_lengths_into_classes_without_losing_a_packet():
    classes = trial.size_classes([54, 66, 98, 1514, 70_000], [5, 4, 3, 2, 1])
    assert [c for c in classes if c[2]] == [(0, 59, 5), (60, 66, 4), (67, 99, 3), (1500, 1518, 2), (65_536, 70_000, 1)]


def test_it_hides_published_values_where_they_would_flatten_the_measured():
    miniature = Line("Elapsed", [2, 4], [[2.0], [1.5]])
    figure = over_hosts([miniature])
    assert figure["published"] is False
    assert figure["data"][0]["visible"] is False
    assert figure["layout"]["yaxis"]["range"][1] < 3
    assert over_hosts()["published"] is True
    assert "published" not in over_hosts(published=())


def test_it_starts_a_sparkline_at_zero_and_marks_the_lowest():
    spark = marks.sparkline([4.0, 2.0, 3.0])
    assert spark is not None
    assert spark.best == 1
    assert spark.points[0] == (3.0, 3.0)
    assert spark.points[1][1] == pytest.approx(17.0)
    assert marks.sparkline([4.0]) is None


def test_it_spreads_a_dot_strip_between_lowest_and_highest():
    dots = marks.repetition_dots(2.0, [1.0, 1.5], published=3.0)
    assert dots is not None
    assert (dots.this, dots.others, dots.published) == (50.0, [2.0, 26.0], 98.0)
    assert marks.repetition_dots(2.0, []) is None
    assert marks.repetition_dots(2.0, [2.0]).this == 50.0
