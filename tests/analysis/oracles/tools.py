"""Independent tools that the tests compare with."""

from __future__ import annotations

import subprocess
from pathlib import Path


def capinfos(path: Path) -> dict[str, str]:
    """Machine-readable facts of capinfos: -T (table), -m (comma), full precision."""
    done = subprocess.run(
        ["capinfos", "-TmQ", "-c", "-d", "-u", "-a", "-e", "-S", str(path)],
        check=True, capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    header, values = (line.replace('"', "").split(",") for line in done.stdout.strip().splitlines())
    return dict(zip(header, values, strict=True))


def tshark_fields(path: Path, *fields: str, display_filter: str = "") -> list[list[str]]:
    """Return one list of texts per packet, empty if it has no such field."""
    argv = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=f"]
    argv += ["-o", "tcp.desegment_tcp_streams:FALSE", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    for field in fields:
        argv += ["-e", field]
    if display_filter:
        argv += ["-Y", display_filter]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=150)
    return [line.split("\t") for line in done.stdout.splitlines()]
