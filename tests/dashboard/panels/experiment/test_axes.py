"""The x axis of a chart: hosts, the parameter with most values, or the step."""

from math import log10

import pytest

from analysis.conclusions import Answer
from analysis.conclusions.answer import Figure
from dashboard.charts.parts import Line, Published
from dashboard.charts.sweep import over_parameter
from dashboard.panels.experiment.axes import STEP
from dashboard.panels.experiment.results import Results
from dashboard.panels.experiment.tables import squares
from experiments import workloads
from experiments.models import Experiment, Kind, Measurement, State
from experiments.selectors.diagnosis import diagnosis_of
from experiments.selectors.experiments import TrialMark
from experiments.selectors.study import study_of
from tests.dashboard.studies_measured import FACTORS, LADDER, READERS, measured, read, solve
from tests.experiments import factories


def chart_of(experiment, title):
    return next(c.figure for s in Results(experiment).sections() for c in s.charts if c.title == title)


def test_it_draws_single_steps_in_their_order_as_one_series(library):
    figure = chart_of(measured(library, LADDER, solve), "HPL rate")
    (medians,) = [trace for trace in figure["data"] if trace["mode"] == "lines+markers"]
    assert (medians["x"], medians["y"]) == ([1, 2, 3], [1, 2, 3])
    assert figure["layout"]["xaxis"]["title"]["text"] == "Step"


def test_it_draws_every_combination_over_a_parameter(library):
    assert Results(measured(library, FACTORS, solve)).parameter != STEP


def test_it_draws_a_published_table_of_numbered_tests_over_the_number(library):
    figure = chart_of(Experiment.objects.get(slug="eadline-2006-hpl"), "HPL rate")
    assert figure["layout"]["xaxis"]["title"]["text"] == "Test"


@pytest.mark.parametrize(
    ("specification", "values", "best"),
    [
        (LADDER, solve, "nb 160, ns 2 000"),
        (READERS, read, "jobs 1, bandwidth 1 Gbit/s"),
    ],
)
def test_it_marks_the_best_by_what_the_workload_is_about(library, specification, values, best):
    results = Results(measured(library, specification, values))
    assert all(results.has(column.metric) for column in results.table()["columns"])
    rows = results.table()["rows"]
    assert [row["point"].replace("\u202f", " ") for row in rows if row["best"]] == [best]


def test_it_marks_the_best_of_each_group_that_the_answer_compares(library):
    sizes = {"hosts": [1, 2], "molecules": [64, 512]}
    experiment = measured(
        library, {"name": "Sizes", "workload": "water", "sweep": sizes, "repetitions": 2}, solve_water
    )
    figures = tuple(Figure("best size", 2, "hosts", where={"molecules": count}) for count in (64, 512))
    rows = Results(experiment, None, Answer("scale", "", "open", figures)).table()["rows"]
    assert [row["row"].parameters["molecules"] for row in rows if row["best"]] == [64, 512]
    assert sum(row["best"] for row in Results(experiment).table()["rows"]) == 1


@pytest.mark.parametrize(
    ("strength", "words"),
    [
        ("firm", "best"),
        ("moderate", "best median"),
        ("open", "best median"),
        (None, "best median"),
        ("drift", "best as measured"),
    ],
)
def test_only_a_conclusive_answer_names_the_best_and_the_fastest(library, strength, words):
    experiment = measured(
        library, {"name": "Sizes", "workload": "water", "sweep": {"hosts": [1, 2]}, "repetitions": 1}, solve_water
    )
    answer = None if strength is None else Answer("scale", "", strength)
    if strength == "drift":  # the answer's medians are without it, those of rows and charts are not
        answer = Answer("scale", "", "firm", is_without_drift=True)
    results = Results(experiment, None, answer)
    assert results.table()["best_word"] == words
    chart = next(c for section in results.sections() for c in section.charts if c.element == "time")
    [note] = [note["text"] for note in chart.figure["layout"]["annotations"]]
    assert note.removeprefix("&nbsp;").startswith(words.replace("best", "fastest") + ":")


def solve_water(parameters):
    return {"elapsed_s": 4.0 / parameters["hosts"], "cpu_mean_rank_s": 1.0}


def test_a_workload_whose_ranks_have_the_same_work_scales_weakly(library):
    """Twice the hosts exchange twice the messages in the same time: nothing is lost."""
    spec = {"name": "Ring", "workload": "ring", "sweep": {"hosts": [2, 4]}, "repetitions": 2}
    experiment = measured(library, spec, lambda p: {"elapsed_s": 3.0, "ring.loop_time_s": 2.0, "cpu_mean_rank_s": 1.0})
    charts = {chart.element: chart.figure for section in Results(experiment).sections() for chart in section.charts}
    speed_up, efficiency = (
        next(trace for trace in charts[name]["data"] if trace["name"] == "Measured")
        for name in ("speedup", "efficiency")
    )
    assert (speed_up["y"], efficiency["y"]) == ([1, 2], [100, 100])
    answer = diagnosis_of(experiment).answer
    assert (answer.question, study_of(experiment).kind) == ("weak scale", "weak")


def test_charts_name_the_deciding_time_before_the_first_trial_and_the_parts_that_the_program_times(library):
    charts = {chart.element: chart for s in Results(factories.experiment()).sections() for chart in s.charts}
    assert charts["speedup"].subtitle.startswith("loop time, against ")
    assert ("water.pair_s", "Pair time") in charts["where-time-goes"].parts


def test_it_judges_a_command_by_its_first_directed_figure():
    extract = [{"name": "n", "regex": "(.*)"}, {"name": "t_s", "regex": "(.*)", "direction": "lower", "unit": "s"}]
    assert workloads.get("command", {"program": ["true"], "extract": extract}).decides == "command.t_s"
    assert workloads.get("command").decides == "elapsed_s"


def test_it_puts_values_of_several_powers_of_ten_but_hosts_on_a_logarithmic_axis():
    def axis(xs, parameter):
        lines = [Line("", xs, [[1.0] for _ in xs])]
        figure = over_parameter(lines, quantity="T", unit="s", parameter=parameter, fastest="fastest")
        return figure["layout"]["xaxis"].get("type"), figure["layout"]["annotations"][0]["x"]

    assert axis([2.0, 1000.0], "Bandwidth (Mbit/s)") == ("log", pytest.approx(log10(2)))
    assert axis([10.0, 100.0], "Bandwidth (Mbit/s)") == (None, 10.0)
    assert axis([1, 128], "Hosts") == (None, 1)


def test_it_draws_a_line_from_left_to_right_whatever_the_order_of_the_rows():
    lines = [Line("a", [4, 1, 2], [[40.0], [10.0], [20.0]])]
    published = [Published("b", [8, 2], [80.0, 20.0])]
    figure = over_parameter(lines, published, quantity="T", unit="s", parameter="N")
    drawn = {trace["name"]: (trace["x"], trace["y"]) for trace in figure["data"] if "lines" in trace["mode"]}
    assert drawn == {"a": ([1, 2, 4], [10, 20, 40]), "b": ([2, 8], [20, 80])}


def test_it_does_not_take_points_of_a_published_table_for_steps(library):
    figure = chart_of(Experiment.objects.get(slug="monarc-1999-readers"), "Client CPU, largest")
    assert figure["layout"]["xaxis"]["title"]["text"] == "Jobs"


def test_the_speed_up_is_of_a_deciding_metric_that_is_a_rate_by_its_unit(submit):
    for metric, rate in (
        ("water.ns_per_day", "water.ns_per_day"),
        ("water.cpu_use_percent", ""),
        ("water.loop_time_s", ""),
    ):
        experiment = submit(deciding=metric, sweep={"hosts": [1, 2]}, repetitions=1)
        for trial in experiment.trials.all():
            Measurement.objects.create(trial=trial, metric=metric, value=50.0)
        experiment.trials.update(state="finished")
        results = Results(experiment)
        assert (results.deciding, results._rate) == (metric, rate)
        assert results._time == (metric if metric == "water.loop_time_s" else "elapsed_s")


def test_attempts_of_a_repetition_are_in_their_order() -> None:
    marks = [TrialMark(pk, State.FINISHED, Kind.MEASURED, 3, attempt, "good", "") for pk, attempt in ((7, 2), (4, 1))]
    assert [mark["pk"] for mark in squares(marks)] == ["4", "7"]
