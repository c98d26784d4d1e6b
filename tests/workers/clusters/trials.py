"""Helpers of workers' tests: a plain link, small programs on hosts."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import zstandard

from workers.launchers import Job, Process, Session
from workers.launchers.base import MachineSession
from workers.testbed.plan import Topology


@dataclass(frozen=True)
class PlainLink:
    """The properties a launcher reads of a link."""

    bandwidth_bps: float | None = 1e9
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    mtu: int | None = 1500
    distribution: str = "uniform"
    loss_burst: float = 1.0
    queue_bytes: int | None = None
    topology: Topology = "one site"
    rates_bps: tuple[float, ...] = ()
    congestion_control: str | None = None
    tcp_buffer_bytes: int | None = None
    emulator: str = "auto"


def run(session: Session, job: Job, limit_s: float = 90.0) -> tuple[int | None, str, str]:
    """Run a job to its end: status, standard output, standard error."""
    out, err = job.workdir / "stdout.txt", job.workdir / "stderr.txt"
    process = session.launch(job, stdout=out, stderr=err)
    status = process.wait(limit_s)
    return status, out.read_text(), err.read_text()


def start_tool(session: Session, *argv: str, host: str | None = None) -> tuple[Process, int]:
    """Start a program outside of jobs; return also its output's descriptor."""
    answer = os.memfd_create("answer")
    assert isinstance(session, MachineSession)
    with Path(os.devnull).open("rb") as nothing:
        process = session.agent.spawn(
            argv,
            environment={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"},
            directory=Path("/"),
            descriptors=(nothing.fileno(), answer, answer),
            host=host,
        )
    return process, answer


def output_of(session: Session, *argv: str, host: str | None = None) -> str:
    """Return the output of a small program on a host (None: the bridge's namespace)."""
    process, answer = start_tool(session, *argv, host=host)
    process.wait(20.0)
    text = os.pread(answer, 1 << 20, 0).decode()
    os.close(answer)
    return text


def capinfos(path: Path) -> tuple[int, int]:
    """Return packets and wire bytes of a compressed capture, by capinfos."""
    text = subprocess.run(
        ["capinfos", "-M", "-c", "-d", str(unpacked(path))], capture_output=True, text=True, check=True, timeout=90
    ).stdout
    values = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(values["Number of packets"]), int(values["Data size"].split()[0])


def frame_lengths(path: Path) -> list[int]:
    """The length on the wire of every packet, by tshark."""
    text = subprocess.run(
        ["tshark", "-r", str(unpacked(path)), "-T", "fields", "-e", "frame.len"],
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
    ).stdout
    return [int(line) for line in text.split()]


def unpacked(path: Path) -> Path:
    """Return the plain pcapng next to its compressed file."""
    plain = path.with_suffix("")
    with path.open("rb") as source, plain.open("wb") as target:
        zstandard.ZstdDecompressor().copy_stream(source, target)
    return plain
