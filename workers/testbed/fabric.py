"""Network of the test-bed, built inside the agent in the namespaces of `unshare`.

One bridge is in the agent's own network namespace (the "hub"); each host is a network and a UTS namespace, joined by a veth
pair: `eth0` in the host, a port named like the host on the bridge. All of it belongs to the agent's mount namespace and ends
with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.agent import linux, spawn
from workers.testbed import commands, emulation, rsh_server
from workers.testbed.plan import Plan

NETWORKS = Path("/run/netns")
HOST_NAMES = Path("/run/uts")
STATE = Path("/run/rankwire")
REMOTE_SHELL = STATE / "rsh"  # mpirun calls `rsh HOST COMMAND...` and expects a shell at the other side, as with ssh
RSH_SOCKET = STATE / "rsh.socket"
COMMAND_LIMIT_S = 20.0
ATTACH_LIMIT_S = 10.0
SIOCSIFFLAGS = 0x8914  # linux/sockios.h
IFF_UP = 1
EMULATOR_PRIORITY = 5  # real time, if permitted: an emulator that waits for a busy rank adds an unrequested delay

__all__ = ["Built", "FabricError", "Plan", "build"]


class FabricError(Exception):
    """A command failed; the message has the command and its output."""


@dataclass(frozen=True)
class Built:
    """Finished network.

    Namespace inode to host, host to bridge port, pid to name of the emulators' processes, the kernel's settings (to detect
    changes), and facts for the trial's page.
    """

    networks: dict[int, str] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    missing_bytes: int = 0  # of each frame in the ports' byte counters
    emulators: dict[int, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def build(plan: Plan, relay: str) -> Built:
    """Build the network of a plan.

    `relay` is the relay's library, if the plan needs it. Raises FabricError or OSError; the caller ends the agent then.
    """
    _prepare_files(plan)
    _sysctls(commands.HUB_SYSCTLS)
    merging_limited = commands.supports_receive_limit()
    _batch("ip", commands.bridges(plan) + commands.taps(plan))
    emulators = _start_emulators(plan, relay)
    networks = {}
    for number, host in enumerate(plan.hosts, start=1):
        with _new_host(host):
            networks[(NETWORKS / host).stat().st_ino] = host
            _sysctls(commands.host_sysctls(plan))
        _batch("ip", commands.host_wire(plan, number))
        with _inside(host):
            _batch("ip", commands.host_interface(plan, number, merging_limited))
            _batch("tc", commands.host_shaping(plan, number))
            _run(commands.offloads_off(commands.HOST_INTERFACE, merging_limited))
    _batch("ip", commands.ports(plan, merging_limited))
    for interface in commands.hub_interfaces(plan):
        _run(commands.offloads_off(interface, merging_limited))
    _batch("tc", commands.hub_shaping(plan))
    for number, host in enumerate(plan.hosts, start=1):
        with _inside(host):
            _batch("ip", commands.neighbours(plan, number))
    if losing := commands.losing_interfaces(plan):
        _run(["nft", "-f", "-"], emulation.nft_loss(losing, plan.loss))
    on_taps = plan.relayed and plan.topology != "two sites"
    return Built(
        networks,
        ports={host: host for host in plan.hosts},
        missing_bytes=commands.ETHERNET_BYTES if merging_limited and not on_taps else 0,
        emulators=emulators,
        settings=settings(plan),
        facts={"receive_merging": _merging(merging_limited)},
    )


def switch_on_loopback() -> None:
    """Switch on the loopback interface of a new network namespace. Raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))


def settings(plan: Plan) -> dict[str, str]:
    """Return the kernel's present shaping and loss settings, by location."""
    outputs = {"hub": _run(["tc", "qdisc", "show"])}
    if plan.emulator == "nftables":
        outputs["loss"] = _run(["nft", "--stateless", "list", "ruleset"])
    for host in plan.hosts:
        with _inside(host):
            outputs[host] = _run(["tc", "qdisc", "show"])
    return outputs


def connections(plan: Plan) -> int:
    """Return the most TCP connections of a host, with closed ones that hold a port."""
    counts = []
    for host in plan.hosts or ("",):
        with _inside(host) if host else contextlib.nullcontext():
            words = Path("/proc/net/sockstat").read_text().partition("TCP:")[2].split()
        counts.append(int(words[words.index("inuse") + 1]) + int(words[words.index("tw") + 1]))
    return max(counts)


def _start_emulators(plan: Plan, relay: str) -> dict[int, str]:
    """Start the relay's processes; return when they hold both ends of each wire."""
    if not plan.relayed:
        return {}
    groups = commands.shared_out(commands.relayed_wires(plan), len(os.sched_getaffinity(0)))
    started = {_start_emulator(emulation.relay_argv(relay, group)): [wire[:2] for wire in group] for group in groups}
    for pid, joined in started.items():
        _await_attached(pid, {end for wire in joined for end in wire})
    return dict.fromkeys(started, plan.emulator)


def _start_emulator(argv: list[str]) -> int:
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    log = os.open(STATE / "emulators.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    pid = spawn.start(spawn.Order(argv, {"PATH": os.defpath}, "/", descriptors=[nothing, log, log]))
    os.close(nothing)
    os.close(log)
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(EMULATOR_PRIORITY))
    return pid


def _await_attached(pid: int, devices: set[str]) -> None:
    """Wait for the TAP devices in /proc/PID/fdinfo. Raises FabricError."""
    deadline = time.monotonic() + ATTACH_LIMIT_S
    while _attached(pid) < devices:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if ended or time.monotonic() > deadline:
            said = (STATE / "emulators.log").read_text(errors="replace").strip()
            raise FabricError(f"the network emulator does not start: {said or 'no output'}")
        time.sleep(0.005)


def _attached(pid: int) -> set[str]:
    names = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
            names |= {line.split()[1] for line in entry.read_text().splitlines() if line.startswith("iff:")}
    return names


def _merging(limited: bool) -> str:
    return "limited to single frames" if limited else "off"


def _prepare_files(plan: Plan) -> None:
    """Mount a private /run, and an /etc/hosts with the virtual hosts."""
    linux.mount("tmpfs", Path("/run"), "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=16m")
    # Whatever the umask: programs of a trial run as another user.
    for directory in (NETWORKS, HOST_NAMES, STATE):
        directory.mkdir(parents=True)
        directory.chmod(0o755)
    hosts = STATE / "hosts"
    hosts.write_text(commands.hosts_file(plan))
    hosts.chmod(0o644)
    linux.bind(hosts, Path("/etc/hosts"))
    REMOTE_SHELL.write_text(rsh_server.CLIENT.format(socket=RSH_SOCKET))
    REMOTE_SHELL.chmod(0o755)
    _name(NETWORKS / commands.HUB, "net")


def _name(path: Path, kind: str) -> None:
    """Give the current namespace a name, which also keeps it alive."""
    path.touch()
    linux.bind(Path(f"/proc/self/ns/{kind}"), path)


@contextlib.contextmanager
def _new_host(host: str) -> Iterator[None]:
    """Make a host and enter it for the body; then return to the hub."""
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


@contextlib.contextmanager
def _inside(host: str) -> Iterator[None]:
    """Enter a host's network for the body; then return to the hub."""
    linux.setns(NETWORKS / host, linux.CLONE_NEWNET)
    try:
        yield
    finally:
        linux.setns(NETWORKS / commands.HUB, linux.CLONE_NEWNET)


def _sysctls(settings: dict[str, str]) -> None:
    """Set the sysctls that exist: a kernel may lack IPv6."""
    for name, value in settings.items():
        path = Path("/proc/sys", *name.split("."))
        if not path.exists():
            continue
        try:
            path.write_text(value)
        except OSError as error:
            raise FabricError(f"{name} cannot be set to {value}: {error.strerror}") from error


def _batch(program: str, lines: list[str]) -> None:
    if lines:
        _run([program, "-batch", "-"], "\n".join(lines) + "\n")


def _run(argv: list[str], text: str = "") -> str:
    result = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False)
    if result.returncode != 0:
        raise FabricError(f"{' '.join(argv)}: {(result.stderr or result.stdout).strip()} [{text.strip()}]")
    return result.stdout
