"""Exports of trials and measurements in every format."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from experiments import workloads
from experiments.models import Experiment, Measurement, Project, Trial
from tests.dashboard.api.clients import client_of


@pytest.fixture
def measured(submit: Any, run: Any) -> Experiment:
    experiment: Experiment = submit()
    run()
    return experiment


def exported(page: Client, form: str, **query: str) -> bytes:
    answer = page.get(f"/explore/export.{form}", {"project": "default", **query})
    assert answer.status_code == 200, answer.content[:500]
    return b"".join(answer)  # type: ignore[arg-type]


def as_rows(form: str, content: bytes) -> list[dict[str, Any]]:
    if form == "parquet":
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist()
        return rows
    if form == "csv":
        return list(csv.DictReader(io.StringIO(content.decode())))
    return [json.loads(line) for line in content.splitlines()] if form == "jsonl" else json.loads(content)


def test_the_menu_of_an_experiment_downloads_its_trials_alone(page: Client, measured: Experiment, submit: Any) -> None:
    submit(name=measured.name)
    excluded = measured.trials.counted().first()
    Trial.objects.filter(pk=excluded.pk).update(state="failed")
    links = re.findall(r'href="(/explore/export[^"]+)"', page.get(measured.get_absolute_url()).content.decode())
    assert [link.partition("?")[0].rpartition(".")[2] for link in links] == ["csv", "csv", "parquet"]
    kinds = (("csv", "brief"), ("csv", "trials"), ("parquet", "trials"))
    for link, (form, kind) in zip(map(html.unescape, links), kinds, strict=True):
        answer = page.get(link)
        assert answer["Content-Disposition"] == f'attachment; filename="rankwire-{measured.slug}-{kind}.{form}"'
        rows = as_rows(form, b"".join(answer))  # type: ignore[arg-type]
        assert {row["experiment"] for row in rows} == {measured.slug}
        assert {int(row["trial"]) for row in rows} == set(measured.trials.values_list("pk", flat=True))
        assert {int(row["attempt"]) for row in rows} == {1}
        assert [int(row["trial"]) for row in rows if str(row["counts"]).lower() == "false"] == [excluded.pk]


@pytest.mark.parametrize("slugs", [[], ["a", "b"], ["a,b"], ['a"; x="b'], ["../a"]])
def test_only_the_table_of_one_experiment_has_its_name(page: Client, measured: Experiment, slugs: list[str]) -> None:
    answer = page.get("/explore/export.csv", {"experiment": slugs, "rows": "trials"})
    assert answer["Content-Disposition"] == 'attachment; filename="rankwire-trials.csv"'


def test_every_trial_leaves_with_all_its_parameters_and_measurements(page: Client, measured: Experiment) -> None:
    tables = {form: as_rows(form, exported(page, form, rows="trials")) for form in ("csv", "json", "jsonl", "parquet")}
    rows = tables["parquet"]
    trials = list(measured.trials.counted().order_by("pk"))
    assert [row["trial"] for row in rows] == [trial.pk for trial in trials]
    for row, trial in zip(rows, trials, strict=True):
        for one in Measurement.objects.filter(trial=trial):
            assert row[one.metric if one.scope == "all" else f"{one.metric}@mpi"] == one.value
        assert row["parameter.hosts"] == trial.configuration.hosts
        assert (row["experiment"], row["hash"], row["counts"]) == (measured.slug, trial.configuration.hash, True)
        assert row["ended_at"] == trial.ended_at
        assert row["url"] == f"http://testserver{trial.get_absolute_url()}"
    assert tables["json"] == tables["jsonl"]
    names = list(rows[0])
    assert [list(table[0]) for table in tables.values()] == [names] * 4
    assert [row["elapsed_s"] for row in tables["json"]] == [row["elapsed_s"] for row in rows]
    assert [float(row["elapsed_s"]) for row in tables["csv"]] == [row["elapsed_s"] for row in rows]


def test_a_brief_table_has_swept_parameters_and_main_metrics_of_the_same_trials(
    page: Client, measured: Experiment
) -> None:
    figure = workloads.get(measured.workload).figures[-1].id
    Measurement.objects.create(trial=measured.trials.counted().first(), metric=figure, value=1.0)
    brief, full = (as_rows("parquet", exported(page, "parquet", rows=kind)) for kind in ("brief", "trials"))
    assert brief == [{name: row[name] for name in brief[0]} for row in full]
    swept = {f"parameter.{name}" for name in measured.specification["sweep"]}
    assert swept | {"parameter.hosts", "parameter.ranks"} == {
        name for name in brief[0] if name.startswith("parameter.")
    }
    assert {"experiment", "trial", "counts", "excluded", "elapsed_s", figure} < set(brief[0])
    assert len(brief[0]) < 25 < len(full[0])
    columns = json.loads(exported(page, "csvm", rows="brief"))["tableSchema"]["columns"]
    assert [column["name"] for column in columns] == list(brief[0])


def test_a_row_for_each_measurement_has_its_unit(page: Client, measured: Experiment) -> None:
    rows = as_rows("jsonl", exported(page, "jsonl", rows="measurements"))
    stored = Measurement.objects.filter(trial__in=measured.trials.counted())
    assert {(row["trial"], row["metric"], row["scope"], row["value"]) for row in rows} == set(
        stored.values_list("trial_id", "metric", "scope", "value")
    )
    assert {row["unit"] for row in rows if row["metric"] == "elapsed_s"} == {"s"}


def test_export_has_excluded_trials_only_on_request(page: Client, measured: Experiment) -> None:
    failed = measured.trials.counted().first()
    Trial.objects.filter(pk=failed.pk).update(state="failed")
    some, every = (as_rows("json", exported(page, "json", rows="trials", every=word)) for word in ("false", "true"))
    assert {row["trial"] for row in every} - {row["trial"] for row in some} >= {failed.pk}
    assert {row["trial"]: row["counts"] for row in every}[failed.pk] is False
    assert all(row["counts"] for row in some)
    refused = page.get("/explore/export.csv", {"every": "true"})
    assert (refused.status_code, b"rows=trials" in refused.content) == (400, True)


def test_export_has_the_reason_of_each_excluded_trial(page: Client, measured: Experiment) -> None:
    slowed, used, failed, replaced = measured.trials.counted().order_by("configuration", "pk")[:4]
    slowed.conditions["disturbances"] = ["other load"]
    Trial.objects.filter(pk=slowed.pk).update(trust="degraded", conditions=slowed.conditions)
    Trial.objects.filter(pk=failed.pk).update(state="failed")
    Trial.objects.filter(pk=replaced.pk).update(superseded=True)
    rows = {row["trial"]: row for row in as_rows("json", exported(page, "json", rows="trials", every="true"))}
    reasons = [rows[trial.pk]["excluded"] for trial in (slowed, failed, replaced, used)]
    assert reasons == ["disturbed by other load", "failed", "replaced", None]
    counted = set(measured.trials.counted().values_list("pk", flat=True))
    assert {key for key, row in rows.items() if row["excluded"] is None} == counted
    assert {key for key, row in rows.items() if row["counts"]} == counted


def test_csvm_defines_the_columns(page: Client, measured: Experiment) -> None:
    columns = json.loads(exported(page, "csvm", rows="trials"))["tableSchema"]["columns"]
    header = exported(page, "csv", rows="trials").splitlines()[0].decode().split(",")
    assert [column["name"] for column in columns] == header
    elapsed = next(column for column in columns if column["name"] == "elapsed_s")
    assert (elapsed["schema:unitText"], elapsed["datatype"]) == ("s", "double")
    assert "launch command" in elapsed["dc:description"]
    schema = pyarrow.parquet.read_schema(io.BytesIO(exported(page, "parquet", rows="trials")))
    assert schema.field("elapsed_s").metadata[b"unit"] == b"s"
    of_medians = json.loads(exported(page, "csvm"))["tableSchema"]["columns"]
    assert [column["name"] for column in of_medians] == exported(page, "csv").splitlines()[0].decode().split(",")


def test_export_has_the_requested_and_measured_link(page: Client, measured: Experiment) -> None:
    rows = [
        {"quantity": "delay", "asked": 0.002, "achieved": 0.0021, "direction": "n1 to n2"},
        {"quantity": "delay", "asked": 0.002, "achieved": 0.0023, "direction": "n2 to n1"},
        {"quantity": "jitter", "asked": None, "achieved": None},
    ]
    one = measured.trials.counted().first()
    Trial.objects.filter(pk=one.pk).update(certificate={"kept": False, "rows": rows})
    table = {row["trial"]: row for row in as_rows("parquet", exported(page, "parquet", rows="trials"))}
    assert table[one.pk]["link_kept"] is False
    assert table[one.pk]["achieved.link.delay"] == pytest.approx(0.0022)
    assert table[one.pk]["achieved.link.jitter"] is None


def test_a_text_that_a_spreadsheet_would_run_is_marked(page: Client, measured: Experiment) -> None:
    Experiment.objects.filter(pk=measured.pk).update(name="=1+1")
    assert {row["name"] for row in as_rows("csv", exported(page, "csv", rows="trials"))} == {"'=1+1"}
    assert {row["name"] for row in as_rows("json", exported(page, "json", rows="trials"))} == {"=1+1"}


def test_a_table_of_nothing_has_its_columns(page: Client, person: User) -> None:
    assert exported(page, "csv", rows="trials", text="there is none").startswith(b"experiment,name,")
    assert exported(page, "json", rows="measurements", text="there is none") == b"[]"
    assert as_rows("parquet", exported(page, "parquet", rows="trials", text="there is none")) == []


def test_rest_export_has_only_visible_trials(page: Client, person: User, measured: Experiment) -> None:
    query = {"rows": "trials", "experiment": measured.slug}
    rest = client_of(person).get("/api/v1/explore/export/csv/", query)
    assert b"".join(rest.streaming_content) == exported(page, "csv", **query)
    Experiment.objects.filter(pk=measured.pk).update(project=Project.objects.create(slug="theirs", name="Theirs"))
    hidden = client_of(person).get("/api/v1/explore/export/jsonl/", query)
    assert b"".join(hidden.streaming_content) == b""
    wrong = client_of(person).get("/api/v1/explore/export/csv/", {"rows": "ranks"})
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (400, "rows")


def test_the_command_line_writes_the_same_file(
    page: Client, measured: Experiment, tmp_path: Path, settings: Any
) -> None:
    settings.PUBLIC_ADDRESS = "http://testserver"
    file = tmp_path / "trials.csv"
    call_command("export", str(file), "where=hosts = 1", f"experiment={measured.slug}")
    assert file.read_bytes() == exported(page, "csv", rows="trials", where="hosts = 1", experiment=measured.slug)
    for wrong in ("trials.xlsx", "trials.csv where", "trials.csv wher=1", "trials.csv where=hosts<"):
        with pytest.raises(CommandError):
            call_command("export", *[str(tmp_path / wrong.split()[0]), *wrong.split()[1:]])
