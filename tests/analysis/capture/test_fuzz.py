"""Mutated captures never crash, hang, read out of bounds or allocate without bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "fuzz_capture.py"


@pytest.mark.parametrize(("bounds_check", "count"), [("", 500), ("1", 250)], ids=["plain", "bounds-checked"])
@pytest.mark.timeout(150)  # bounds checks need every kernel compiled anew, once per state of the sources
def test_mutants_give_a_result_or_one_error(tmp_path: Path, bounds_check: str, count: int) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": bounds_check} if bounds_check else dict(os.environ)
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
