"""Speed-up, efficiency and parts of the time as figures."""

import pytest

from dashboard.charts.fits import Fitted
from dashboard.charts.parts import RANGE, Line, bars_note
from dashboard.charts.scaling import Best, efficiency, speed_up, time_parts
from dashboard.charts.sweep import over_parameter
from dashboard.panels.experiment.scaling import ScalingCharts
from experiments.selectors import ConfigurationRow
from tests.dashboard.charts.figures import checked

MEASURED = Line("Measured", [2, 4, 8], [[1.0, 1.0], [1.7, 1.9], [1.4]])
MODEL = Fitted("USL", [2, 4, 8, 10], [1, 1.8, 1.5, 1.2], [None] * 4, [None] * 4, (2, 8))


def named(figure, name):
    return next(trace for trace in figure["data"] if trace.get("name") == name)


def test_it_draws_the_ideal_speed_up_from_the_smallest_measured_size():
    ideal = named(speed_up([MEASURED], ideal_from=2), "Ideal")
    assert ideal["x"] == [2, 8]
    assert ideal["y"] == [1, 4]


def test_speed_up_of_work_that_grows_with_the_hosts_is_named_scaled():
    rows = [
        ConfigurationRow(n, str(n), n, n, {"hosts": n}, values={"elapsed_s": [t]}, trial_ids={"elapsed_s": [n]})
        for n, t in ((2, 3.4), (4, 4.8))
    ]
    weak = ScalingCharts(rows, ["hosts"], name="Measured", weak=True)
    assert weak.quantity == weak.speed_up()["layout"]["yaxis"]["title"]["text"].partition(" (")[0] == "Scaled speed-up"
    assert named(weak.speed_up(), "Measured")["y"][-1] == pytest.approx(2 * 3.4 / 4.8)
    assert ScalingCharts(rows, ["hosts"], name="Measured").quantity == "Speed-up"


def test_it_draws_a_model_dotted_and_calls_it_extrapolated_beyond_the_measured_sizes():
    figure = speed_up([MEASURED], [MODEL])
    assert named(figure, "USL")["x"] == [2, 4, 8]
    beyond = named(figure, "USL, extrapolated")
    assert beyond["x"] == [8, 10]
    assert beyond["line"]["dash"] == "dot"


def test_it_draws_the_band_of_a_model_only_where_the_data_give_one():
    banded = Fitted("USL", [2, 4], [1, 1.8], [0.9, 1.7], [1.1, 1.9], (2, 4))
    fill = [trace for trace in speed_up([MEASURED], [banded])["data"] if "fill" in trace]
    assert [trace["y"] for trace in fill] == [[1.1, 1.9]]
    assert not any("fill" in trace for trace in speed_up([MEASURED], [MODEL])["data"])


def test_it_gives_efficiency_in_per_cent_of_every_trial():
    dots = efficiency([Line("Measured", [2, 4], [[1.0], [0.8, 0.9]])])["data"][0]
    assert dots["y"] == pytest.approx([100, 80, 90])


def test_it_stacks_parts_of_the_time_with_their_shares():
    figure = time_parts(["2", "4"], {"On the CPU": [3.0, 1.0], "Off the CPU": [1.0, None]})
    assert figure["layout"]["barmode"] == "stack"
    assert [trace["text"] for trace in figure["data"]] == [["75\u202f%", "100\u202f%"], ["25\u202f%", ""]]
    assert {trace["texttemplate"] for trace in figure["data"]} == {"%{y:,.4~r}\u202fs"}
    shares = time_parts(["2"], {"On the CPU": [3.0], "Off the CPU": [1.0]}, shares=True)
    assert [trace["y"] for trace in shares["data"]] == [[75], [25]]
    assert {trace["texttemplate"] for trace in shares["data"]} == {"%{text}"}


def test_it_draws_the_model_of_a_metric_in_the_unit_of_the_axis():
    figure = over_parameter(
        [Line("Measured", [2, 8], [[20_000], [80_000]])],
        quantity="Packets",
        unit="packets",
        parameter="Hosts",
        models=[Fitted("Model", [2, 8], [20_000, 80_000], [None] * 2, [None] * 2, (2, 8))],
    )
    assert named(figure, "Model")["y"] == [20, 80]


def test_the_speed_up_is_of_the_rate_that_decides():
    """HPL runs faster on two hosts while the suite around it takes longer."""
    values = {1: ([17.0], [0.8]), 2: ([42.0], [1.2])}
    rows = [
        ConfigurationRow(
            pk=hosts,
            hash="",
            hosts=hosts,
            ranks=hosts,
            parameters={"hosts": hosts},
            values={"elapsed_s": elapsed, "hpl.gflops": rate},
            trial_ids={"elapsed_s": [hosts], "hpl.gflops": [hosts]},
        )
        for hosts, (elapsed, rate) in values.items()
    ]

    def drawn(figure):
        return named(figure, "Measured")["y"]

    by_time, by_rate = (ScalingCharts(rows, ["hosts"], name="Measured", rate=rate) for rate in ("", "hpl.gflops"))
    assert drawn(by_time.speed_up()) == pytest.approx([1.0, 17 / 42])
    assert drawn(by_rate.speed_up()) == pytest.approx([1.0, 1.5])
    assert drawn(by_rate.efficiency()) == pytest.approx([100, 75])
    by_own_time = ScalingCharts(rows, ["hosts"], name="Measured", time="hpl.gflops")
    assert drawn(by_own_time.speed_up()) == pytest.approx([1.0, 0.8 / 1.2])


def test_its_figures_they_are_what_plotly_takes():
    banded = Fitted("USL", [2, 4], [1, 1.8], [0.9, 1.7], [1.1, 1.9], (2, 4))
    for figure in (
        speed_up([MEASURED], [banded, MODEL], best=Best(4.2, 3.9, 4.6)),
        efficiency([MEASURED]),
        time_parts(["2"], {"On the CPU": [3.0]}),
    ):
        checked(figure)


def test_the_speed_up_of_the_smallest_size_is_1_for_even_numbers_of_trials():
    rows = [
        ConfigurationRow(
            hosts,
            str(hosts),
            hosts,
            hosts,
            {"hosts": hosts},
            values={"elapsed_s": values},
            trial_ids={"elapsed_s": [1, 2]},
        )
        for hosts, values in ((1, [1.0, 1.3]), (2, [0.7, 0.8]))
    ]
    charts = ScalingCharts(rows, ["hosts"], name="Measured")
    for figure in (charts.speed_up(), charts.efficiency()):
        first = named(figure, "Measured")["y"][0]
        assert first in (pytest.approx(1), pytest.approx(100))
        assert bars_note(figure) == RANGE


@pytest.mark.parametrize(
    ("groups", "bars"),
    [
        (["method blocking", "method overlap"], ["1, blocking", "2, blocking", "1, overlap", "2, overlap"]),
        (["steps 10", "steps 100"], ["1, steps 10", "2, steps 10", "1, steps 100", "2, steps 100"]),
    ],
)
def test_bars_are_named_without_the_words_that_all_names_begin_with(groups, bars):
    rows = []
    for group in groups:
        name, value = group.split()
        for n in (1, 2):
            parameters = {"hosts": n, name: value}
            rows.append(
                ConfigurationRow(
                    len(rows), group, n, n, parameters, values={"elapsed_s": [1.0], "cpu_mean_rank_s": [1.0]}
                )
            )
    (_, seconds), *_ = ScalingCharts(rows, ["hosts", groups[0].split()[0]], name="Measured").time_views(())
    assert sorted(seconds["data"][0]["x"]) == sorted(bars)
