"""Values of imports are those that were written, or refused."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.errors import BadBundle, InvalidSpec
from experiments.exchange.external_results import import_description
from experiments.exchange.importers import read_report
from experiments.exchange.measured import checked, read_measured
from experiments.library import load_defaults
from experiments.models import Cluster, Configuration, Experiment
from tests.analysis.capture_files import Frame, pcap
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments.exchange import reports

CASES = Path(__file__).parents[2] / "data" / "cases"
HEAD = "name: a\nworkload: heat\ncluster: S\n"


@pytest.fixture
def directory(tmp_path: Path, db: None, session_directory: Path) -> Path:
    load_defaults()
    return tmp_path


def imported(file: Path) -> str:
    """Import a file after its dry run; return what both reported."""
    texts = []
    for dry_run in (True, False):
        output = StringIO()
        try:
            call_command("import", str(file), dry_run=dry_run, stdout=output)
        except CommandError as error:
            texts.append(str(error))
        else:
            texts.append(output.getvalue().replace("Would be created", "Created").partition(" /experiments/")[0])
    assert texts[0].strip() == texts[1].strip() or texts[0].startswith(texts[1].strip())
    return texts[0]


def described(directory: Path, trials: str, head: str = HEAD) -> Path:
    file = directory / "described.yaml"
    file.write_text(f"{head}trials:\n{trials}\n")
    return file


def tabulated(directory: Path, table: str, head: str = HEAD) -> Path:
    directory.joinpath("table.yaml").write_text(head)
    file = directory / "table.csv"
    file.write_text(table)
    return file


def points() -> list[dict[str, Any]]:
    return list(Configuration.objects.order_by("position").values_list("parameters", flat=True))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("04-talp-37.json", "TALP on 2 hosts, 4 ranks: 1 trial"),
        ("04b-talp-37-omp.json", "its ranks have OpenMP threads"),
        ("04d-talp-37-process.json", "have it written with --talp-summary=pop-metrics"),
        ("04e-talp-36-dev.json", "this one is of '3.6-dev+g1234'"),
        ("04f-talp-eff-over-1.json", "mpiLoadBalance: "),
        ("13-reframe-zero-tasks.json", "osu_lat on lab:cpu: 2 trials"),
        ("13b-reframe-negative-tasks.json", "osu_lat on lab:cpu: 2 trials"),
        ("14-reframe-xfail.json", "osu_lat on lab:cpu: 3 trials"),
        ("14b-reframe-perfvalue-text.json", "the figure latency: '1,5' is text, and ReFrame writes numbers"),
        ("14c-reframe-nodelist-string.json", "osu_lat %size=8: job_nodelist: must be a valid list, not 'n[1-2]'"),
        ("14f-reframe-bom.json", "osu_lat on lab:cpu: 1 trial"),
        ("14g-reframe-utf16.json", "is text in UTF-16: save it as UTF-8"),
        ("14h-reframe-nan.json", "the figure latency: 'nan' is no number"),
        ("15-ramble-repeats.json", "osu_latency of ws: 2 trials"),
        ("15b-ramble-value-unit.json", "'1,250.5' is no number"),
        ("15c-ramble-warmup.json", "osu_latency of ws: 1 trial"),
        ("17-gromacs-two.yaml", "17-gromacs-two.yaml: 1 trial with 1 file"),
        ("46-table-latin1.csv", "46-table-latin1.csv is not text in UTF-8: line 1 has the byte 0xe4"),
        ("46-table-negative.csv", "line 2, column elapsed_s: -12.5 is impossible"),
        ("46-table-param-bool.csv", "Table: 3 trials"),
        ("46-table-param-hash.csv", "Table: 1 trial"),
        ("46-table-param-version.csv", "Table: 2 trials"),
        ("46-table-utf16.csv", "is text in UTF-16"),
        ("47-desc-bool.yaml", "line 5: versions of YAML differ on yes: write true or 'yes'"),
        ("47-desc-boolname.yaml", "a: 1 trial"),
        ("47-desc-capture-zeros.yaml", "a: 1 trial with 1 file"),
        ("47-desc-exp.yaml", "a: 1 trial"),
        ("47-desc-list.yaml", "[2, 2, 1] is neither a number nor a text"),
        ("47-desc-mixed-types.yaml", "true is neither a number nor a text: write 'true' with quotes"),
        ("47-desc-sexa.yaml", "write 90 or '1:30'"),
    ],
)
def test_import_of_a_case_is_right_or_refused_at_its_place(directory: Path, case: str, words: str) -> None:
    assert words in imported(CASES / case)


def test_import_reads_the_output_of_a_command_with_lists(directory: Path) -> None:
    imported(CASES / "17-gromacs-two.yaml")
    (experiment,) = Experiment.objects.all()
    assert dict(experiment.trials.get().measurements.values_list("metric", "value")) == {"command.ns_per_day": 43.2}


def test_import_of_zeros_behind_the_packets_reports_them(directory: Path) -> None:
    imported(CASES / "47-desc-capture-zeros.yaml")
    (trial,) = Experiment.objects.get().trials.all()
    assert trial.trust == "degraded"
    assert any("zero bytes at the end" in reason for reason in trial.trust_reasons)


COMMAND = "name: a\nworkload: command\ncluster: S\nparameters:\n  hosts: 2\n  program: [x, '{v}']\n"


@pytest.mark.parametrize(
    ("parameters", "trials", "words"),
    [
        ("  placeholders: {v: {type: text, default: a}}\n", "- {figures: {elapsed_s: 1}}", "1 trial"),
        ("  placeholders: {v: {type: text}}\n", "- {parameters: {v: a}, figures: {elapsed_s: 1}}", "1 trial"),
        (
            "  inputs: {a: b}\n  environment: {A: b}\n",
            "- {figures: {elapsed_s: 1}}\n- {figures: {elapsed_s: 2}}",
            "2 trials",
        ),
        ("  keep: ['*.log']\n  modules: [m]\n", "- {figures: {elapsed_s: 1}}", "1 trial"),
        ("", "- {parameters: {keep: [a]}, figures: {elapsed_s: 1}}\n- {figures: {elapsed_s: 1}}", "2 trials"),
        (
            "",
            "- {parameters: {keep: [a]}, figures: {elapsed_s: 1}}\n- {parameters: {keep: [b]}, figures: {elapsed_s: 1}}",
            "trials.1.parameters.keep: is a list, which has to be the same in all trials",
        ),
        ("  keep: {a: b}\n", "- {figures: {elapsed_s: 1}}", "parameters.keep: "),
        ("  decks: [a]\n", "- {figures: {elapsed_s: 1}}", "parameters.decks: "),
        ("  placeholders: {v: {type: text, default: 007}}\n", "- {figures: {elapsed_s: 1}}", "write 7 or '007'"),
    ],
)
def test_import_treats_lists_and_mappings_as_its_dry_run(
    directory: Path, parameters: str, trials: str, words: str
) -> None:
    assert words in imported(described(directory, trials, COMMAND + parameters))


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        ("{parameters: {hosts: 1000000, ranks_per_host: 1000000}, figures: {elapsed_s: 1}}", "1000000000000 ranks"),
        (f"{{figures: {{reframe.{'x' * 90}: 1}}}}", "there is no metric"),
        ("{figures: {elapsed_s: 1e300}}", "1e+300 is no measurement"),
        ("{figures: {elapsed_s: 1}, ended_at: 0001-01-01T00:00:00+14:00}", "ended_at"),
        ("{figures: {elapsed_s: 1}, ended_at: 9999-12-31T23:59:00-12:00}", "ended_at"),
        ("{parameters: {link.delay: fast}, figures: {elapsed_s: 1}}", "'fast' is not a time"),
        ("{parameters: {v: .inf}, figures: {elapsed_s: 1}}", "must be a finite number"),
        ("{parameters: {v: 9223372036854775808}, figures: {elapsed_s: 1}}", "too large a number"),
        ("{parameters: {v: null}, figures: {elapsed_s: 1}}", "null is neither a number nor a text"),
        ("{parameters: {hosts: true}, figures: {elapsed_s: 1}}", "true is no count"),
    ],
)
def test_import_refuses_what_the_database_or_a_page_cannot_hold(directory: Path, trial: str, words: str) -> None:
    assert words in imported(described(directory, f"- {trial}"))


def test_dry_run_refuses_a_cluster_that_has_the_name_already(directory: Path) -> None:
    Cluster.objects.create(slug="s-elsewhere", name="Own", kind="ssh", settings={})
    assert "A cluster of this installation is called s-elsewhere" in imported(
        described(directory, "- {figures: {elapsed_s: 1}}")
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("true", "must be a number, not true"),
        ("'1_000'", "must be a number, not '1_000'"),
        ("'١٢'", "must be a number"),
        ("'0x10'", "must be a number"),
        ("'1,5'", "must be a number"),
        ("' 1'", "must be a number"),
        (".nan", "must be a finite number"),
        ("-1", "-1 is impossible: elapsed_s is never negative"),
        ("[1]", "must be a number"),
        ("1:30", "write 90 or '1:30'"),
        ("0b11", "write 3 or '0b11'"),
    ],
)
def test_read_measured_refuses_a_figure_that_is_no_number(value: str, words: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        read_measured(f"{HEAD}trials:\n- figures:\n    elapsed_s: {value}\n")
    assert words in caught.value.errors[0].message
    assert caught.value.errors[0].line == 6


@pytest.mark.parametrize(
    ("figure", "value", "is_possible"),
    [
        ("packets", -1, False),
        ("mpi_load_balance", 1.2, False),
        ("mpi_load_balance", 1, True),
        ("mpi_transfer_efficiency", 1.02, True),
        ("cpu_utilisation", 1.9, True),
        ("observer_effect", -0.02, True),
        ("start_end_s", -0.001, True),
        ("reframe.latency_s", -1, False),
        ("reframe.energy_j", -1, True),
        ("reframe.rate_bps", -1, False),
        ("throughput_bps", -3, False),
    ],
)
def test_read_measured_refuses_impossible_values(figure: str, value: float, is_possible: bool) -> None:
    text = f"{HEAD}trials:\n- figures: {{{figure}: {value}}}\n"
    if is_possible:
        read_measured(text)
        return
    with pytest.raises(InvalidSpec, match="is impossible"):
        read_measured(text)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("4.10", "4.1", "write 4.1 or '4.10'"),
        ("007", "7", "write 7 or '007'"),
        ("1e3", "1000", "write 1000.0 or '1e3'"),
        ("+5", "5", "write 5 or '+5'"),
        ("1", "1.0", "1 and 1.0 are one value"),
        ("1.0", "1", "1.0 and 1 are one value"),
        ("12345678901234567.5", "1", "write 1.2345678901234568e+16 or"),
        ("010", "10", "write 8 or '010'"),
        ("1", "true", "true is neither a number nor a text"),
    ],
)
def test_read_measured_pools_no_values_that_differ_as_written(first: str, second: str, words: str) -> None:
    trials = "".join(f"- {{parameters: {{v: {value}}}, figures: {{elapsed_s: 1}}}}\n" for value in (first, second))
    with pytest.raises(InvalidSpec) as caught:
        read_measured(f"{HEAD}trials:\n{trials}")
    assert words in caught.value.errors[0].message
    assert caught.value.errors[0].line in (5, 6)


@pytest.mark.parametrize(
    "quoted", [("'4.10'", "'4.1'"), ("'007'", "7"), ("'1'", "1"), ("'true'", "'True'"), ("'1e3'", "1000")]
)
def test_import_keeps_texts_apart(directory: Path, quoted: tuple[str, str]) -> None:
    trials = "".join(f"- {{parameters: {{v: {value}}}, figures: {{elapsed_s: 1}}}}\n" for value in quoted)
    imported(described(directory, trials))
    (experiment,) = Experiment.objects.all()
    assert experiment.configurations.count() == 2
    read = [json.loads(value.replace("'", '"')) for value in quoted]
    assert [point["v"] for point in points()] == read
    assert experiment.specification["sweep"] == {"v": read}


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2"], [1, 2]),
        (["0.5", "16"], [0.5, 16]),
        (["-7", "1e-07"], [-7, 1e-07]),
        (["4.10", "4.1"], ["4.10", "4.1"]),
        (["4.9", "4.10"], ["4.9", "4.10"]),
        (["007", "7"], ["007", "7"]),
        (["1", "1.0"], ["1", "1.0"]),
        (["0.50", "1.5"], ["0.50", "1.5"]),
        (["64 KiB", "65536"], ["64 KiB", "65536"]),
        (["true", "True"], ["true", "True"]),
        (["true", "1"], ["true", "1"]),
        (["7205759403792793600001", "1"], ["7205759403792793600001", "1"]),
        (["9007199254740993", "9007199254740992"], [9007199254740993, 9007199254740992]),
        (["0.1000000000000000055", "0.1"], ["0.1000000000000000055", "0.1"]),
        (["#1", "1:2"], ["#1", "1:2"]),
        (["1_000", "1000"], ["1_000", "1000"]),
        (["٣", "3"], ["٣", "3"]),
        (["1" * 5000, "1"], ["1" * 5000, "1"]),
        (["nan", "inf"], ["nan", "inf"]),
        (["-0", "0"], ["-0", "0"]),
    ],
)
def test_import_of_a_table_keeps_a_column_as_written(directory: Path, cells: list[str], values: list[Any]) -> None:
    imported(tabulated(directory, "parameters.v,elapsed_s\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert [point["v"] for point in points()] == values


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("hosts,elapsed_s\n2,1,3\n", "line 2: has 3 cells, and there are 2 columns"),
        ("hosts,elapsed_s\n2\n", "line 2: has 1 cells"),
        ("hosts,elapsed_s,elapsed_s [s]\n2,1,1\n", "line 1, column elapsed_s [s]: is there twice"),
        ("hosts,parameters.hosts,elapsed_s\n2,3,1\n", "line 1, column parameters.hosts: is there twice"),
        ("hosts,elapsed_s\n2,1\n2,inf\n", "line 3, column elapsed_s: 'inf' is no number"),
        ("hosts,elapsed_s\n2,1\n2,1_0\n", "line 3, column elapsed_s: '1_0' is no number"),
        ("hosts,elapsed_s\n2,1\n2.0,1\n", "line 3, column hosts: '2.0' is no count"),
        ("hosts,elapsed_s\n٣,1\n", "line 2, column hosts: '٣' is no count"),
        ("hosts,mpi_load_balance\n2,1.5\n", "line 2, column mpi_load_balance: 1.5 is impossible"),
    ],
)
def test_import_of_a_table_refuses_cells_at_their_line(directory: Path, table: str, words: str) -> None:
    assert words in imported(tabulated(directory, table))


def test_import_of_a_table_reads_a_column_by_its_definition(directory: Path) -> None:
    head = "name: a\nworkload: imb\ncluster: S\nparameters: {benchmark: PingPong}\n"
    imported(tabulated(directory, "hosts,parameters.message_bytes,elapsed_s\n02,0100,1\n2,1 KiB,1\n", head))
    assert [(point["hosts"], point["message_bytes"]) for point in points()] == [(2, 100), (2, 1024)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name: a\xff\n", "line 1 has the byte 0xff"),
        (b"name: a\nworkload: b\ncluster: Z\xfcrich\n", "line 3 has the byte 0xfc"),
        ("name: a\n".encode("utf-16"), "is text in UTF-16"),
    ],
)
def test_import_description_refuses_other_encodings_at_their_line(directory: Path, content: bytes, words: str) -> None:
    file = directory / "described.yaml"
    file.write_bytes(content)
    with pytest.raises(BadBundle, match=words):
        import_description(file, project=load_defaults())


def test_import_of_a_capture_with_zeros_counts_its_packets(directory: Path) -> None:
    frames = [Frame.whole(1_700_000_000_000_000_000 + n, ethernet(ipv4(tcp(seq=n, flags=0x10)))) for n in range(5)]
    directory.joinpath("wire.pcap").write_bytes(pcap(frames) + bytes(4096))
    imported(described(directory, "- {capture: wire.pcap}"))
    (trial,) = Experiment.objects.get().trials.all()
    assert dict(trial.measurements.filter(scope="all").values_list("metric", "value"))["packets"] == 5
    assert "4 096 zero bytes at the end" in trial.trust_reasons[0].replace("\u202f", " ")


def case(**changes: Any) -> dict[str, Any]:
    data = reports.reframe()
    data["runs"][0]["testcases"][1].update(changes)
    return data


@pytest.mark.parametrize(
    ("changes", "trials", "words"),
    [
        ({"num_tasks": "2"}, 1, "num_tasks: must be a whole number, not '2'"),
        ({"num_tasks": True}, 1, "num_tasks: must be a whole number, not True"),
        ({"num_tasks": 2.5}, 1, "num_tasks: must be a whole number"),
        ({"partition": None}, 1, "partition: is missing"),
        ({"time_run": "12"}, 1, "time_run: must be a number, not '12'"),
        ({"perfvalues": []}, 1, "perfvalues: "),
        ({"result": None}, 1, "result: is missing"),
        ({"num_tasks": None, "num_tasks_per_node": None, "job_nodelist": ["a"]}, 1, "neither how many tasks it had"),
        ({"num_tasks": 0, "num_tasks_per_node": None, "job_nodelist": ["a"]}, 1, "neither how many tasks it had"),
        ({"num_tasks": -4, "num_tasks_per_node": 2, "job_nodelist": None}, 1, "neither its nodes"),
        ({"num_tasks": "<undefined>", "num_tasks_per_node": "<undefined>"}, 1, "neither how many tasks"),
        ({"time_run": -1.0}, 2, "time_run: -1 is impossible"),
        ({"time_run": float("nan")}, 2, "time_run: 'nan' is no number"),
        ({"perfvalues": {"a:b:t": [-1.5, 0, None, None, "us", "pass"]}}, 2, "the figure t: -1.5e-06 is impossible"),
        ({"perfvalues": {"a:b:t": [True, 0, None, None, "us", "pass"]}}, 2, "the figure t: 'True' is no number"),
    ],
)
def test_read_report_excludes_only_an_odd_case_of_reframe(changes: dict[str, Any], trials: int, words: str) -> None:
    report = read_report(json.dumps(case(**changes)))
    assert sum(len(described_set["trials"]) for described_set in report.sets) == trials
    assert any(words in sentence for sentence in report.left_out), report.left_out


@pytest.mark.parametrize(
    ("changes", "hosts", "ranks"),
    [
        ({"num_tasks": 0, "num_tasks_per_node": 3, "job_nodelist": ["a", "b"]}, 2, 6),
        ({"num_tasks": -2, "num_tasks_per_node": 1, "job_nodelist": ["a", "b", "b"]}, 2, 2),
        ({"num_tasks": None, "num_tasks_per_node": 4, "job_nodelist": ["a"]}, 1, 4),
        ({"num_tasks": 5, "num_tasks_per_node": 4, "job_nodelist": ["a", "b"]}, 2, 5),
    ],
)
def test_read_report_counts_ranks_of_a_flexible_case_by_its_nodes(
    changes: dict[str, Any], hosts: int, ranks: int
) -> None:
    trial = read_report(json.dumps(case(**changes))).sets[0]["trials"][1]
    assert (trial["parameters"]["hosts"], trial["parameters"]["ranks"]) == (hosts, ranks)


def test_read_report_names_restored_cases_of_reframe() -> None:
    report = read_report(json.dumps({**reports.reframe(), "restored_cases": [{}, {}]}))
    assert any("2 cases of an earlier session" in sentence for sentence in report.left_out)


def test_read_report_keeps_parameters_of_reframe_apart() -> None:
    data = reports.reframe()
    for pair, (value, text) in zip(data["runs"][0]["testcases"], ((1, "1"), (1.0, "1.0")), strict=False):
        pair.update(v=value, display_name=f"ring_test %v={text}")
    (described_set,) = read_report(json.dumps(data)).sets
    assert [point["v"] for point in checked(described_set)[1]] == ["1", "1.0"]


def ramble(first: Any, second: Any, **more: Any) -> Any:
    data = reports.ramble()
    for experiment, value in zip(data["experiments"], (first, second), strict=False):
        experiment["RAMBLE_VARIABLES"]["v"] = value
    data["experiments"][0].update(more)
    return read_report(json.dumps(data))


@pytest.mark.parametrize(
    ("first", "second", "values"),
    [
        ("1", "2", [1, 2]),
        ("4.10", "4.1", ["4.10", 4.1]),
        ("007", "7", ["007", 7]),
        ("1", "1.0", ["1", "1.0"]),
        ("2.5", "3", [2.5, 3]),
        (True, "1", ["true", 1]),
        (None, "null ", ["null", "null "]),
        (["a"], ["b"], ['["a"]', '["b"]']),
    ],
)
def test_read_report_keeps_variables_of_ramble_as_written(first: Any, second: Any, values: list[Any]) -> None:
    (described_set,) = ramble(first, second).sets
    assert [point["v"] for point in checked(described_set)[1]] == values


def test_read_report_keeps_long_texts_apart() -> None:
    (described_set,) = ramble("x" * 300 + "a", "x" * 300 + "b").sets
    first, second = (point["v"] for point in checked(described_set)[1])
    assert first != second
    assert len(first) == len(second) == 200


def test_read_report_keeps_a_parameter_beside_the_environment_of_reframe() -> None:
    report = read_report(json.dumps(case(display_name="ring_test %environ=cray")))
    assert report.sets[0]["trials"][1]["parameters"].items() >= {"environ": "gnu", "reframe_environ": "cray"}.items()


def test_read_report_takes_no_directory_of_a_repeat_for_a_parameter() -> None:
    (described_set,) = ramble("-x /w/a_2/hosts -n 2", "-x /w/a_4/hosts -n 2").sets
    assert all("v" not in trial["parameters"] for trial in described_set["trials"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"RAMBLE_STATUS": None}, "RAMBLE_STATUS: must be text"),
        ({"RAMBLE_VARIABLES": []}, "RAMBLE_VARIABLES: "),
        (
            {"CONTEXTS": [{"name": "null", "foms": [{"name": "x", "value": "1", "units": None}]}]},
            "CONTEXTS.0.foms.0.units",
        ),
        ({"N_REPEATS": 3}, "it holds the statistics of repeats"),
        ({"CONTEXTS": [{"name": "null", "foms": [{"name": "t", "value": "-3", "units": "s"}]}]}, "-3 is impossible"),
        ({"CONTEXTS": [{"name": "null", "foms": [{"name": "t", "value": "1_0", "units": "s"}]}]}, "'1_0' is no number"),
    ],
)
def test_read_report_excludes_only_an_odd_experiment_of_ramble(changes: dict[str, Any], words: str) -> None:
    report = ramble("1", "1", **changes)
    assert len(report.sets[0]["trials"]) == 1
    assert any(words in sentence for sentence in report.left_out), report.left_out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"numMpiRanks": 0}, "it is of one process, as --talp-partial-output writes it"),
        ({"elapsedTime": 0, "usefulTime": 0}, "it has no data"),
        ({"numGpuRuntimeCalls": 7}, "calls to accelerators"),
        ({"usefulTime": 10_000_000_001}, "its useful time is more than its processors had"),
    ],
)
def test_read_report_excludes_regions_of_talp_without_the_efficiencies(changes: dict[str, Any], words: str) -> None:
    report = read_report(json.dumps({**reports.talp(**changes), "dlbVersion": "3.7.0"}))
    assert not report.sets
    assert words in report.left_out[-1]


@pytest.mark.parametrize("changes", [{"numMpiRanks": True}, {"numMpiRanks": "4"}, {"mpiLoadBalance": float("nan")}])
def test_read_report_refuses_odd_fields_of_talp(changes: dict[str, Any]) -> None:
    with pytest.raises(BadBundle, match=next(iter(changes))):
        read_report(json.dumps(reports.talp(**changes)))
