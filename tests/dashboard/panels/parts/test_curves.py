"""Curves over message sizes, next to published latencies."""

import pytest

from dashboard.panels.parts import Measured
from dashboard.panels.parts.curves import curves_part
from experiments import workloads
from tests.dashboard.studies_measured import measured
from tests.dashboard.texts import words_of
from tests.experiments.workloads.samples import sample

NETPIPE = {
    "name": "Curves",
    "workload": "netpipe",
    "parameters": {"hosts": 2},
    "sweep": {"link.bandwidth": ["100 Mbit/s", "1 Gbit/s"]},
    "repetitions": 2,
}


def sent(parameters):
    """Ten microseconds plus the transfer; the parsed result of such a table."""
    rows = [(n, 1e-5 + 8 * n / parameters["link.bandwidth"]) for n in (1, 1000, 1_000_000)]
    table = {"Transfer times": [{"bytes": n, "Mbps": 0.0, "time_s": t} for n, t in rows]}
    figures = {"latency_s": rows[0][1], "bandwidth_max_Bps": rows[-1][0] / rows[-1][1], "fit_latency_s": 1e-5}
    return {"elapsed_s": 1.0, **{f"netpipe.{name}": value for name, value in figures.items()}}, table


def values(parameters):
    return sent(parameters)[0]


def tables(parameters):
    return sent(parameters)[1]


def test_it_draws_curves_per_configuration_with_published_latencies(page, library):
    experiment = measured(library, NETPIPE, values, tables)
    words = words_of(page, experiment)
    assert "By message size" in words
    assert "bandwidth 100 Mbit/s 10.08 10 12.5" in words
    assert "Published 2006" in words
    assert "ethernet GigE defaults, bandwidth 1 Gbit/s 117" in words


def test_it_draws_times_on_logarithmic_axes_with_every_trial(page, library):
    part = curves_part(Measured.of(measured(library, NETPIPE, values, tables)), {})
    dots, medians = part["time"]["data"][:2]
    assert dots["x"] == [1, 1, 1000, 1000, 1_000_000, 1_000_000]
    assert medians["y"] == pytest.approx([10.08, 90, 80_010])
    assert part["time"]["layout"]["xaxis"]["type"] == part["time"]["layout"]["yaxis"]["type"] == "log"
    assert part["bandwidth"]["data"][1]["y"][-1] == pytest.approx(12.498, rel=1e-3)
    assert part["time"]["layout"]["xaxis"]["ticktext"][:3] == ["1", "4", "16"]


@pytest.mark.parametrize(
    ("slug", "name", "first", "last"),
    [
        ("netpipe", "netpipe-np.out", (1, 0.00003073), (1_048_579, 0.00751612)),
        ("imb", "imb-mpi1-pingpong.txt", (0, 22.78e-6), (16_777_216, 139905.22e-6)),
    ],
)
def test_it_reads_recorded_outputs_as_curves(slug, name, first, last):
    workload = workloads.get(slug)
    files = {"np.out": sample(name)} if slug == "netpipe" else {}
    points = workload.curve(workload.parse(sample(name), files).tables)
    assert points[0] == pytest.approx(first)
    assert points[-1] == pytest.approx(last)
