"""Files of a few megabytes that would take hours or gigabytes: refused early."""

from __future__ import annotations

import hashlib
import json
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.test import override_settings
from pydantic import BaseModel, RootModel, ValidationError

from analysis.traffic.tcp import TcpAccumulator
from experiments.common import budget, strict_json
from experiments.common.storable import MAX_FIELDS, MOST_NAMES
from experiments.errors import MOST_ERRORS, BadBundle, FieldError, InvalidSpec
from experiments.exchange import intake, record_schemas, records
from experiments.exchange.archive import parsed_json
from experiments.exchange.importers import ramble, read_report, reframe
from experiments.exchange.intake import import_file, import_received_file
from experiments.exchange.measured import DescribedRuns, read_measured
from experiments.exchange.table import DECIMAL, read_table
from experiments.library import load_defaults, studies
from experiments.specification.parameters import Link, canonical
from experiments.specification.validation import restore
from tests.analysis.capture import hostile
from tests.experiments.exchange import reports
from tests.experiments.exchange.archives import contents, packed
from tests.experiments.exchange.conftest import elsewhere

CASE = {"name": "t", "system": "s", "partition": "p", "environ": "e", "result": "pass", "num_tasks": 1}


def reframe_report(*cases: dict[str, Any]) -> str:
    testcases = [{**CASE, "num_tasks_per_node": 1, "time_run": 1.0, **case} for case in cases]
    return json.dumps({"session_info": {"data_version": "4.0"}, "runs": [{"testcases": testcases}]})


def test_read_report_bounds_its_sentences_on_exclusions(db: None) -> None:
    """They had the name of their run, of megabytes, for each of a million figures."""
    figures: dict[str, list[Any]] = {f"f{number}": [] for number in range(5000)}
    report = read_report(reframe_report({"name": "x" * 90_000, "perfvalues": figures}))
    sentences = report.left_out.sentences()
    assert len(sentences) == 1001
    assert sentences[-1] == "4000 more runs or figures"
    assert max(map(len, sentences)) <= 400


def test_read_report_refuses_texts_of_megabytes(db: None) -> None:
    report = read_report(reframe_report({"name": "x" * 200_000}))
    assert (report.sets, len(report.left_out)) == ([], 1)


@pytest.mark.parametrize("tool", ["reframe", "ramble"])
def test_read_report_counts_as_processor_time(db: None, tool: str) -> None:
    """Each run has a parameter of its own: the time grew with their square."""
    if tool == "reframe":
        text = reframe_report(*({"name": f"t %p{number}=1"} for number in range(5000)))
    else:
        run = reports.ramble()["experiments"][0]
        runs = [
            {**run, "name": f"e{number}", "RAMBLE_VARIABLES": {"n_nodes": "1", f"v{number}": "1"}}
            for number in range(5000)
        ]
        text = json.dumps({"workspace_name": "w", "experiments": runs})
    with budget.seconds(0.5), pytest.raises(budget.Exhausted):
        read_report(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(",".join(f"parameters.a{number}" for number in range(3000)), "3000 columns", id="columns"),
        pytest.param("elapsed_s\n" + "1\n" * 20_000, "20000 rows", id="rows"),
    ],
)
def test_read_table_refuses_a_huge_table(text: str, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words) as refusal:
        read_table(text)
    assert len(refusal.value.errors) == 1


def test_read_table_reports_the_first_wrong_rows() -> None:
    with pytest.raises(InvalidSpec) as refusal:
        read_table("elapsed_s\n" + "x\n" * 9000)
    assert len(refusal.value.errors) == 100


def test_refusal_lists_a_bounded_number_of_errors() -> None:
    assert len(InvalidSpec(FieldError("a", str(number)) for number in range(10**6)).errors) == MOST_ERRORS


def models(module: Any) -> list[type[BaseModel]]:
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return [
        kind
        for kind in kinds
        if kind.__module__ == module.__name__ and kind.model_fields and not issubclass(kind, RootModel)
    ]


@pytest.mark.parametrize(
    "kind", [kind for module in (records, record_schemas, ramble, reframe, studies) for kind in models(module)]
)
def test_lists_of_imports_are_refused_at_their_first_wrong_item(kind: type[BaseModel]) -> None:
    """Each error takes a kilobyte, and a file has millions of items."""
    wrong = {(info.alias or name): [object()] * 1000 for name, info in kind.model_fields.items()}
    with pytest.raises(ValidationError) as refusal:
        kind.model_validate(wrong)
    assert refusal.value.error_count() <= 4 * len(wrong) + 20


def test_groups_of_a_specification_are_refused_at_their_first_wrong_name() -> None:
    """Two million names in four megabytes took a gigabyte and 16 s."""
    with pytest.raises(InvalidSpec) as refusal:
        restore({"name": "a", "workload": "water", "zip": [[1] * 1000] * 1000})
    assert len(refusal.value.errors) == 1


def test_bundle_refuses_a_specification_of_more_fields_than_one_that_is_submitted() -> None:
    """Each name that no specification has was an error of a kilobyte."""
    wide = {"link": {f"a{number}": 1 for number in range(MAX_FIELDS + 1)}}
    for kind, shape in ((records.ExperimentRecord, "specification"), (records.VersionRecord, "specification")):
        with pytest.raises(ValidationError) as refusal:
            kind.model_validate({shape: wide})
        assert "link: holds 301 fields" in str(refusal.value)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(records.ExperimentRecord, name) for name in ("specification", "source", "origin")]
    + [
        (records.VersionRecord, "specification"),
        (records.ConfigurationRecord, "parameters"),
        (records.TrialRecord, "message"),
    ],
)
def test_bundle_refuses_fields_that_would_make_every_list_long(kind: type[BaseModel], name: str) -> None:
    """A list reads 50 rows, each of which could have 16 MiB."""
    long = "x" * 500_000
    with pytest.raises(ValidationError) as refusal:
        kind.model_validate({name: long if name == "message" else {"a": long}})
    assert any(error["loc"] == (name,) and "characters" in error["msg"] for error in refusal.value.errors())


def test_rates_of_a_link_count_as_processor_time() -> None:
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        Link.model_validate({"rates": [1e9]})


def test_description_of_very_many_parameters_is_refused_in_time_that_grows_as_its_length() -> None:
    """Each name was searched for in the list of all: 88 kB took more than 20 s."""
    names = "".join(f" {number:05}a: x\n" for number in range(8000))
    begun_s = time.thread_time()
    with pytest.raises(InvalidSpec, match="8000 fields"):
        read_measured(
            f"name: a\nworkload: water\ncluster: c\nparameters:\n{names}trials: [{{figures: {{elapsed_s: 1}}}}]\n"
        )
    assert time.thread_time() - begun_s < 5


def test_parameters_of_many_trials_count_as_processor_time() -> None:
    """A definition is read for each trial: 16 kB with 145 000 values took 25 s."""
    trial = {"figures": {"elapsed_s": 1.0}}
    described = DescribedRuns.model_validate(
        {"name": "a", "workload": "command", "cluster": "c", "parameters": {"program": ["a"]}, "trials": [trial]}
    )
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        described.points()


def test_values_of_a_sweep_count_as_processor_time() -> None:
    """A hundred ranges of a thousand values are written with three kilobytes."""
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        canonical("water", "hosts", 2)


def test_upload_counts_a_file_for_each_trial_that_names_it(tmp_path: Path, db: None) -> None:
    """It is stored for each: a megabyte of zeros, 2000 times, was 2 GB on the disk."""
    trial = "- {output: out.txt, parameters: {hosts: 1}}\n"
    description = f"name: a\nworkload: water\ncluster: c\ntrials:\n{trial * 9}"
    path = tmp_path / "sent.zip"
    path.write_bytes(packed({"a.yaml": description.encode(), "out.txt": bytes(1 << 20)}, listed=False))
    with override_settings(IMPORT_LIMIT_BYTES=2 << 20), pytest.raises(BadBundle, match="more than 8 MiB of files"):
        import_received_file(path, path.name, project=load_defaults(), owner=None, dry_run=True)


def test_packets_of_a_description_count_as_processor_time(
    tmp_path: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second thread took nearly all of it: 5 MB sent are 16 GiB of packets."""
    follow = TcpAccumulator.update

    def use_up(accumulator: TcpAccumulator, *tables: Any) -> None:
        follow(accumulator, *tables)
        budget._end.set(0.0)

    monkeypatch.setattr(TcpAccumulator, "update", use_up)
    description = "name: a\nworkload: other\ncluster: c\ntrials: [{capture: a.pcap}]\n"
    (tmp_path / "a.yaml").write_text(description)
    (tmp_path / "a.pcap").write_bytes(hostile.equal_stamps(100_000))
    with budget.seconds(3600), pytest.raises(budget.Exhausted):
        import_file(tmp_path / "a.yaml", project=load_defaults(), dry_run=True)


def test_parsed_json_refuses_an_object_of_very_many_names() -> None:
    """Each name that no record has is an error."""
    with pytest.raises(BadBundle, match="names"):
        parsed_json(
            json.dumps(dict.fromkeys(map(str, range(MOST_NAMES + 1)), 1)), "trial.json", strict_json.MOST_VALUES
        )
    assert parsed_json('{"a": 1}', "trial.json", 10) == {"a": 1}


def test_parsed_json_refuses_very_many_values() -> None:
    """An empty list is written with three characters and takes 64 bytes."""
    for text in ("[" + "[]," * 501 + "0]", '{"a":[' + "{}," * 501 + "0]}", "[" + "0," * 1000 + "0]"):
        with pytest.raises(BadBundle, match="more than 1000 values"):
            parsed_json(text, "trial.json", 1000)
    assert len(parsed_json("[" + "0," * 900 + "0]", "trial.json", 1000)) == 901


def test_a_refused_number_is_found_in_little_memory() -> None:
    text = "[NaN," + "[]," * 200_000 + "0]"
    with pytest.raises(InvalidSpec) as refusal:
        strict_json.parse(text)
    assert refusal.value.errors[0].path == "0"
    data = json.loads(text)
    tracemalloc.start()
    strict_json._path_of(data[0], data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_upload_refuses_many_long_experiments(bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """All are in memory at once. The command moves whole installations: no limit."""
    path = bundle()
    elsewhere()
    limits = intake.upload_limits()
    for name, words in (("description_bytes", "experiments"), ("trial_bytes", "trials")):
        monkeypatch.setattr(intake, "upload_limits", partial(replace, limits, **{name: 100}))
        with pytest.raises(BadBundle, match=rf"Its {words} are described in more than .* script/manage import"):
            import_received_file(path, path.name, project=load_defaults(), owner=None, dry_run=True)
    assert import_file(path, project=load_defaults(), dry_run=True).trials


def test_upload_refuses_many_or_long_clusters(bundle: Callable[..., Path], tmp_path: Path) -> None:
    """A page lists them all: four uploads of 105 kB took 2 GB there."""
    files = contents(bundle())
    elsewhere()
    name = next(name for name in files if name.endswith("/experiment.json"))
    experiment = json.loads(files[name])
    (cluster,) = experiment["clusters"]
    for number, (clusters, words) in enumerate(
        [
            ([{**cluster, "facts": {"a": [{}] * 10_000}}], "longer than 16000 characters"),
            ([cluster, *({**cluster, "slug": f"c{n}"} for n in range(50))], "at most 50 items"),
        ]
    ):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(packed(files | {name: json.dumps({**experiment, "clusters": clusters}).encode()}))
        with pytest.raises(BadBundle, match=words):
            import_received_file(path, path.name, project=load_defaults(), owner=None, dry_run=True)


def test_upload_counts_the_clusters_of_all_experiments(
    bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bundle()
    elsewhere()
    monkeypatch.setattr(intake, "_CLUSTERS", 0)
    with pytest.raises(BadBundle, match="more than 0 clusters"):
        import_received_file(path, path.name, project=load_defaults(), owner=None, dry_run=True)


def test_upload_refuses_a_table_of_very_many_values(
    bundle: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = contents(bundle())
    elsewhere()
    record = next(name for name in files if name.endswith("/trial.json"))
    trial = json.loads(files[record])
    content = zstandard.compress(b'{"a":[' + b"[]," * 600_000 + b"0]}")
    name = f"{record.removesuffix('trial.json')}files/mpi-profile.json.zst"
    trial["files"] = [
        {
            "kind": "other",
            "name": "mpi-profile.json.zst",
            "path": "mpi-profile.json.zst",
            "size_bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    ]
    files |= {record: json.dumps(trial).encode(), name: content}
    files = {
        name: content for name, content in files.items() if not name.endswith("/stdout.txt") or "/00001/" not in name
    }
    path = tmp_path / "changed.zip"
    path.write_bytes(packed(files))
    monkeypatch.setattr(intake, "MOST_VALUES", 1_000_000)
    with pytest.raises(BadBundle, match="more than 1000000 values"):
        import_received_file(path, path.name, project=load_defaults(), owner=None, dry_run=False)
    assert import_file(path, project=load_defaults()).trials


def test_numbers_of_any_length_are_judged_at_once() -> None:
    begun_s = time.process_time()
    assert DECIMAL.fullmatch("9" * 1_000_000 + "x") is None
    assert time.process_time() - begun_s < 1
