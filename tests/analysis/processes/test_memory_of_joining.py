"""Recordings are joined in less memory than they take on the disk."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

PACKETS = 1_000_000
JOIN = """
import sys
from pathlib import Path
from analysis.capture.join import join
from analysis.capture.sharding import Recording


def joined(directory):
    made = [Recording(f"n{n}", Path(directory, f"n{n}.pcapng"), frozenset({f"10.0.0.{n}"})) for n in (1, 2)]
    return join(made, Path(directory, "capture.pcapng.zst")).packets


def resident(what):
    return 1024 * int(Path("/proc/self/status").read_text().partition(f"{what}:")[2].split()[0])


joined(sys.argv[1])
Path("/proc/self/clear_refs").write_text("5")  # compiling kernels took more than is wanted later
before = resident("VmRSS")
packets = joined(sys.argv[2])
print(packets, resident("VmHWM") - before)
"""


def recorded(directory: Path, packets: int) -> int:
    """Record at two hosts all that one sent to the other; return the bytes."""
    directory.mkdir()
    frame = ethernet(
        ipv4(tcp(20_000, 40_000, seq=0, ack=1, payload=b"d" * 60), source="10.0.0.1", destination="10.0.0.2")
    )
    empty = files.pcapng([])
    block = files.pcapng([Frame.whole(0, frame)])[len(empty) :]
    rows = np.frombuffer(block * packets, np.uint8).reshape(packets, len(block)).copy()
    numbers = np.arange(packets, dtype=np.uint64)
    times = 10**15 + 10 * numbers
    rows[:, 12:20] = np.stack([times >> 32, times & 0xFFFFFFFF], axis=1).astype("<u4").view(np.uint8)
    place = 28 + frame.index((20_000).to_bytes(2, "big") + (40_000).to_bytes(2, "big")) + 4
    rows[:, place : place + 4] = (60 * numbers).astype(">u4").view(np.uint8).reshape(packets, 4)
    for host in (1, 2):
        with (directory / f"n{host}.pcapng").open("wb") as file:
            file.write(empty)
            file.write(rows.data)
    return len(empty) + rows.nbytes


def test_what_was_recorded_is_never_in_memory(tmp_path: Path) -> None:
    """Windows are 130 MB; a packet needs 46 bytes."""
    recorded(tmp_path / "small", 1000)
    size_bytes = recorded(tmp_path / "large", PACKETS)
    gc.collect()
    argv = [sys.executable, "-c", JOIN, str(tmp_path / "small"), str(tmp_path / "large")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=150)
    for file in (tmp_path / "large").iterdir():
        file.unlink()
    packets, grown_bytes = map(int, done.stdout.split())
    assert packets == PACKETS
    assert 2 * size_bytes > 250_000_000
    assert grown_bytes < 240_000_000, f"{grown_bytes} bytes"
