"""Kernels that run from kept code, without numba."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import analysis
from analysis import kernels
from analysis.kernels import ready
from tests.analysis.capture import hostile

RECORD = np.dtype([("bytes", np.int64), ("of", [("first", np.uint32), ("ns", np.int64)])], align=True)


@pytest.fixture(autouse=True)
def no_other_wishes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR"]:
        monkeypatch.delenv(name)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "connections.pcap"
    path.write_bytes(hostile.connections_in_turn(2000))
    return path


@pytest.fixture
def answer(capture: Path, tmp_path: Path) -> Any:
    """What this process finds, whose kernels lie in ``tmp_path`` then."""
    found = json.loads(json.dumps(analysis.analyse(capture).to_dict()))
    shutil.copytree(os.environ["NUMBA_CACHE_DIR"], tmp_path / "kernels")
    ready.keep(kernels._dispatchers, tmp_path / "kernels", kernels._fingerprint())
    return found


def stats(capture: Path, cache: Path) -> tuple[Any, bool]:
    """What the command line prints, and whether it imported the compiler."""
    argv = [sys.executable, "-X", "importtime", "-m", "analysis", "stats", str(capture), "--json"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300, env=environment)
    return json.loads(done.stdout), "numba.core.compiler" in done.stderr


def test_the_command_line_answers_alike_without_the_compiler(answer: Any, capture: Path, tmp_path: Path) -> None:
    assert stats(capture, tmp_path / "kernels") == (answer, False)


def test_what_was_not_kept_is_compiled_and_kept(answer: Any, capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernels" / "ready.json"
    index = json.loads(path.read_bytes())
    missing = {name for name in index["kernels"] if ".follow_packets(" in name}
    less = {name: entry for name, entry in index["kernels"].items() if name not in missing}
    path.write_text(json.dumps({**index, "kernels": less}))
    assert stats(capture, tmp_path / "kernels") == (answer, True)
    kept = json.loads(path.read_bytes())["kernels"].keys()
    assert less.keys() < kept
    assert missing & kept


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3, np.uint16),
        np.zeros((2, 3), np.int64),
        np.zeros((2, 3), np.int64).T,
        np.zeros(9, np.float64)[::2],
        np.zeros(3, RECORD),
        np.zeros(3, bool),
        np.frombuffer(b"not written to.."),
        np.uint64(3),
        True,
        -3,
        2.5,
    ],
    ids=str,
)
def test_values_are_named_as_numbas_types_are(value: Any) -> None:
    assert ready._type_name(value) == ready._numba_type_name(numba.typeof(value))  # type: ignore[no-untyped-call]


def test_arrays_that_numba_tells_apart_have_names_of_their_own() -> None:
    writable, kept = np.zeros(3, RECORD), np.zeros(3, RECORD)
    kept.flags.writeable = False
    alike = [writable, kept, np.zeros((3, 1), RECORD), np.zeros(6, RECORD)[::2], np.zeros(3, RECORD.descr)]
    assert len(set(map(ready._type_name, alike))) == len(alike)


@pytest.mark.parametrize("value", ["text", None, 2**63, np.zeros(1, RECORD)[0]], ids=repr)
def test_an_argument_that_no_kernel_takes_needs_the_compiler(value: Any) -> None:
    with pytest.raises(ready.NotReady):
        ready._type_name(value)


def test_code_of_other_sources_is_not_run(tmp_path: Path) -> None:
    ready.keep([], tmp_path, "these")
    (tmp_path / "ready.json").write_text(
        (tmp_path / "ready.json").read_text().replace('"kernels": {}', '"kernels": {"a": {}}')
    )
    assert ready._index(tmp_path, ready._made_for("these"))
    with pytest.raises(ready.NotReady):
        ready.Ready(tmp_path, "others")


@pytest.mark.parametrize("name", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_who_tells_numba_something_gets_numba(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(ready.NotReady):
        kernels.use_ready()
    assert not kernels.without_numba()
