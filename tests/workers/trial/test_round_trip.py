"""A real trial leaves as a bundle and enters an empty repository."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command

from analysis.capture.stream import stream
from analysis.capture_analysis import analyse
from experiments.files import read_analysis, trial_directory
from experiments.library import load_defaults
from experiments.models import (
    Artifact,
    Cluster,
    Configuration,
    Environment,
    Experiment,
    Installation,
    State,
    Summary,
    Trial,
    Usage,
)
from experiments.selectors.diagnosis import diagnosis_of

SCALING = {
    "workload": "water",
    "parameters": {"molecules": 64, "steps": 20},
    "sweep": {"hosts": [1, 2]},
    "certificate": "degrade",
}


def everything(experiment: Experiment) -> dict[str, Any]:
    """Return what must be equal in both installations."""
    trials = []
    for trial in experiment.trials.order_by("position"):
        analysis = read_analysis(trial)
        trials.append(
            {
                "measurements": sorted(trial.measurements.values_list("scope", "metric", "value")),
                "series": analysis and analysis["series"],
                "files": sorted(trial.artifacts.values_list("kind", "name", "size_bytes", "sha256")),
                "environment": trial.environment and trial.environment.facts,
                "trust": (trial.trust, trial.trust_reasons),
                **{name: getattr(trial, name) for name in ("state", "conditions", "tables", "certificate", "command")},
                "times": (trial.queued_at, trial.preparing_at, trial.running_at, trial.ended_at),
            }
        )
    answer = diagnosis_of(experiment)
    summaries = Summary.objects.filter(configuration__experiment=experiment).order_by("metric", "scope", "median")
    return {
        "trials": trials,
        "answer": answer.answer.to_dict(),
        "findings": answer.study.report.to_dict(),
        "summaries": list(summaries.values_list("metric", "scope", "median", "samples")),
        "specification": experiment.specification,
        "uid": experiment.uid,
        "created_at": experiment.created_at,
        "versions": list(experiment.versions.values_list("number", "hash", "created_at")),
    }


def forget_all() -> None:
    """An installation in which nothing was ever measured."""
    for model in (Experiment, Configuration, Trial, Cluster, Environment, Usage, Installation):
        model.objects.all().delete()
    shutil.rmtree(Path(settings.VAR) / "trials")
    load_defaults()


def test_two_installations_exchange_an_experiment_without_loss(
    run_all: Callable[..., list[Trial]], tmp_path: Path
) -> None:
    trials = run_all(**SCALING)
    assert {trial.state for trial in trials} == {State.FINISHED}, [trial.message + trial.traceback for trial in trials]
    experiment = trials[0].experiment
    before, bundle = everything(experiment), tmp_path / "water.zip"
    call_command("bundle", experiment.slug, str(bundle), licence="CC-BY-4.0")
    its_headers_say_the_same(trials[1], tmp_path / "headers.zip")
    forget_all()

    call_command("import", str(bundle))
    imported = Experiment.objects.get()
    assert everything(imported) == before
    assert imported.is_imported
    for artifact in Artifact.objects.all():
        with artifact.intact() as file:
            assert file.is_relative_to(trial_directory(artifact.trial))
    capture = Artifact.objects.filter(kind=Artifact.Kind.CAPTURE).latest("size_bytes")
    packets = sum(len(table) for table in stream(capture.file))
    assert packets == capture.trial.measurements.get(metric="packets", scope="all").value > 1000
    assert not Usage.objects.exists(), "its machine hours were those of others"
    assert imported.cluster is not None
    assert (imported.cluster.elsewhere, imported.cluster.enabled, imported.cluster.kind) == (True, False, "testbed")

    call_command("import", str(bundle))
    assert (Experiment.objects.count(), Trial.objects.count()) == (1, len(trials)), "importing twice doubles nothing"
    its_own_files_are_as_its_list_says(bundle, tmp_path / "unpacked")


def its_headers_say_the_same(trial: Trial, bundle: Path) -> None:
    """Cut and with other addresses, a recording gives every metric as it was."""
    call_command("bundle", f"t:{trial.pk}", str(bundle), captures="headers", anonymise=True)
    with zipfile.ZipFile(bundle) as archive:
        (name,) = (item for item in archive.namelist() if item.endswith(".pcapng.zst"))
        cut = Path(archive.extract(name, bundle.parent / "cut"))
    capture = trial.artifacts.get(kind=Artifact.Kind.CAPTURE)
    expected, other = analyse(capture.file), analyse(cut)
    assert expected.metrics == other.metrics
    assert expected.mpi.metrics == other.mpi.metrics
    assert (expected.series, expected.trust.to_dict()) == (other.series, other.trust.to_dict())
    assert expected.matrices["ranks"] == other.matrices["ranks"], "who is which rank is known as before"
    assert expected.metrics["packets"] > 1000
    assert cut.stat().st_size < capture.size_bytes


def its_own_files_are_as_its_list_says(bundle: Path, directory: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(directory)
    subprocess.run(["sha256sum", "--quiet", "-c", "manifest-sha256.txt"], cwd=directory, check=True)
    described = json.loads((directory / "ro-crate-metadata.json").read_text())
    graph = {entity["@id"]: entity for entity in described["@graph"]}
    files = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    assert files - {"manifest-sha256.txt", "ro-crate-metadata.json"} <= set(graph)
    actions = [entity for entity in graph.values() if entity["@type"] == "CreateAction"]
    assert len(actions) == 2
    assert all(graph[part["@id"]]["sha256"] for action in actions for part in action["result"])
    (table,) = directory.glob("experiments/*/trials.csv")
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [int(row["parameter.hosts"]) for row in rows] == [1, 2]
    columns = json.loads((table.parent / "trials.csv-metadata.json").read_text())["tableSchema"]["columns"]
    assert {"name": "elapsed_s", "schema:unitText": "s"}.items() <= next(
        column for column in columns if column["name"] == "elapsed_s"
    ).items()
