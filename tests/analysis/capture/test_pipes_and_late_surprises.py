"""Input that the first packet does not announce: pipes and late handshakes."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import analysis
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

HANDSHAKE = struct.pack("<II", 7, 1) + b"OPAL-TCP-BTL".ljust(16, b"\0")
PACKETS = 70_000
"""More than two tables."""


def frames(late: Frame | None = None) -> list[Frame]:
    data = ethernet(ipv4(tcp(payload=b"d" * 30)))
    made = [Frame.whole(10**15 + k * 1000, data) for k in range(PACKETS)]
    return [*made[:-1], late or made[-1]]


def with_a_late_handshake() -> bytes:
    handshake = ethernet(ipv4(tcp(seq=31, payload=HANDSHAKE)))
    return files.pcap(frames(Frame.whole(10**15 + PACKETS * 1000, handshake)))


@pytest.fixture
def late_handshake(tmp_path: Path) -> Path:
    path = tmp_path / "late.pcap"
    path.write_bytes(with_a_late_handshake())
    return path


def test_a_pipe_whose_handshake_comes_late_gives_what_the_file_gives(late_handshake: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(late_handshake.read_bytes()), daemon=True)
    writer.start()
    through, whole = analysis.analyse(pipe), analysis.analyse(late_handshake)
    writer.join(10)
    assert through.mpi.metrics == whole.mpi.metrics
    assert through.mpi.metrics["packets"] == PACKETS
    assert through.file == str(pipe)


@pytest.mark.parametrize("pack", [bytes, lambda data: subprocess.run(["gzip"], input=data, capture_output=True).stdout])
@pytest.mark.parametrize("command", [["stats", "-", "--json"], ["flows", "--interarrival", "-", "--json"]])
def test_a_dash_is_standard_input(pack: Callable[[bytes], bytes], command: list[str]) -> None:
    argv = [sys.executable, "-m", "analysis", *command]
    done = subprocess.run(argv, input=pack(files.pcap(frames())), capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert b'"verdict":"' in done.stdout


def test_errors_of_a_pipe_name_the_pipe() -> None:
    argv = [sys.executable, "-m", "analysis", "stats", "-"]
    done = subprocess.run(argv, input=b"nonsense", capture_output=True, timeout=100, text=False)
    assert done.returncode == 2
    assert done.stderr.startswith(b"analysis: -: the file is neither")
