"""Recorder of real traffic: a command in a namespace, dumpcap on its lo.

Run as ``python recording.py OUTPUT SNAPLEN COMMAND...`` inside the namespace; ``record`` does both.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

DEADLINE_S = 100.0


def record(output: Path, command: list[str], *, snap_length: int = 128) -> Path:
    """Run ``command`` in a fresh network namespace and capture its loopback."""
    inside = [sys.executable, __file__, str(output), str(snap_length), *command]
    subprocess.run(["unshare", "-Urn", *inside], check=True, timeout=DEADLINE_S + 15, capture_output=True)
    return output


def wait_until_settled(file: Path) -> None:
    """Wait until the capture file has not grown for half a second."""
    size, since = -1, time.monotonic()
    deadline = since + DEADLINE_S
    while time.monotonic() < deadline and time.monotonic() - since < 0.5:
        if file.stat().st_size != size:
            size, since = file.stat().st_size, time.monotonic()
        time.sleep(0.02)


def main(output: str, snap_length: str, *command: str) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    capture = subprocess.Popen(
        ["dumpcap", "-i", "lo", "-s", snap_length, "-B", "32", "-q", "-w", output], stderr=subprocess.PIPE, text=True
    )
    try:
        assert capture.stderr is not None
        for line in capture.stderr:
            if line.startswith("File:"):  # dumpcap listens from here on
                break
        subprocess.run(command, check=True, timeout=DEADLINE_S)
        wait_until_settled(Path(output))
    finally:
        capture.send_signal(signal.SIGINT)
        capture.wait(10)


if __name__ == "__main__":
    main(*sys.argv[1:])
