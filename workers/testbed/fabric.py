"""Building the network of the test-bed; runs inside the keeper, in the namespaces that `unshare` gave it.

One bridge stands in the keeper's own network namespace (the "hub"); each host is a network and a UTS namespace, joined
by a veth pair: `eth0` in the host, a port named like the host on the bridge. The whole lives in the keeper's mount
namespace and ends with it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.keeper import linux
from workers.testbed import commands
from workers.testbed.commands import Plan

NETWORKS = Path("/run/netns")
HOST_NAMES = Path("/run/uts")
STATE = Path("/run/rankwire")
TEMPORARY = STATE / "tmp"
REMOTE_SHELL = STATE / "rsh"
COMMAND_LIMIT_S = 20.0

# mpirun calls `rsh HOST COMMAND...` and expects a shell at the other side, as with ssh.
REMOTE_SHELL_SCRIPT = f"""#!/bin/sh
host=$1
shift
exec nsenter --net={NETWORKS}/$host --uts={HOST_NAMES}/$host -- sh -c "$*"
"""

__all__ = ["Built", "FabricError", "Plan", "build"]


class FabricError(Exception):
    """A command of the set-up failed; the message has the command and what it said."""


@dataclass(frozen=True)
class Built:
    """The finished network: namespace inode -> host, host -> bridge port, and facts for the trial's page."""

    networks: dict[int, str] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    missing_bytes: int = 0  # of each frame in the ports' byte counters
    facts: dict[str, Any] = field(default_factory=dict)


def build(plan: Plan) -> Built:
    """Mount, name, connect, shape. Raises FabricError or OSError; the caller ends the keeper then."""
    _prepare_files(plan)
    _sysctls(commands.HUB_SYSCTLS)
    _batch("ip", commands.bridge(plan))
    networks = {}
    merging_limited = commands.supports_receive_limit()
    for number, host in enumerate(plan.hosts, start=1):
        with _new_host(host):
            networks[(NETWORKS / host).stat().st_ino] = host
            _sysctls(commands.HOST_SYSCTLS)
            _batch("ip", commands.host_interfaces(plan, number, merging_limited))
            _batch("tc", commands.shaping(plan))
            _run(commands.offloads_off(commands.HOST_INTERFACE, merging_limited))
    _batch("ip", commands.ports(plan, merging_limited))
    for host in plan.hosts:
        _run(commands.offloads_off(host, merging_limited))
    return Built(
        networks,
        ports={host: host for host in plan.hosts},
        missing_bytes=commands.ETHERNET_BYTES if merging_limited else 0,
        facts={"receive_merging": _merging(merging_limited)},
    )


def _merging(limited: bool) -> str:
    return "limited to single frames" if limited else "off"


def _prepare_files(plan: Plan) -> None:
    """A private /run (namespace names, temporary files) and an /etc/hosts that knows the virtual hosts."""
    linux.mount("tmpfs", Path("/run"), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1g")
    for directory in (NETWORKS, HOST_NAMES, STATE, TEMPORARY):
        directory.mkdir(parents=True)
    hosts = STATE / "hosts"
    hosts.write_text(commands.hosts_file(plan))
    linux.bind(hosts, Path("/etc/hosts"))
    REMOTE_SHELL.write_text(REMOTE_SHELL_SCRIPT)
    REMOTE_SHELL.chmod(0o755)
    _name(NETWORKS / commands.HUB, "net")


def _name(path: Path, kind: str) -> None:
    """Give the namespace we are in a name, which also keeps it alive."""
    path.touch()
    linux.bind(Path(f"/proc/self/ns/{kind}"), path)


@contextlib.contextmanager
def _new_host(host: str) -> Iterator[None]:
    """Make a host and be in it for the body; then return to the hub."""
    home = os.open("/proc/self/ns/uts", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWUTS)
        socket.sethostname(host)
        _name(NETWORKS / host, "net")
        _name(HOST_NAMES / host, "uts")
        yield
    finally:
        linux.setns(NETWORKS / commands.HUB, linux.CLONE_NEWNET)
        linux.setns(Path(f"/proc/self/fd/{home}"), linux.CLONE_NEWUTS)
        os.close(home)


def _sysctls(settings: dict[str, str]) -> None:
    """Set what exists: a kernel without IPv6 needs no IPv6 switched off."""
    for name, value in settings.items():
        path = Path("/proc/sys", *name.split("."))
        if path.exists():
            path.write_text(value)


def _batch(program: str, lines: list[str]) -> None:
    if lines:
        _run([program, "-batch", "-"], "\n".join(lines) + "\n")


def _run(argv: list[str], text: str = "") -> None:
    result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    if result.returncode != 0:
        raise FabricError(f"{' '.join(argv)}: {(result.stderr or result.stdout).strip()} [{text.strip()}]")
