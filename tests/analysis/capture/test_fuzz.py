"""Mutated captures never crash, hang, or read or allocate without bound."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import analysis

SCRIPT = Path(__file__).parents[2] / "fuzz_capture.py"


@pytest.mark.parametrize(("checked", "count"), [(False, 500), (True, 250)], ids=["plain", "bounds-checked"])
@pytest.mark.timeout(400)  # the first test that needs checked kernels compiles them
def test_mutants_give_a_result_or_one_error(
    request: pytest.FixtureRequest, tmp_path: Path, checked: bool, count: int
) -> None:
    environment = request.getfixturevalue("checked_kernels") if checked else None
    argv = [
        sys.executable,
        str(SCRIPT),
        "--count",
        str(count),
        "--seconds",
        "40",
        "--seed",
        "11",
        "--keep",
        str(tmp_path),
    ]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=140)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["result"] > 10
    assert counts["degraded"] > 50
    assert counts["refused"] > 10


def test_frames_without_a_byte_have_no_burstiness(tmp_path: Path) -> None:
    """Found by a mutant: a rate of nothing to divide by."""
    stamps = b"".join(struct.pack("<IIII", second, 0, 0, 0) for second in range(1, 4))
    path = tmp_path / "nothing.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1) + stamps)
    measured = analysis.analyse(path)
    assert (measured.metrics["packets"], measured.metrics["throughput_bps"]) == (3, 0)
    assert measured.not_available["burstiness"] == "the packets have no bytes"
