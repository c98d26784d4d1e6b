"""Time and energy: the trade-off line, intervals, and energy by state."""

from __future__ import annotations

import pytest
from django.urls import reverse

from dashboard.charts.tables import table_of
from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured
from dashboard.panels.parts.energy import energy_part
from experiments.models import Measurement, Trial
from experiments.selectors.diagnosis import diagnosis_of, forget_diagnosis
from tests.dashboard.studies_measured import measured
from tests.words import plain

SIZES = {
    "name": "Sizes",
    "workload": "hpl",
    "sweep": {"hosts": [1, 2, 3, 4]},
    "repetitions": 3,
}
TIMES_S = {1: 100.0, 2: 60.0, 3: 50.0, 4: 70.0}
JOULES = {1: 40_000.0, 2: 44_000.0, 3: 60_000.0, 4: 90_000.0}


def solve(parameters):
    hosts, solve.calls = parameters["hosts"], solve.calls + 1
    scatter = 1 + 0.01 * (solve.calls % 3)
    time_s, joules = TIMES_S[hosts] * scatter, JOULES[hosts] / scatter
    return {
        "elapsed_s": time_s,
        "hpl.gflops": 100 / time_s,
        "energy_j": joules,
        "power_mean_w": joules / time_s,
        "energy_delay_js": joules * time_s,
        "mpi_window_s": 0.9 * time_s,
        "mpi_useful_share": 0.6,
        "mpi_no_core_share": 0.1,
        "mpi_on_cpu_share": 0.1,
        "mpi_blocked_share": 0.2,
    }


solve.calls = 0


@pytest.fixture
def part(library):
    return lambda values=solve: energy_part(Measured.alone(measured(library, SIZES, values)), {})


def test_energy_part_puts_sizes_on_the_trade_off_line_with_their_intervals(part):
    data = part()
    assert data["sources"] == ""
    line, others = data["trade_off"]["data"][1:]
    assert line["customdata"] == [["3 hosts"], ["2 hosts"], ["1 host"]]
    assert others["customdata"] == [["4 hosts"]]
    assert min(line["error_y"]["array"]) > 0
    assert min(line["error_x"]["arrayminus"]) > 0
    columns, (first, *_) = table_of(data["trade_off"])
    assert columns[3:] == [
        *("interval low", "interval high", "n"),
        *(f"{columns[1]}, interval {end}" for end in ("low", "high")),
    ]
    assert first[3] < first[2] < first[4]
    assert first[6] < first[1] < first[7]
    words = {row["name"]: row["words"] for row in data["table"]["rows"]}
    assert words["1 host"] == ["least energy"]
    assert words["2 hosts"] == ["least energy × delay"]
    assert words["3 hosts"] == ["least time"]
    assert words["4 hosts"] == ["slower, more energy"]
    (least,) = [row for row in data["table"]["rows"] if row["name"] == "1 host"]
    assert least["cells"][1][1].startswith("−34\u202f% (−35 to")


def test_energy_part_names_the_least_of_each_metric_that_may_decide(part):
    table = part()["table"]
    assert {choice["metric"]: choice["is_chosen"] for choice in table["choices"]} == {
        "elapsed_s": True,  # the workload's own metric is not one of them
        "energy_j": False,
        "energy_delay_js": False,
    }
    words = [plain(choice["words"]) for choice in table["choices"]]
    assert words[0].startswith("Least time: 3 hosts, 50")
    assert words[1].startswith("Least energy: 1 host, 39")
    assert words[2].startswith("Least energy × delay: 2 hosts, 2")
    assert "No clear change" not in words[0]
    assert [row["name"] for row in table["rows"] if row["is_best"]] == ["3 hosts"]
    least = {metric: row["name"] for row in table["rows"] for metric in row["least"]}
    assert least == {"elapsed_s": "3 hosts", "energy_j": "1 host", "energy_delay_js": "2 hosts"}


def test_energy_part_names_the_sources_of_energy_and_their_trust(library):
    experiment = measured(library, SIZES, solve)
    first, *_ = trials = list(experiment.trials.order_by("pk"))
    for trial in trials:
        trial.conditions["metric_sources"] = {"RAPL": {"trust": "measured", "metrics": ["energy_j"]}}
    first.conditions["metric_sources"] = {
        "RAPL; GPU (amdgpu)": {"trust": "estimated", "metrics": ["energy_j"]},
        "NFS": {"trust": "measured", "metrics": ["nfs_read_bytes"]},
    }
    Trial.objects.bulk_update(trials, ["conditions"])
    data = energy_part(Measured.alone(experiment), {})
    assert data is not None
    assert data["sources"] == "RAPL; GPU (amdgpu) (estimated); RAPL (measured)"


def test_the_answer_names_no_least_energy_if_a_source_estimates(library):
    experiment = measured(library, {**SIZES, "deciding": "elapsed_s"}, solve)
    assert "less energy" in diagnosis_of(experiment).answer.sentence
    trial = experiment.trials.first()
    trial.conditions["metric_sources"] = {"GPU (amdgpu)": {"trust": "estimated", "metrics": ["energy_j"]}}
    trial.save(update_fields=["conditions"])
    forget_diagnosis(experiment)
    assert "energy" not in diagnosis_of(experiment).answer.sentence


def test_configurations_have_a_column_of_energy(library):
    columns = [column.metric for column in Results(measured(library, SIZES, solve)).table()["columns"]]
    assert columns.count("energy_j") == 1
    assert "energy_delay_js" not in columns
    delays = {**SIZES, "name": "Delays", "deciding": "energy_delay_js"}
    columns = [column.metric for column in Results(measured(library, delays, solve)).table()["columns"]]
    assert (columns[0], "energy_j" in columns) == ("energy_delay_js", True)


def test_energy_part_draws_the_power_without_a_trial(library):
    experiment = measured(library, SIZES, solve)
    assert experiment.cluster is not None
    experiment.cluster.fill_in({"idle_watts_per_host": 148.0})
    data = energy_part(Measured.alone(experiment), {})
    assert data is not None
    assert [shape["y0"] for shape in data["power"]["layout"]["shapes"]] == [148]
    assert [plain(note["text"]) for note in data["power"]["layout"]["annotations"]] == ["without a trial: 148 W"]


def test_energy_part_divides_energy_by_the_time_of_the_ranks(part):
    data = part()
    heights = [trace["y"] for trace in data["states"]["data"]]
    assert [sum(column) for column in zip(*heights, strict=True)] == pytest.approx([40, 44, 60, 90], rel=0.03)
    assert data["states"]["layout"]["yaxis"]["title"]["text"] == "Energy (kJ)"
    medians = data["power"]["data"][-1]
    assert medians["x"] == [1, 2, 3, 4]
    assert medians["y"][1] == pytest.approx(44_000 / 60 / 2, rel=0.03)


def test_energy_part_needs_the_energy_of_two_sizes(part):
    def without(parameters):
        values = solve(parameters)
        return values if parameters["hosts"] == 1 else {k: v for k, v in values.items() if not k.startswith("energy")}

    assert part(without) is None


def test_page_shows_energy_without_profiles(page, library):
    def unprofiled(parameters):
        return {name: value for name, value in solve(parameters).items() if not name.startswith("mpi_")}

    experiment = measured(library, SIZES, unprofiled)
    Measurement.objects.filter(trial__experiment=experiment, metric="energy_j", trial__repetition=1).delete()
    parts = {
        part.element: part for part in page.get(reverse("experiment-parts", args=[experiment.slug])).context["parts"]
    }
    assert parts["energy"].context["states"] is None
    assert (parts["energy"].context["trials"], parts["energy"].context["of"]) == (8, 12)
