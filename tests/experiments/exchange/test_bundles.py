"""Export and import of bundles: identity, provenance, refusals."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.conf import settings
from django.core.management import CommandError, call_command
from rocrate.rocrate import ROCrate

from analysis.capture.stream import stream
from experiments.errors import CannotExport, InvalidSpec, ReadOnly
from experiments.exchange.bundle import write_bundle
from experiments.exchange.choice import select_experiments
from experiments.exchange.exporting import BundleOptions
from experiments.exchange.import_plan import import_bundle
from experiments.exchange.rows import uid_of
from experiments.library import load_defaults
from experiments.models import (
    Artifact,
    Cluster,
    Environment,
    Experiment,
    Installation,
    Project,
    Round,
    State,
    Trial,
    TrialValues,
    Usage,
)
from tests.analysis.capture_files import Frame, enhanced, interface, section
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.experiments import factories
from tests.experiments.exchange.conftest import elsewhere


def test_import_keeps_the_identity_of_an_experiment(measured: Experiment, bundle: Callable[..., Path]) -> None:
    uids, uid = [uid_of(trial) for trial in measured.trials.order_by("position")], measured.uid
    path = bundle()
    elsewhere()
    brought = import_bundle(path, project=load_defaults())
    imported = Experiment.objects.get()
    assert imported.uid == uid
    assert [uid_of(trial) for trial in imported.trials.order_by("position")] == uids
    assert [(arrival.trials, arrival.files, arrival.stored) for arrival in brought.arrivals] == [(4, 4, imported)]
    assert (TrialValues.objects.count(), TrialValues.wrong()) == (4, [])
    for artifact in Artifact.objects.all():
        assert artifact.file == Path(settings.VAR) / "trials" / str(artifact.trial_id) / "stdout.txt"
    assert [a.content() for a in Artifact.objects.order_by("trial__position")][:2] == [
        b"hello 0\n",
        b"hello 1\n",
    ]


def test_import_keeps_the_decided_rounds(measured: Experiment, bundle: Callable[..., Path]) -> None:
    first = Round.open(measured, why="Round 1 runs the design.", queued=4)
    first.decide(Round.Outcome.ANSWERED, "2 hosts are enough.", [{"name": "times the best", "low": 1.2, "high": 1.4}])
    path = bundle()
    elsewhere()
    import_bundle(path, project=load_defaults())
    imported = Experiment.objects.get().rounds.get()
    assert (imported.number, imported.queued, imported.outcome) == (1, 4, "answered")
    assert imported.numbers == [{"name": "times the best", "low": 1.2, "high": 1.4}]


def test_bundle_is_a_valid_research_object_crate(bundle: Callable[..., Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(bundle()) as archive:
        archive.extractall(tmp_path / "crate")
    crate = ROCrate(tmp_path / "crate")
    assert "https://w3id.org/ro/crate/1.3" in str(crate.metadata["conformsTo"])
    assert "wfrun/process" in str(crate.root_dataset["conformsTo"].id)
    runs = crate.get_by_type("CreateAction")
    assert len(runs) == 4
    for run in runs:
        assert run["instrument"].type == "SoftwareApplication"
        assert [row.id for row in run["object"]]
        for file in run["result"]:
            content = (tmp_path / "crate" / file.id).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"]
    crate.write(tmp_path / "again")
    again = ROCrate(tmp_path / "again")
    ids = [sorted(row.id for row in one.get_entities()) for one in (crate, again)]
    assert ids[0] == ids[1]


def test_import_of_an_own_bundle_stores_nothing(bundle: Callable[..., Path]) -> None:
    home = import_bundle(bundle(), project=load_defaults())
    assert [arrival.words for arrival in home.arrivals] == ["Water: it was measured here, and is not imported."]
    assert not Cluster.objects.filter(elsewhere=True).exists()


def test_import_adds_further_trials_of_an_experiment(measured: Experiment, bundle: Callable[..., Path]) -> None:
    one = measured.trials.order_by("position")[1]
    alone, whole = bundle(f"t:{one.pk}", file="one.zip"), bundle()
    elsewhere()
    import_bundle(alone, project=load_defaults())
    imported = Experiment.objects.get()
    assert (imported.trials.count(), imported.configurations.count()) == (1, 2)
    brought = import_bundle(whole, project=load_defaults())
    assert [arrival.words for arrival in brought.arrivals] == [
        "Water: 3 trials with 3 files; 1 trial of it is here already."
    ]
    assert Experiment.objects.get().trials.count() == 4


def test_bundle_holds_several_experiments(measured: Experiment, bundle: Callable[..., Path]) -> None:
    other = factories.experiment(name="Other water", sweep={"hosts": [2]}, repetitions=1)
    factories.finished()
    path = bundle(measured.slug, f"e:{other.slug}")
    elsewhere()
    brought = import_bundle(path, project=load_defaults())
    assert sorted((arrival.name, arrival.trials) for arrival in brought.arrivals) == [("Other water", 1), ("Water", 4)]


def test_import_with_dry_run_stores_nothing(bundle: Callable[..., Path]) -> None:
    path = bundle()
    elsewhere()
    output = StringIO()
    call_command("import", str(path), dry_run=True, stdout=output)
    assert "Would be imported from" in output.getvalue()
    assert "Water: 4 trials with 4 files." in output.getvalue()
    assert not Experiment.objects.exists()
    assert not Cluster.objects.filter(elsewhere=True).exists()


def test_import_refuses_an_experiment_of_another_project(bundle: Callable[..., Path]) -> None:
    path = bundle()
    elsewhere()
    import_bundle(path, project=load_defaults())
    other = Project.objects.create(slug="other", name="Other")
    again = import_bundle(path, project=other)
    assert [arrival.words for arrival in again.arrivals] == [
        "Water: another project of this installation has it already."
    ]


def test_imported_experiments_are_read_only_and_free(bundle: Callable[..., Path]) -> None:
    path = bundle()
    elsewhere()
    Usage.objects.all().delete()
    import_bundle(path, project=load_defaults())
    imported, trial = Experiment.objects.get(), Trial.objects.first()
    assert trial is not None
    for change in (
        lambda: imported.add_repetitions(1),
        imported.rerun_failed,
        imported.cancel,
        trial.queue_attempt,
        imported.go_on,
    ):
        with pytest.raises(ReadOnly, match="was measured elsewhere and imported"):
            change()
    cluster = Cluster.objects.get(elsewhere=True)
    cluster.enabled = True
    cluster.save()
    with pytest.raises(InvalidSpec, match="is unknown"):
        factories.experiment(cluster=cluster.slug)
    assert not Usage.objects.exists()
    assert not Trial.objects.exclude(state=State.FINISHED).exists()


def test_origin_keeps_earlier_installations(bundle: Callable[..., Path]) -> None:
    path, first = bundle(by="okafor"), Installation.current()
    elsewhere()
    Installation.objects.all().delete()
    import_bundle(path, project=load_defaults())
    imported = Experiment.objects.get()
    assert imported.origin["written_by"] == "okafor"
    further = bundle(imported.slug, file="further.zip")
    elsewhere()
    Installation.objects.all().delete()
    import_bundle(further, project=load_defaults())
    third = Experiment.objects.get()
    assert third.origin["before"]["installation_uid"] == str(first.uid)
    assert third.cluster is not None
    assert third.cluster.slug == f"testbed-{first.uid.hex[:8]}"


def test_bundle_leaves_out_captures_on_request(measured: Experiment, bundle: Callable[..., Path]) -> None:
    trial = measured.trials.order_by("position").first()
    assert trial is not None
    factories.stored_file(trial, "capture.pcapng.zst", b"packets", "capture").save()
    path = bundle(captures="none")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        record = json.loads(archive.read("experiments/water/trials/00001/trial.json"))
    assert not [name for name in names if "capture" in name]
    assert {file["name"]: file["left_out"] for file in record["files"]} == {
        "capture.pcapng.zst": "captures were not requested",
        "stdout.txt": "",
    }


def test_bundle_leaves_out_a_changed_file(measured: Experiment, bundle: Callable[..., Path]) -> None:
    artifact = Artifact.objects.order_by("trial__position").first()
    assert artifact is not None
    artifact.file.write_bytes(b"other\n")
    with zipfile.ZipFile(bundle()) as archive:
        record = json.loads(archive.read("experiments/water/trials/00001/trial.json"))
    assert "was changed after its trial ended" in record["files"][0]["left_out"]


def test_write_bundle_refuses_an_experiment_without_ended_trials(
    db: None, tmp_path: Path, session_directory: Path
) -> None:
    experiment = factories.experiment()
    with pytest.raises(CannotExport, match="No trial of it has ended"), (tmp_path / "b.zip").open("wb") as stream:
        write_bundle(stream, select_experiments([experiment.slug]), BundleOptions())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere", "b.zip"], "There is no experiment 'nowhere'."),
        (["t:77", "b.zip"], "There is no trial 77."),
        (["t:x", "b.zip"], "'t:x' names nothing"),
    ],
)
def test_bundle_command_reports_an_unknown_name(db: None, arguments: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        call_command("bundle", arguments[0], str(tmp_path / arguments[1]))
    assert caught.value.returncode == 2
    assert not list(tmp_path.iterdir())


def test_import_command_reports_an_unusable_file(db: None, tmp_path: Path) -> None:
    load_defaults()
    with pytest.raises(CommandError, match=r"cannot be read: No such file or directory\.") as caught:
        call_command("import", str(tmp_path / "none.zip"))
    assert caught.value.returncode == 2
    with pytest.raises(CommandError, match="there is no project 'unknown'; known: default"):
        call_command("import", str(tmp_path / "none.zip"), project="unknown")
    (tmp_path / "a.zip").write_bytes(b"?")
    with pytest.raises(CommandError, match="This is no zip archive"):
        call_command("import", str(tmp_path / "a.zip"))


def packed(*contents: bytes) -> bytes:
    """A recording of one packet for each content, between two hosts."""
    frames = [ethernet(ipv4(tcp(seq=n, payload=content), source="10.77.0.1")) for n, content in enumerate(contents)]
    plain = section() + interface() + b"".join(enhanced(Frame.whole(1000 * n, frame)) for n, frame in enumerate(frames))
    return zstandard.ZstdCompressor(write_checksum=True).compress(plain)


@pytest.fixture
def recorded(measured: Experiment) -> Trial:
    """Its first trial, with files that tell addresses."""
    trial = measured.trials.order_by("position").first()
    assert trial is not None
    record = zstandard.compress(json.dumps({"flows": [{"source": "10.77.0.1:40000"}]}).encode())
    factories.stored_file(trial, "capture.pcapng.zst", packed(b"a secret", b"another secret"), "capture").save()
    factories.stored_file(trial, "capture-2.pcapng.zst", b"no capture", "capture").save()
    factories.stored_file(trial, "analysis.json.zst", record, "analysis").save()
    factories.stored_file(trial, "hosts.txt", b"node-1 10.77.0.2 of 4.1.2.3\n", "input").save()
    factories.stored_file(trial, "trace.bin", b"\xff\xfe 10.77.0.2", "other").save()
    trial.command = ["mpirun", "--host", "10.77.0.1"]
    trial.environment = Environment.store({"device": "02:00:00:00:00:01", "mpi": "4.1.2.3"})
    trial.save()
    return trial


def of_trial(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Its record, and the files of the bundle."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members["experiments/water/trials/00001/trial.json"]), members


def test_bundle_cuts_captures_to_headers(recorded: Trial, bundle: Callable[..., Path], tmp_path: Path) -> None:
    path = bundle(captures="headers")
    record, members = of_trial(path)
    by_name = {file["name"]: file for file in record["files"]}
    cut = members["experiments/water/trials/00001/files/capture.pcapng.zst"]
    capture = recorded.artifacts.get(name="capture.pcapng.zst")
    assert by_name["capture.pcapng.zst"]["changed"] == "cut to the headers of its packets"
    assert by_name["capture.pcapng.zst"]["original_sha256"] == capture.sha256
    assert by_name["capture.pcapng.zst"]["sha256"] == hashlib.sha256(cut).hexdigest() != capture.sha256
    assert "cannot be cut to its headers" in by_name["capture-2.pcapng.zst"]["left_out"]
    (tmp_path / "cut").write_bytes(cut)
    assert b"secret" not in zstandard.ZstdDecompressor().decompress(cut)
    (table,) = stream(tmp_path / "cut")
    assert (table.payload.tolist(), table.hosts) == ([8, 14], ("10.77.0.1", "10.0.0.2"))
    assert by_name["hosts.txt"]["changed"] == ""

    elsewhere()
    (arrival,) = import_bundle(path, project=load_defaults()).arrivals
    imported = arrival.stored
    assert imported is not None
    assert (imported.origin["captures"], imported.origin["anonymised"]) == ("headers", False)
    assert Artifact.objects.get(name="capture.pcapng.zst").content() == cut


def test_bundle_replaces_addresses_in_all_files(
    recorded: Trial, bundle: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of keys by chance, one in some hundreds leaves a network as it was.
    keys = iter([bytes(range(32)), bytes(range(1, 33))])
    monkeypatch.setattr("analysis.capture.anonymised.secrets.token_bytes", lambda size: next(keys))
    record, members = of_trial(bundle(captures="headers", anonymise=True))
    by_name = {file["name"]: file for file in record["files"]}
    assert by_name["trace.bin"]["left_out"] == "it contains addresses and is not text, so they cannot be replaced"
    files = {Path(name).name: content for name, content in members.items()}
    plain = {
        name: zstandard.ZstdDecompressor().decompressobj().decompress(content) if name.endswith(".zst") else content
        for name, content in files.items()
    }
    for secret in (b"10.77.0.", b"02:00:00:00:00:01", bytes((10, 77, 0, 1)), bytes((10, 0, 0, 2)), b"secret"):
        assert not [name for name, content in plain.items() if secret in content], secret
    (tmp_path / "cut").write_bytes(files["capture.pcapng.zst"])
    (table,) = stream(tmp_path / "cut")
    other = table.hosts[0]
    assert record["command"] == ["mpirun", "--host", other], "one mapping in all files"
    assert json.loads(plain["analysis.json.zst"]) == {"flows": [{"source": f"{other}:40000"}]}
    assert plain["hosts.txt"].endswith(b" of 4.1.2.3\n")
    assert json.loads(members[f"environments/{record['environment']}.json"])["mpi"] == "4.1.2.3"
    assert record["environment"] != recorded.environment.hash  # type: ignore[union-attr]

    first = json.loads(members["rankwire.json"])
    assert (first["captures"], first["anonymised"]) == ("headers", True)
    path = bundle(captures="headers", anonymise=True, file="again.zip")
    assert of_trial(path)[0]["command"] != record["command"], "the key is thrown away"
    elsewhere()
    import_bundle(path, project=load_defaults())
    assert Artifact.objects.filter(name="hosts.txt").get().content().startswith(b"node-1 ")


def test_addresses_cannot_be_replaced_in_contents(bundle: Callable[..., Path], measured: Experiment) -> None:
    with pytest.raises(CannotExport, match="in the contents of packets too"):
        bundle(anonymise=True)
    with pytest.raises(CommandError, match="in the contents of packets too"):
        call_command("bundle", measured.slug, "never.zip", anonymise=True)
    assert not Path("never.zip").exists()
