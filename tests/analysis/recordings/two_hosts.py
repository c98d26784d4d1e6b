"""Recorder of iperf3 between two virtual hosts, offloads and loss optional.

Run as ``python two_hosts.py JSON`` inside fresh namespaces; ``record_stream`` does both.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

if __package__:
    from tests.analysis.recordings import recording
else:  # as a script, or imported by one: this directory is where modules come from
    import recording

DEADLINE_S = 100.0
HOSTS = {"n1": "10.9.0.1", "n2": "10.9.0.2"}
PORTS = {"n1": "v1", "n2": "v2"}


def record_stream(
    output: Path,
    *iperf_arguments: str,
    device: str = "br0",
    offloads: bool = False,
    loss_permille: int = 0,
    snap_length: int = 128,
    buffer_bytes: int | None = None,
) -> Path:
    """Record a stream from n2 to n1; return ``output`` (pcapng).

    ``device`` is br0, v1 (n1's end, behind the loss) or v2 (before it).
    """
    task = {
        "output": str(output), "device": device, "offloads": offloads, "loss_permille": loss_permille,
        "snap_length": snap_length, "iperf": iperf_arguments, "buffer_bytes": buffer_bytes,
    }  # fmt: skip
    inside = [sys.executable, __file__, json.dumps(task)]
    command = ["unshare", "-Urnmp", "--fork", "--kill-child", "--mount-proc", *inside]
    done = subprocess.run(command, timeout=DEADLINE_S + 15, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output


def run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=DEADLINE_S, capture_output=True)


def in_host(host: str, *command: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{host}", *command]


def build(offloads: bool, loss_permille: int, buffer_bytes: int | None) -> None:
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "link", "set", "br0", "up")
    for host, address in HOSTS.items():
        run("ip", "netns", "add", host)
        run("ip", "link", "add", PORTS[host], "type", "veth", "peer", "name", "eth0", "netns", host)
        run("ip", "link", "set", PORTS[host], "master", "br0", "up")
        run("ip", "-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
        run("ip", "-n", host, "link", "set", "lo", "up")
        run("ip", "-n", host, "link", "set", "eth0", "up")
        if not offloads:
            off = ("tso", "off", "gso", "off", "gro", "off")
            run("ethtool", "-K", PORTS[host], *off)
            run(*in_host(host, "ethtool", "-K", "eth0", *off))
        if buffer_bytes is not None:
            run(*in_host(host, "sysctl", "-w", f"net.ipv4.tcp_rmem=4096 {buffer_bytes} {buffer_bytes}"))
    if loss_permille:
        run("nft", "add table bridge f; add chain bridge f c { type filter hook forward priority 0; }")
        run("nft", f"add rule bridge f c tcp dport 5201 numgen random mod 1000 < {loss_permille} drop")


def stay_on_one_core() -> None:
    """Pin this process, and those that it starts later, to one core.

    A veth hands frames to a queue of the core that sends: a sender that moves to another core overtakes itself, before
    any capture, and a recording "without loss" has segments out of order.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main(task: dict[str, Any]) -> None:
    build(task["offloads"], task["loss_permille"], task["buffer_bytes"])
    listen = ["dumpcap", "-i", task["device"], "-s", str(task["snap_length"]), "-B", "32", "-q", "-w", task["output"]]
    capture = subprocess.Popen(listen, stderr=subprocess.PIPE, text=True)
    stay_on_one_core()
    server = subprocess.Popen(in_host("n1", "iperf3", "-s", "-1", "--forceflush"), stdout=subprocess.PIPE, text=True)
    try:
        assert capture.stderr is not None
        assert server.stdout is not None
        next(line for line in capture.stderr if line.startswith("File:"))  # dumpcap listens from here on
        next(line for line in server.stdout if "listening" in line)
        run(*in_host("n2", "iperf3", "-c", HOSTS["n1"], *task["iperf"]))
        server.wait(10)
        recording.wait_until_settled(Path(task["output"]))
    finally:
        server.kill()
        capture.send_signal(signal.SIGINT)
        capture.wait(10)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
