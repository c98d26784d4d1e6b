"""A bridge that a killed test run left is removed by the next one; that of a living run stays."""

from __future__ import annotations

import json
import os
import subprocess

import psutil
import pytest

from tests.workers.machines.machines import ip, remove_old_switches


def bridges() -> set[str]:
    listed = subprocess.run(["ip", "-json", "link", "show", "type", "bridge"], check=True, capture_output=True)
    return {link["ifname"] for link in json.loads(listed.stdout or "[]") if "ifname" in link}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes bridges of the machine")
def test_old_switches_are_removed() -> None:
    used = {pid % 100_000 for pid in psutil.pids()}
    dead = next(number for number in range(99_999, 0, -1) if number not in used)
    left, own = f"rw{dead}sw", f"rw{os.getpid() % 100_000}sw"
    for name in (left, own):
        ip("link", "add", name, "type", "bridge")
    try:
        remove_old_switches()
        assert left not in bridges()
        assert own in bridges()
    finally:
        ip("link", "delete", own)
