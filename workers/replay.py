"""Replay of a trial's calls with SimGrid's smpirun, within limits."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from analysis.replay.actions import Traces
from analysis.replay.calibration import EAGER_BYTES, Calibration
from analysis.replay.errors import NotReplayable
from analysis.replay.platform import Topology, host_file, platform
from analysis.sensitivity import Link

PROGRAM: Final = "smpirun"
NOT_INSTALLED: Final = (
    "SimGrid is not installed on this machine (Debian: libsimgrid-dev), so that no trial can be replayed."
)
TIME_LIMIT_S: Final = 120
_MEMORY_LIMIT_BYTES: Final = 4 << 30
_OUTPUT_LIMIT_BYTES: Final = 1 << 20
_TOLD: Final = re.compile(r"Simulation time ([0-9.]+)\s*$", re.MULTILINE)


def available() -> bool:
    """Return whether this machine can replay."""
    return shutil.which(PROGRAM) is not None


def replay(
    traces: Traces, link: Link, calibration: Calibration, *, places: Sequence[int], topology: Topology = "star"
) -> float:
    """Return the duration of the traced calls on ``link``, s.

    From the first to the last. ``places``: the host of each rank, from 0. Raise NotReplayable with a sentence.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise NotReplayable(NOT_INSTALLED)
    with tempfile.TemporaryDirectory(prefix="replay-") as name:
        directory = Path(name)
        files = []
        for rank, lines in enumerate(traces.lines):
            files.append(directory / f"{rank}.txt")
            files[-1].write_text("\n".join(lines) + "\n")
        (directory / "traces").write_text("".join(f"{file}\n" for file in files))
        (directory / "hosts").write_text(host_file(places))
        corrected = calibration.corrected(link)
        (directory / "platform.xml").write_text(platform(max(places) + 1, corrected, topology))
        return _run(_command(program, directory, len(traces.lines), calibration), directory)


def _command(program: str, directory: Path, ranks: int, calibration: Calibration) -> list[str]:
    settings = {
        # Neutral factors: the platform has those of this cluster.
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": f"0:1;{EAGER_BYTES + 1}:{calibration.large_times!r}",
        "smpi/async-small-thresh": str(EAGER_BYTES + 1),
        "smpi/send-is-detached-thresh": str(EAGER_BYTES + 1),
        "smpi/coll-selector": "ompi",
        "smpi/tmpdir": str(directory),
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
    }
    return [
        *(program, "-np", str(ranks), "-platform", str(directory / "platform.xml")),
        *("-hostfile", str(directory / "hosts"), "-replay", str(directory / "traces")),
        *(f"--cfg={name}:{value}" for name, value in settings.items()),
    ]


def _run(command: Sequence[str], directory: Path) -> float:
    output = directory / "output"
    with output.open("wb") as stream:
        # A session of its own: the program is a script, and what it started has to end with it.
        process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=stream, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=_bounded, env={"PATH": "/usr/bin:/bin", "TMPDIR": str(directory)},
        )  # fmt: skip
        try:
            status = process.wait(TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise NotReplayable(f"The replay took longer than {TIME_LIMIT_S} s.") from None
        finally:
            _end(process)
    said = output.read_text(errors="replace")
    times = _TOLD.findall(said)
    if status or not times:
        raise NotReplayable(f"SimGrid could not replay the calls: {_reason(said)}")
    return float(times[-1])


def _bounded() -> None:
    """Set the limits; in the program before it begins."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT_BYTES, _MEMORY_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_LIMIT_BYTES, _OUTPUT_LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT_S, TIME_LIMIT_S))


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(said: str) -> str:
    """Return the critical or error line of the output, or the last one."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "CRITICAL" in line or "rror" in line or "eadlock" in line]
    return (errors or lines or ["no output"])[0 if errors else -1][:200]
