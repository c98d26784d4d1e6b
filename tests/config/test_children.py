"""Forks of a process that has loaded the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from config.services.lease import ROOT

# A process of its own: a fork of the tests would print into what pytest collects.
LOADED = """
import signal, subprocess, sys, time
from pathlib import Path
import psutil
from config.services.children import fork, stop
directory = Path(sys.argv[1])
sys.path.append(str(directory))
log = directory / "log"
process = fork(
    ["forked_program", sys.argv[2]], title="rankwire: it", log=log, death_signal=signal.SIGKILL, cwd=directory
)
if sys.argv[2] == "wait":
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    forked = psutil.Process(process.pid)
    print(process.poll(), " ".join(forked.cmdline()).strip(), forked.terminal())
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        stop(process, [(signal.SIGTERM, 30.0)])
print(process.wait(60))
"""
FORKED = """
import os, sys, time
print(sys.argv[1:], os.getcwd(), [number for number in range(3, 100) if os.path.exists(f"/proc/self/fd/{number}")], flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
raise {"status": SystemExit(3), "words": SystemExit("it refused"), "error": KeyError("lost"), "none": SystemExit}[sys.argv[1]]
"""


def outcome(directory: Path, word: str) -> tuple[list[str], list[str]]:
    """Return the lines of the process and those of its fork."""
    (directory / "forked_program.py").write_text(FORKED)
    argv = [sys.executable, "-c", LOADED, str(directory), word]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), (directory / "log").read_text().splitlines()


@pytest.mark.parametrize(
    ("word", "status", "text"),
    [("status", "3", []), ("words", "1", ["it refused"]), ("error", "1", ["KeyError: 'lost'"]), ("none", "0", [])],
)
def test_a_fork_ends_as_its_module_does(word: str, status: str, text: list[str], tmp_path: Path) -> None:
    printed, (first, *rest) = outcome(tmp_path, word)
    assert printed == [status]
    assert first == f"['{word}'] {tmp_path} []", "no descriptor but the standard ones is passed on"
    assert rest[-1:] == text


def test_a_fork_has_a_title_and_ends_at_a_signal(tmp_path: Path) -> None:
    printed, _ = outcome(tmp_path, "wait")
    assert printed == ["None rankwire: it None", "-15"]
