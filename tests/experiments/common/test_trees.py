"""Walk and removal of trees that hostile programs made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.common import plain_files, trees
from tests.experiments.common.deep_trees import nest

DEEP = 3000
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups") if os.geteuid() == 0 else ()


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    top = tmp_path / "tree"
    top.mkdir()
    yield top
    subprocess.run(["rm", "-rf", str(top)], check=True)  # pytest's own removal recurses


def test_walk_and_removal_know_no_depth_and_few_descriptors(tree: Path) -> None:
    nest(tree, DEEP)
    before = len(list(Path("/proc/self/fd").iterdir()))
    deepest = [len(entry.above) for entry in trees.walk(tree) if entry.is_file]
    assert deepest == [DEEP]
    trees.remove(tree)
    assert not tree.exists()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_walk_yields_every_entry_with_its_path_and_size(tree: Path) -> None:
    for name in ("a/b/file", "a/other", "top"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "a" / "link").symlink_to("/etc")
    seen = {"/".join((*entry.above, entry.name)): entry.status.st_size for entry in trees.walk(tree) if entry.is_file}
    assert seen == {name: len(name) for name in ("a/b/file", "a/other", "top")}
    assert {"/".join((*entry.above, entry.name)) for entry in trees.walk(tree)} == {*seen, "a", "a/b", "a/link"}
    assert {entry.name for entry in trees.walk(tree, levels=1)} == {"a", "top"}


def test_removal_follows_no_link(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "file").write_text("stays")
    for number, target in enumerate((outside, outside / "directory", outside / "file")):
        (tree / str(number)).symlink_to(target)
    (tmp_path / "link").symlink_to(outside)
    trees.remove(tree)
    trees.remove(tmp_path / "link")
    trees.remove(tmp_path / "never there")
    assert sorted(path.name for path in outside.iterdir()) == ["directory", "file"]


def test_removal_opens_what_its_owner_closed(tmp_path: Path) -> None:
    """As an ordinary user, whom modes hold back."""
    tmp_path.chmod(0o777)
    for directory in tmp_path.parents:
        if directory.name.startswith(("pytest", "popen")):
            directory.chmod(0o755)
    program = (
        "import os, sys; from pathlib import Path; from experiments.common import trees; tree = Path(sys.argv[1], 'tree')\n"
        "tree.joinpath('unreadable/a').mkdir(parents=True); tree.joinpath('fixed').mkdir()\n"
        "tree.joinpath('unreadable/a/file').touch(); tree.joinpath('fixed/file').touch()\n"
        "os.chmod(tree / 'fixed', 0o500); os.chmod(tree / 'unreadable/a', 0); os.chmod(tree / 'unreadable', 0)\n"
        "assert sum(entry.is_file for entry in trees.walk(tree)) == 2\n"
        "os.chmod(tree, 0); trees.remove(tree); assert not tree.exists()"
    )
    python = "/usr/bin/python3" if AS_NOBODY else sys.executable
    copy = tmp_path / "experiments" / "common"
    copy.mkdir(parents=True)
    (copy / "trees.py").write_bytes(Path(trees.__file__).read_bytes())
    done = subprocess.run(
        [*AS_NOBODY, python, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_removal_reports_what_is_left(tree: Path) -> None:
    busy = tree / "a" / "busy"
    busy.mkdir(parents=True)
    (tree / "b").mkdir()
    (tree / "b" / "file").touch()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(busy)], check=True)
    try:
        with pytest.raises(OSError, match="busy"):
            trees.remove(tree)
        assert not plain_files.discard(tree)
        assert busy.exists()
        assert not (tree / "b").exists()
    finally:
        subprocess.run(["umount", str(busy)], check=True)
    assert plain_files.discard(tree)
    assert not tree.exists()
