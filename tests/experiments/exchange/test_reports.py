"""Result files of ReFrame, Ramble and TALP become trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments import metrics
from experiments.common import external_figures
from experiments.errors import BadBundle
from experiments.exchange.importers import read_report
from experiments.exchange.measured import checked
from experiments.library import load_defaults
from experiments.models import Experiment
from experiments.selectors.diagnosis import diagnosis_of
from tests.experiments.exchange import reports


def read(data: dict[str, Any]) -> Any:
    return read_report(json.dumps(data))


def test_a_case_of_reframe_is_a_trial_with_units_hosts_and_ranks() -> None:
    report = read(reports.reframe())
    (described,) = report.sets
    assert (report.tool, described["cluster"], described["workload"]) == ("ReFrame 4.10.4", "bench:two", "ring_test")
    _, points = checked(described)
    assert points[1] == {"hosts": 1, "ranks": 2, "reframe_ranks": 2, "environ": "gnu"}
    figures = described["trials"][1]["figures"]
    assert (figures["reframe.latency_s"], figures["reframe.bandwidth_bytes_per_s"]) == (1.25e-6, 940.5e6)
    assert metrics.find("reframe.bandwidth_bytes_per_s").unit == "B/s"
    assert described["trials"][1]["command"][0] == "echo"
    assert described["trials"][1]["ended_at"] == "2026-11-23T14:17:11.078846+00:00"


def test_a_case_of_reframe_that_failed_is_left_out_by_name() -> None:
    (sentence,) = read(reports.reframe()).left_out
    assert sentence.startswith(
        "broken_test on bench:two with gnu: it failed in the phase sanity: sanity error: pattern 'never'"
    )


def _change(**record: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["runs"][0]["testcases"][1].update(record)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_change(job_nodelist=None, num_tasks_per_node=None), "neither its nodes nor how many tasks"),
        (_change(result="abort"), "was not run to its end (abort)"),
        (_change(fixture=True), "fixture of other tests"),
        (
            _change(perfvalues={"bench:two:rate": [1, 0, None, None, "°C", "pass"]}),
            "the figure rate: its unit '°C' is not known",
        ),
        (
            _change(perfvalues={"bench:two:rate": [None, 0, None, None, "s", "pass"]}),
            "the figure rate: 'None' is no number",
        ),
        (_change(perfvalues={"bench:two:rate": [1, 0]}), "the figure rate: its value and unit are not in"),
        (_change(perfvalues={"x:a b": [1, 0, 0, 0, "s"], "x:a_b": [2, 0, 0, 0, "s"]}), "called reframe.a_b_s here"),
    ],
)
def test_read_report_names_excluded_cases_and_figures(change: Callable[[dict[str, Any]], None], words: str) -> None:
    data = reports.reframe()
    change(data)
    assert any("ring_test %ranks=2" in each and words in each for each in read(data).left_out)


def test_a_case_that_only_missed_its_reference_was_measured() -> None:
    data = reports.reframe()
    _change(result="fail", fail_phase="performance", fail_reason="too slow")(data)
    report = read(data)
    assert len(report.sets[0]["trials"]) == 2
    assert len(report.left_out) == 1


def test_read_report_computes_hosts_from_tasks() -> None:
    data = reports.reframe()
    _change(job_nodelist=None, num_tasks=7, num_tasks_per_node=2)(data)
    assert read(data).sets[0]["trials"][1]["parameters"]["hosts"] == 4


def test_experiments_of_ramble_that_succeeded_are_trials() -> None:
    report = read(reports.ramble())
    (described,) = report.sets
    assert (described["workload"], described["cluster"]) == ("amg.problem1", "scaling")
    assert checked(described)[1] == [{"hosts": 2, "ranks": 4, "grid": 64}, {"hosts": 4, "ranks": 8, "grid": 128}]
    assert described["trials"][0]["figures"] == {
        "ramble.total_time_s": 12.5,
        "ramble.figure_of_merit_in_zones_per_s": 3.5,
        "ramble.phase_1_setup_s": 0.25,
    }
    assert metrics.find("ramble.figure_of_merit_in_zones_per_s").unit == "zones/s"
    assert report.left_out == [
        "amg.problem1.a_8: its status is FAILED",
        "amg.problem1.a_r: it holds the statistics of repeats, which are imported one by one",
        "amg.problem1.a_2: the figure Compiler: 'gcc' is no number",
        "amg.problem1.a_4: the figure Compiler: 'gcc' is no number",
    ]


def test_the_region_of_talp_that_spans_mpi_gives_the_catalogue_s_efficiencies() -> None:
    report = read(reports.talp())
    (trial,) = report.sets[0]["trials"]
    assert trial["parameters"] == {"hosts": 2, "ranks": 4}
    assert trial["figures"] == {
        "mpi_window_s": 2.5,
        "mpi_useful_s": 8.0,
        "mpi_parallel_efficiency": 0.8,
        "mpi_communication_efficiency": 0.89,
        "mpi_load_balance": 0.9,
        "mpi_calls": 1200,
    }
    checked(report.sets[0])
    assert report.left_out == ["the region solve: only the one that spans MPI becomes a trial"]


def test_ranks_with_threads_are_not_taken_for_such_without() -> None:
    report = read(reports.talp(numOmpParallels=3))
    assert not report.sets
    assert "OpenMP threads" in report.left_out[-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1}', "no result file that is known here"),
        ("[1]", "no result file that is known here"),
        ('{"a":\n nan}', "no JSON that can be read: Expecting value: line 2 column 2"),
        ('{"a": 1, "a": 2}', "'a' is given twice"),
        ("[" * 100_000, "no JSON that can be read"),
        (
            json.dumps({**reports.reframe(), "session_info": {"data_version": "3.1"}}),
            "data versions 4.x; this one is '3.1'",
        ),
        (json.dumps({**reports.reframe(), "runs": [{"testcases": "none"}]}), "runs.0.testcases"),
        (json.dumps({**reports.talp(), "dlbVersion": "3.3.1"}), "DLB 3.5, 3.6, 3.7; this one is of '3.3.1'"),
        (json.dumps({**reports.talp(), "Application": {"solve": {}}}), "no region that spans MPI"),
        (json.dumps(reports.talp(mpiLoadBalance=7)), "mpiLoadBalance"),
        (json.dumps({"workspace_name": "w", "experiments": []}), "no experiment in these results"),
        (json.dumps({"workspace_name": "w", "experiments": ["x"]}), "experiments.0"),
    ],
)
def test_another_file_or_version_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(BadBundle) as caught:
        read_report(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("unit", "identifier", "value", "shown"),
    [
        ("us", "reframe.rate_s", 2e-6, "s"),
        ("MB/s", "reframe.rate_bytes_per_s", 2e6, "B/s"),
        ("GiB/s", "reframe.rate_bytes_per_s", 2.0**31, "B/s"),
        ("Mbit/s", "reframe.rate_bps", 2e6, "bit/s"),
        ("Mflops", "reframe.rate_gflops", 0.002, "GFLOP/s"),
        ("KiB", "reframe.rate_bytes", 2048, "B"),
        ("%", "reframe.rate_percent", 2, "%"),
        ("ns/day", "reframe.rate_in_ns_per_day", 2, "ns/day"),
        ("", "reframe.rate", 2, "1"),
    ],
)
def test_named_puts_the_unit_into_the_identifier(unit: str, identifier: str, value: float, shown: str) -> None:
    assert external_figures.named("reframe", "rate", 2, unit) == (identifier, value)
    assert metrics.find(identifier).unit == shown


def test_a_name_that_ends_as_a_unit_does_has_none_for_that() -> None:
    name, value = external_figures.named("reframe", "speed_s", 3, "")
    assert (metrics.find(name).unit, value) == ("1", 3)


def written(directory: Path, data: dict[str, Any]) -> str:
    place = directory / "report.json"
    place.write_text(json.dumps(data))
    return str(place)


def test_import_command_reports_and_stores_a_report(tmp_path: Path, db: None, session_directory: Path) -> None:
    load_defaults()
    before = Experiment.objects.count()
    place, output = written(tmp_path, reports.reframe()), StringIO()
    call_command("import", place, dry_run=True, stdout=output)
    assert "ring_test on bench:two: 2 trials with 0 files." in output.getvalue()
    assert "left out: broken_test on bench:two with gnu: it failed in the phase sanity" in output.getvalue()
    assert Experiment.objects.count() == before
    call_command("import", place, stdout=StringIO())
    imported = Experiment.objects.get(workload="ring_test")
    assert (imported.is_imported, imported.origin["tool"], imported.origin["file"]) == (
        True,
        "ReFrame 4.10.4",
        "report.json",
    )
    measured = dict(imported.trials.earliest("position").measurements.values_list("metric", "value"))
    assert measured["reframe.latency_s"] == 1.25e-6
    assert "best" not in diagnosis_of(imported).answer.sentence, (
        "whether more or less of its figures is better, ReFrame does not say"
    )
    output = StringIO()
    call_command("import", place, stdout=output)
    assert "it is here already" in output.getvalue()


def test_the_command_refuses_with_exit_code_2(tmp_path: Path, db: None) -> None:
    load_defaults()
    with pytest.raises(CommandError, match=r"this one is of '2\.0'") as caught:
        call_command("import", written(tmp_path, {**reports.talp(), "dlbVersion": "2.0"}))
    assert caught.value.returncode == 2
