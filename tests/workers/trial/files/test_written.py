"""Files of a run by name and pattern: only plain files of its working directory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from experiments import files
from experiments.errors import NotPlain
from experiments.workloads.kept_files import is_reserved, selected
from workers.capture import stored_capture
from workers.errors import TrialFailed
from workers.trial import delivery, written


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in (
        "HPCG_2026.txt",
        "a.log",
        "run1/rates.csv",
        "run2/rates.csv",
        "run2/deep/x.csv",
        "stdout.txt",
        ".hidden",
    ):
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(f"text of {name}")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "rates.csv").write_text("stolen")
    (tmp_path / "work" / "run3").symlink_to(tmp_path / "outside")
    (tmp_path / "work" / "b.log").symlink_to(tmp_path / "outside" / "rates.csv")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        (["*.log"], ["a.log"]),
        (["run*/rates.csv"], ["run1/rates.csv", "run2/rates.csv"]),
        (["*/*/*.csv"], ["run2/deep/x.csv"]),
        (["HPCG*.txt"], ["HPCG_2026.txt"]),
        (["*.txt", "*"], ["HPCG_2026.txt", "a.log"]),
        (["run1/rates.csv", "a.log"], ["a.log", "run1/rates.csv"]),
        (["missing.txt", "missing/x"], []),
    ],
)
def test_it_selects_plain_files(work: Path, patterns: list[str], names: list[str]) -> None:
    assert written.names_of(work, patterns) == names


def test_link_in_place_of_a_named_file_is_refused(work: Path) -> None:
    with pytest.raises(NotPlain, match=r"b\.log is a symbolic link"):
        written.names_of(work, ["b.log"])
    (work.parent / "link").symlink_to(work)
    with pytest.raises(NotPlain, match="no longer a directory"):
        written.names_of(work.parent / "link", ["*.log"])


def test_it_reads_them_together_within_a_limit(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = written.texts_of(work, ["run*/rates.csv"])
    assert texts == {f"run{number}/rates.csv": f"text of run{number}/rates.csv" for number in (1, 2)}
    monkeypatch.setattr(written, "MOST_READ_BYTES", 30)
    with pytest.raises(NotPlain, match="is longer than"):
        written.texts_of(work, ["run*/rates.csv"])
    for number in (1, 2):
        (work / f"run{number}/rates.csv").write_text("\u00e9" * 10)  # 20 bytes
    with pytest.raises(NotPlain, match="is longer than"):
        written.texts_of(work, ["run*/rates.csv"])


def test_it_keeps_a_file_under_its_path(work: Path) -> None:
    directory = work.parent
    stored = [written.keep(work, name, directory) for name in ("a.log", "run2/deep/x.csv")]
    assert [written.name_in(file, directory) for file in stored] == ["a.log", "run2/deep/x.csv"]
    assert stored[1] == directory / "kept" / "run2" / "deep" / "x.csv"
    assert not (work / "a.log").exists()


def test_it_keeps_no_more_than_a_trial_may_have_on_disk(work: Path) -> None:
    """By the length of the files: a hole takes no disk, and a hash of it hours."""
    with (work / "hole.log").open("wb") as file:
        file.truncate(1 << 40)
    written.require_room([work / "a.log"], limit_bytes=1 << 20)
    with pytest.raises(TrialFailed, match=r"are .* long together, more than the 1 MiB that a trial may have on disk"):
        written.require_room([work / "a.log", work / "hole.log"], limit_bytes=1 << 20)


def test_files_to_store_have_few_holes(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "HOLES_LIMIT_BYTES", 1 << 20)
    files = [work / f"{number}.log" for number in range(3)]
    for file in files:
        with file.open("wb") as stream:
            stream.write(b"x" * 8192)
            stream.seek(400 << 10, 1)
            stream.write(b"y" * 8192)
    dense = work / "dense.log"
    dense.write_bytes(b"z" * (4 << 20))
    written.require_room([dense, *files[:2]], limit_bytes=1 << 30)
    with pytest.raises(TrialFailed, match=r"2\.log is .* long, but mostly empty"):
        written.require_room([dense, *files], limit_bytes=1 << 30)


def test_a_file_of_holes_is_judged_at_once(work: Path) -> None:
    with (work / "hole.log").open("wb") as stream:
        stream.truncate(1 << 43)
    begun = time.monotonic()
    with pytest.raises(TrialFailed, match="mostly empty"):
        written.require_room([work / "hole.log"], limit_bytes=1 << 50)
    assert time.monotonic() - begun < 1


def test_names_of_the_trials_own_files_are_reserved() -> None:
    """A program's file would replace what was measured, or be removed as scratch."""
    names = {value for name, value in vars(files).items() if name.endswith("_NAME")}
    reserved = {
        *names,
        *delivery.SCRATCH,
        written.KEPT,
        stored_capture.NAME,
        "stdout.txt",
        "samples.json",
        "ranks.json",
    }
    assert len(names) == 5
    assert [name for name in sorted(reserved) if not is_reserved(name)] == []
    assert selected(["*"], sorted(reserved)) == []
