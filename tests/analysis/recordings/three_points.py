"""Recorder of one stream at three points: the bridge and both ports.

Run as ``python three_points.py DIRECTORY`` inside fresh namespaces; ``record_everywhere`` does both.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

if __package__:
    from tests.analysis.recordings import recording, two_hosts
else:  # as a script, this directory is where modules come from
    import recording
    import two_hosts

POINTS = ("br0", "v1", "v2")


def record_everywhere(place: Path) -> dict[str, Path]:
    """Savefiles by device, of 2 MB sent over TCP with offloads off."""
    inside = [sys.executable, __file__, str(place)]
    command = ["unshare", "-Urnmp", "--fork", "--kill-child", "--mount-proc", *inside]
    subprocess.run(command, check=True, timeout=two_hosts.DEADLINE_S + 15, capture_output=True)
    return {device: place / f"{device}.pcapng" for device in POINTS}


def _listen(device: str, place: Path) -> subprocess.Popen[str]:
    argv = ["dumpcap", "-i", device, "-f", "tcp", "-s", "128", "-B", "32", "-q", "-w", str(place / f"{device}.pcapng")]
    capture = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert capture.stderr is not None
    next(line for line in capture.stderr if line.startswith("File:"))  # dumpcap listens from here on
    return capture


def main(place: Path) -> None:
    two_hosts.build(offloads=False, loss_permille=0, buffer_bytes=None)
    captures = [_listen(device, place) for device in POINTS]
    server = subprocess.Popen(
        two_hosts.in_host("n1", "iperf3", "-s", "-1", "--forceflush"), stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        next(line for line in server.stdout if "listening" in line)
        two_hosts.run(*two_hosts.in_host("n2", "iperf3", "-c", two_hosts.HOSTS["n1"], "-n", "2M"))
        server.wait(10)
        for device in POINTS:
            recording.wait_until_settled(place / f"{device}.pcapng")
    finally:
        server.kill()
        for capture in captures:
            capture.send_signal(signal.SIGINT)
            capture.wait(10)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
