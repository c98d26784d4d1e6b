"""Hostile bundles: refused by the name of a file; nothing is stored."""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.conf import settings

from experiments.common import trees
from experiments.errors import BadBundle
from experiments.exchange import archive
from experiments.exchange.archive import MANIFEST, Archive, is_safe_path
from experiments.exchange.import_plan import import_bundle
from experiments.library import load_defaults
from experiments.models import Artifact, Cluster, Experiment, Trial
from experiments.store import Directory
from tests.experiments.common.deep_trees import nest
from tests.experiments.exchange import archives
from tests.experiments.exchange.conftest import elsewhere


def packed(files: dict[str, bytes], path: Path, *, listed: bool = True) -> Path:
    path.write_bytes(archives.packed(files, listed=listed))
    return path


def refusal(path: Path, **how: Any) -> str:
    with pytest.raises(BadBundle) as caught:
        import_bundle(path, project=load_defaults(), **how)
    assert not Experiment.objects.exists()
    assert not Trial.objects.exists()
    assert not Artifact.objects.exists()
    assert not Cluster.objects.filter(elsewhere=True).exists()
    assert not list((Path(settings.VAR) / "trials").glob("import-*"))
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["../escaped", "/etc/passwd", "a/../../b", "a\\b", "C:/x", "a//b", "./a", "a\nb", "", "a\0b", "x" * 401]
)
def test_is_safe_path_refuses_other_places(name: str) -> None:
    assert not is_safe_path(name)


def test_is_safe_path_accepts_a_plain_name() -> None:
    assert is_safe_path("experiments/water/trials/00001/files/kept/out put-1.txt")


@pytest.mark.parametrize("name", ["../escaped", "/absolute", "a\\..\\b"])
def test_import_refuses_a_member_outside_of_the_bundle(name: str, tmp_path: Path, db: None) -> None:
    assert "is no name that a file of a bundle may have" in refusal(packed({name: b"x"}, tmp_path / "a.zip"))


def test_it_refuses_a_link(tmp_path: Path, db: None) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        link = zipfile.ZipInfo("rankwire.json")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    assert "rankwire.json is a link" in refusal(path)


def test_it_refuses_a_link_in_a_directory(tmp_path: Path, db: None) -> None:
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked" / "rankwire.json").symlink_to("/etc/passwd")
    assert "rankwire.json is not a plain file" in refusal(tmp_path / "unpacked")


def test_it_refuses_a_directory_of_great_depth(tmp_path: Path, db: None) -> None:
    (tmp_path / "unpacked").mkdir()
    nest(tmp_path / "unpacked", 1500)
    assert "is no name that a file of a bundle may have" in refusal(tmp_path / "unpacked")
    trees.remove(tmp_path / "unpacked")


def test_import_refuses_an_archive_of_extreme_compression(tmp_path: Path, db: None) -> None:
    zeros = packed({"zeros": bytes(100 << 20)}, tmp_path / "a.zip")
    assert zeros.stat().st_size < 1 << 20
    assert "that is no bundle of results" in refusal(zeros)


def test_import_refuses_a_member_longer_than_listed(tmp_path: Path, db: None) -> None:
    """A list that says one byte, in front of many: no more than that byte is unpacked."""
    path = packed({"rankwire.json": b"x" * 5000}, tmp_path / "a.zip")
    changed = path.read_bytes().replace(struct.pack("<L", 5000), struct.pack("<L", 1))
    path.write_bytes(changed)
    assert "rankwire.json" in refusal(path)


def test_it_refuses_an_archive_whose_list_is_long_before_it_is_read(
    tmp_path: Path, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_MEMBER_BYTES", 0)
    path = packed({f"file-{number}": b"" for number in range(10)}, tmp_path / "a.zip")
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("the list was read"))
    assert "More than 200000 files are in it" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip at all", bytes(300)])
def test_import_refuses_another_file_type(content: bytes, tmp_path: Path, db: None) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    assert "no zip archive" in refusal(tmp_path / "a.zip")


def test_import_refuses_another_archive(tmp_path: Path, db: None) -> None:
    assert f"It has no {MANIFEST}" in refusal(packed({"holiday.jpg": b"x"}, tmp_path / "a.zip", listed=False))


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'{"format": NaN}', b"[]", b'{"format": "other/7"}'])
def test_import_refuses_invalid_or_other_json(content: bytes, tmp_path: Path, db: None) -> None:
    assert "rankwire.json" in refusal(packed({"rankwire.json": content}, tmp_path / "a.zip"))


def test_it_reads_no_json_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "JSON_BYTES", 100)
    path = packed({"rankwire.json": b" " * 200 + b"{}"}, tmp_path / "a.zip")
    with Archive.opened(path) as opened, pytest.raises(BadBundle, match=r"rankwire.json is longer than"):
        opened.content("rankwire.json")


def test_it_names_the_file_that_was_changed(bundle: Callable[..., Path], tmp_path: Path) -> None:
    path = bundle()
    elsewhere()
    files = archives.contents(path)
    with zipfile.ZipFile(path) as made:
        listed = made.read(MANIFEST)
    name = next(file for file in files if file.endswith("stdout.txt"))
    changed = packed({**files, name: b"HELLO 0\n", MANIFEST: listed}, tmp_path / "changed.zip", listed=False)
    assert f"{name} was changed after the bundle was made" in refusal(changed)
    assert f"{name} was changed" in refusal(changed, dry_run=True)
    missing = packed(
        {**{n: c for n, c in files.items() if n != name}, MANIFEST: listed}, tmp_path / "m.zip", listed=False
    )
    assert f"{name} is missing from the bundle" in refusal(missing)
    added = packed({**files, "more.txt": b"x", MANIFEST: listed}, tmp_path / "more.zip", listed=False)
    assert f"more.txt is in the bundle, but not in its {MANIFEST}" in refusal(added)


def rewritten(bundle: Path, path: Path, end: str, change: Callable[[Any], None]) -> Path:
    """The bundle with its first file of this name changed, and a list that fits."""
    files = archives.contents(bundle)
    name = next(file for file in files if file.endswith(end))
    data = json.loads(files[name])
    change(data)
    return packed({**files, name: json.dumps(data).encode()}, path)


def nested(times: int) -> Any:
    return {"again": nested(times - 1)} if times else 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data["specification"].update(sweep=3.5), "the specification is not as it should be: sweep"),
        (lambda data: data["specification"].update(surprise=1), "surprise"),
        (lambda data: data.update(published=True), "experiment.json: the specification is not as it should be: slug"),
        (lambda data: data["configurations"][0]["parameters"].update(hosts="four"), "parameters: hosts"),
        (lambda data: data["configurations"][0]["parameters"].update(a=[[]] * 2000), "more than 2000 values"),
        (lambda data: data["configurations"][0]["parameters"].update({"link.delay": "text"}), "its link"),
        (lambda data: data["configurations"][0]["parameters"].update(steps=[1]), "a list cannot be swept over, as the parameter 'steps'"),
        (lambda data: data["source"].update(deep=nested(40)), "source: nested too deeply"),
        (lambda data: data["clusters"][0]["facts"].update(deep=nested(40)), "facts: nested too deeply"),
    ],
)  # fmt: skip
def test_it_refuses_an_experiment_that_would_break_pages(
    change: Callable[[Any], None], words: str, bundle: Callable[..., Path], tmp_path: Path
) -> None:
    path = rewritten(bundle(), tmp_path / "changed.zip", "experiment.json", change)
    elsewhere()
    assert words in refusal(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda trial: trial.update(state="queued"), "state"),
        (lambda trial: trial.update(uid="0" * 32), "is a trial of another experiment"),
        (lambda trial: trial["measurements"]["all"].update({"elapsed_s": 1e999}), "Infinity is not a number"),
        (lambda trial: trial["measurements"]["all"].update({"<script>": 1.0}), "<script>"),
        (
            lambda trial: trial["measurements"]["all"].update({"elapsed_s": True}),
            "elapsed_s: Input should be a valid number",
        ),
        (
            lambda trial: trial["measurements"]["all"].update({"elapsed_s": "1.5"}),
            "elapsed_s: Input should be a valid number",
        ),
        (lambda trial: trial["files"][0].update(path="../../escaped.txt"), "outside of its trial"),
        (lambda trial: trial["files"][0].update(sha256="0" * 64), "is not the file that its trial left"),
        (lambda trial: trial.update(cluster="another"), "a cluster that its experiment does not have"),
        (lambda trial: trial.update(surprise=1), "surprise"),
        (
            lambda trial: trial.update(tables={"Times": ["no row"]}),
            "tables: Times.0: Input should be a valid dictionary",
        ),
        (lambda trial: trial.update(tables={"Times": [{"t": [1]}]}), "tables: Times.0.t"),
        (lambda trial: trial.update(conditions={"cores": "two"}), "conditions: cores"),
        (lambda trial: trial.update(conditions={"disturbances": 3}), "conditions: disturbances"),
        (lambda trial: trial.update(conditions={"metric_sources": 5}), "conditions: metric_sources"),
        (
            lambda trial: trial.update(conditions={"metric_sources": {"RAPL": {"metrics": []}}}),
            "conditions: metric_sources.RAPL.trust",
        ),
        (lambda trial: trial.update(conditions={"deep": nested(40)}), "conditions: nested too deeply"),
        *(
            (
                lambda trial, moment=moment: trial.update(certificate={"kept": True, "measured_at": moment}),
                "measured_at",
            )
            for moment in ("x", 5, "2026-11-27T09:30:00")
        ),
        (lambda trial: trial.update(certificate={"rows": []}), "certificate: kept: Field required"),
        (lambda trial: trial.update(certificate={"kept": True, "rows": [{}]}), "certificate: rows.0.quantity"),
        (lambda trial: trial.update(certificate={"kept": True, "reasons": [1]}), "certificate: reasons.0"),
    ],
)
def test_it_refuses_a_trial_that_cannot_be(
    change: Callable[[Any], None], words: str, bundle: Callable[..., Path], tmp_path: Path
) -> None:
    path = rewritten(bundle(), tmp_path / "changed.zip", "trial.json", change)
    elsewhere()
    assert words in refusal(path)


def test_certificates_of_imported_trials_hold_for_no_other_trial(bundle: Callable[..., Path], tmp_path: Path) -> None:
    now = datetime.now(UTC).isoformat()
    forged = {"kept": True, "made_on": "equal", "measured_at": now, "busy_share": 1e9}
    path = rewritten(
        bundle(), tmp_path / "b.zip", "trial.json", lambda trial: trial.update(certificate=forged, ended_at=now)
    )
    elsewhere()
    import_bundle(path, project=load_defaults())
    assert Trial.objects.filter(certificate__made_on="equal").exists()
    assert Trial.kept_certificate("equal", timedelta(days=1)) is None


def test_import_refuses_an_unknown_kind_of_cluster(bundle: Callable[..., Path], tmp_path: Path) -> None:
    path = rewritten(
        bundle(), tmp_path / "b.zip", "experiment.json", lambda data: data["clusters"][0].update(kind="cloud")
    )
    elsewhere()
    assert "clusters of the kind 'cloud' are not known here" in refusal(path)


@pytest.mark.parametrize(
    ("kind", "name", "file", "unpacked_bytes"),
    [
        ("analysis", "analysis.json.zst", "analysis.json.zst", 3 << 20),
        ("analysis", "odd", "odd", 3 << 20),
        ("other", "mpi-profile.json.zst", "kept/odd", 3 << 20),
        ("capture", "counters.json.zst", "counters.json.zst", 3 << 20),
        ("other", "mpi-calls.zst", "odd", 3 << 20),
        ("other", "mpi-profile.json.zst", "kept/odd", 100),
    ],
)
def test_import_refuses_tables_of_extreme_compression_under_any_name(
    kind: str,
    name: str,
    file: str,
    unpacked_bytes: int,
    bundle: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pages unpack them in memory; the import checks them last and undoes all."""
    monkeypatch.setattr("experiments.exchange.import_plan._UNPACKED_BYTES", 1 << 20)
    flood = zstandard.compress(b"[" * unpacked_bytes)

    def add(trial: Any) -> None:
        trial["files"] = [
            {
                **trial["files"][0],
                "kind": kind,
                "name": name,
                "path": file,
                "size_bytes": len(flood),
                "sha256": hashlib.sha256(flood).hexdigest(),
            }
        ]

    changed = rewritten(bundle(), tmp_path / "b.zip", "trial.json", add)
    files = archives.contents(changed)
    first = next(name for name in files if name.endswith("trial.json")).removesuffix("trial.json")
    path = packed({**files, f"{first}files/{file}": flood}, tmp_path / "c.zip")
    elsewhere()
    assert ("becomes more than 1 MiB" if unpacked_bytes > 100 else "cannot be read") in refusal(path)


def test_import_stores_no_file_if_it_fails(bundle: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that rows and files go together after a failure at the end."""
    path = bundle()
    elsewhere()
    before = {path.name for path in (Path(settings.VAR) / "trials").iterdir()}
    monkeypatch.setattr(Directory, "take_in", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        import_bundle(path, project=load_defaults())
    assert not Experiment.objects.exists()
    assert {path.name for path in (Path(settings.VAR) / "trials").iterdir()} == before


def test_it_needs_no_more_memory_than_a_piece_for_a_long_file(tmp_path: Path) -> None:
    with Archive.opened(packed({"long": bytes(5 << 20)}, tmp_path / "a.zip")) as opened:
        assert max(len(piece) for piece in opened.pieces("long")) <= 1 << 20
