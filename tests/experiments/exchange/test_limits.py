"""Limits of imports and bundles: disk, processor time, addresses, clusters."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from experiments.errors import BadBundle, CannotExport
from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.exchange.external_results import import_description, import_report
from experiments.exchange.import_plan import import_bundle
from experiments.exchange.intake import import_received_file
from experiments.exchange.table import read_table
from experiments.library import load_defaults
from experiments.models import Artifact, BackgroundTask, Cluster, Experiment
from tests.analysis.capture_files import Frame, pcap
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments import factories
from tests.experiments.exchange.archives import packed
from tests.experiments.exchange.conftest import elsewhere


def written(experiment: Experiment, file: Path, by: str = "ann", **options: Any) -> Path:
    with file.open("wb") as stream:
        write_bundle(stream, select_experiments([experiment.slug]), BundleOptions(by=by, **options))
    return file


def test_import_of_a_bundle_keeps_the_reserve_of_the_disk(bundle: Callable[..., Path], settings: LazySettings) -> None:
    path = bundle()
    elsewhere()
    settings.DISK_RESERVE_BYTES = 1 << 60
    with pytest.raises(BadBundle, match="has no room"):
        import_bundle(path, project=load_defaults())
    assert not Experiment.objects.exists()


def test_import_of_a_description_keeps_the_reserve_of_the_disk(
    db: None, session_directory: Path, tmp_path: Path, settings: LazySettings
) -> None:
    (tmp_path / "wire.pcap").write_bytes(pcap([Frame.whole(n, ethernet(ipv4(tcp(seq=n)))) for n in range(1, 9)]))
    path = tmp_path / "measured.yaml"
    path.write_text("name: a\nworkload: b\ncluster: c\ntrials: [{capture: wire.pcap}]\n")
    settings.DISK_RESERVE_BYTES = 1 << 60
    with pytest.raises(BadBundle, match="has no room"):
        import_description(path, project=load_defaults())
    assert not Artifact.objects.exists()


def test_archive_with_a_description_keeps_the_reserve_of_the_disk(
    db: None, session_directory: Path, tmp_path: Path, settings: LazySettings
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packed({"a.yaml": b"name: a\nworkload: b\ncluster: c\ntrials: []\n"}, listed=False))
    settings.DISK_RESERVE_BYTES = 1 << 60
    with pytest.raises(BadBundle, match="has no room"):
        import_received_file(path, "a.zip", project=load_defaults(), owner=None, dry_run=True)


def test_bundle_of_a_user_keeps_the_reserve_of_the_disk(
    measured: Experiment, tmp_path: Path, settings: LazySettings
) -> None:
    settings.DISK_RESERVE_BYTES = 1 << 60
    with pytest.raises(CannotExport, match="a quarter of the free disk"):
        written(measured, tmp_path / "a.zip")
    written(measured, tmp_path / "b.zip", by="")  # the command's may lie elsewhere


def test_bundles_of_a_user_take_a_quarter_of_the_free_disk(measured: Experiment, tmp_path: Path) -> None:
    """A viewer's ten took ten times the files of a project: the disk was full for all."""
    user = factories.person("ann", "viewer")
    task = BackgroundTask.ask(user, BackgroundTask.Kind.EXPORT, {"form": "zip"}, title="Bundle")
    task.file.parent.mkdir(parents=True, exist_ok=True)
    with task.file.open("wb") as file:
        file.truncate(1 << 42)  # a hole
    try:
        with pytest.raises(CannotExport, match="a quarter of the free disk"):
            written(measured, tmp_path / "a.zip")
        written(measured, tmp_path / "b.zip", by="bob")
    finally:
        task.file.unlink()


@pytest.mark.parametrize("options", [{}, {"captures": "headers", "anonymise": True}])
def test_bundle_of_a_user_has_a_limit_of_processor_time(
    measured: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """Texts of addresses, 2 MB packed, held the worker of all users for 40 minutes."""
    monkeypatch.setattr("experiments.selectors.quotas.EXPORT_CPU_S", 1e-6)
    with pytest.raises(CannotExport, match="of CPU time"):
        written(measured, tmp_path / "a.zip", **options)
    written(measured, tmp_path / "b.zip", by="", **options)


@pytest.mark.parametrize("anonymise", [False, True])
def test_bundle_has_a_limit_within_a_capture_or_a_text(
    measured: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anonymise: bool
) -> None:
    """A capture, or a text of addresses, is one piece of hours."""
    content = b" ".join(b"10.0.0.%d" % (n % 250) for n in range(2000))
    frames = [Frame.whole(n, ethernet(ipv4(tcp(seq=n)))) for n in range(1, 100)]
    for trial in measured.trials.all():
        name, body, kind = ("a.txt", content, "input") if anonymise else ("capture.pcap", pcap(frames), "capture")
        factories.stored_file(trial, name, body, kind).save()
    calls: list[int] = []
    monkeypatch.setattr("experiments.selectors.quotas._CHECKED_EVERY_S", 0.0)
    with (tmp_path / "a.zip").open("wb") as stream:
        chosen = select_experiments([measured.slug])
        options = BundleOptions("headers", anonymise=anonymise, by="ann")
        counts = write_bundle(stream, chosen, options, alive=lambda: calls.append(1))
    assert len(calls) > counts.files + (4 * 2000 if anonymise else 4)


def test_export_replaces_a_bounded_number_of_addresses(
    measured: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes 300 bytes of the worker's memory: captures of a gigabyte took ten."""
    monkeypatch.setattr("analysis.capture.anonymised.MOST_ADDRESSES", 2)
    trial = measured.trials.order_by("position").first()
    assert trial is not None
    factories.stored_file(trial, "few.txt", b"10.1.0.1 10.1.0.2 10.1.0.1", "input").save()
    factories.stored_file(trial, "more.txt", b"10.1.0.3", "input").save()
    with pytest.raises(CannotExport, match="addresses to replace"):
        written(measured, tmp_path / "a.zip", captures="none", anonymise=True)
    monkeypatch.setattr("analysis.capture.anonymised.MOST_ADDRESSES", 4)  # with that of the table's links
    written(measured, tmp_path / "b.zip", captures="none", anonymise=True)


def test_project_has_a_bounded_number_of_imported_clusters(
    db: None, session_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of 60 kB made 600, which a page lists for all members."""
    monkeypatch.setattr("experiments.exchange.file_moves.MOST_CLUSTERS", 2)
    case = {"name": "t", "partition": "p", "environ": "e", "result": "pass", "num_tasks": 1, "num_tasks_per_node": 1}

    def report(*systems: str) -> Path:
        cases = [{**case, "system": system, "time_run": float(n + 1)} for n, system in enumerate(systems)]
        path = tmp_path / f"{'-'.join(systems)}.json"
        path.write_text(json.dumps({"session_info": {"data_version": "4.0"}, "runs": [{"testcases": cases}]}))
        return path

    project = load_defaults()
    with pytest.raises(BadBundle, match="results of 2 other clusters"):
        import_report(report("a", "b", "c"), project=project)
    assert not Experiment.objects.exists()
    import_report(report("a", "b"), project=project)
    import_report(report("b", "a"), project=project)
    assert Cluster.objects.filter(elsewhere=True).count() == 2


def test_read_table_refuses_a_count_of_thousands_of_digits() -> None:
    """Python reads none of more than 4300: an error 500."""
    assert read_table("hosts,elapsed_s\n007,1\n").trials[0]["parameters"] == {"hosts": 7}
    table = read_table(f"hosts,elapsed_s\n{'9' * 5000},1\n")
    assert table.trials[0]["parameters"] == {"hosts": "9" * 5000}
