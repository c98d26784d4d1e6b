"""Checks of hosts: Python, launch command, offloads, link, disk space, clocks."""

from __future__ import annotations

import dataclasses
import re
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from analysis.numbers import amount, plural
from experiments.cluster_kinds.port_speed import port_speed_bps
from experiments.cluster_kinds.settings import MPIRUN
from workers.cluster_check.step import Step, ok, problem, skipped, warning, with_sudo
from workers.hosts.remote_agent import RemoteAgent
from workers.launchers import Session
from workers.launchers.job import Launch
from workers.launchers.remote import RemoteSession

OLDEST_PYTHON: Final = (3, 9)
LITTLE_BYTES, TOO_LITTLE_BYTES = 1 << 30, 100 << 20
CLOCK_LIMIT_S: Final = 0.005
PATH_MTU: Final = "Path MTU"
EQUAL_HOSTS: Final = "Equal hosts"
_SHOWN_FACTS: Final = 5
"""Of each host that differs."""
_SMALLEST_MTU: Final = 576  # every host must accept it (RFC 1122, 3.3.3)
_PING_HEADERS: Final = 28  # of IPv4 and ICMP
_QUESTIONS: Final = 8
"""Of which the fastest answer counts."""
_JOINING: Final = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}
Interfaces = Mapping[str, Mapping[str, Any]]
"""Facts of `workers.hosts.environment.interface_facts` by host."""


def python(versions: Mapping[str, str]) -> Step:
    """Check the version of Python of every reachable host; '' means none."""
    name = "Python"
    wrong = {host: version or "none" for host, version in versions.items() if _numbers(version) < OLDEST_PYTHON}
    if wrong:
        versions_in_words = ", ".join(f"{host}: {version}" for host, version in wrong.items())
        return problem(
            name,
            f"Missing on {', '.join(wrong)}",
            f"Python 3.9 or newer is needed; found {versions_in_words}.",
            "Install it on these hosts, or name its path under “Python”.",
            "sudo apt install python3",
            at=with_sudo(wrong),
        )
    return ok(name, ", ".join(sorted(set(versions.values()))), f"On {', '.join(versions)}.")


def launch_command(session: Session, launch: Launch) -> Step:
    """Check that every host has the launch command and so the library's daemons.

    A launcher of the batch system is needed on the first host alone.
    """
    name, program = "Launch command", launch.program
    needing = session.hosts if launch.launcher == MPIRUN else session.hosts[:1]
    without = [
        host
        for host, agent in session.remote_agents.items()
        if host in needing
        and agent.ask("find", program=program, path=agent.search_path(), directory="/")[0]["found"] is None
    ]
    if not session.remote_agents and session.missing(program, Path("/")):
        without = ["this machine"]
    if without:
        return problem(
            name,
            f"Missing on {plural(len(without), 'host')}",
            f"{program} is not in the PATH of the login on {', '.join(without)}, or may not be executed.",
            "Install the MPI library there, or write the full path under “Launch command”, or its PATH under “Environment”.",
            *(("sudo apt install openmpi-bin",) if launch.launcher == MPIRUN else ()),
            at=with_sudo(without),
        )
    version = session.version(program) if isinstance(session, RemoteSession) else None
    return ok(name, Path(program).name, f"{version}." if version else "")


def equal_hosts(session: Session, environment: Mapping[str, Any]) -> Step:
    """Check that the hosts are equal, but for interfaces, which have other steps.

    Equal hosts have different amounts of memory: firmware keeps some of it.
    """
    if len(session.remote_agents) < 2:
        return skipped(EQUAL_HOSTS, "One machine: nothing to compare.")
    compared = {
        host: {name: value for name, value in facts.items() if name not in ("interface", "variables", "memory_bytes")}
        for host, facts in (environment.get("other_hosts") or {}).items()
    }
    unlike = {host: [f"{name} {value}" for name, value in _flat(facts)] for host, facts in compared.items() if facts}
    if not unlike:
        return ok(EQUAL_HOSTS, "Yes", f"Processor, kernel, MPI and settings of {', '.join(session.hosts)} are equal.")
    seen = "; ".join(f"{host}: {', '.join(words[:_SHOWN_FACTS])}" for host, words in unlike.items())
    return warning(
        EQUAL_HOSTS,
        f"{', '.join(unlike)} differ from {session.hosts[0]}" if len(unlike) > 1 else f"{next(iter(unlike))} differs",
        f"Unlike {session.hosts[0]}: {seen}. The slowest host decides how long ranks wait for each other.",
        "Measure on equal hosts: choose a partition or queue that has only one kind, or list fewer hosts.",
    )


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield facts by dotted names."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def interfaces(session: Session, environment: Mapping[str, Any]) -> Interfaces:
    """Return the facts of each host's interface, as trials store them."""
    first = environment.get("interface") or {}
    others = environment.get("other_hosts") or {}
    return {host: {**first, **(others.get(host, {}).get("interface") or {})} for host in session.hosts}


def offloads(interfaces: Interfaces, refused: Mapping[str, str]) -> Step:
    """Check whether cards join packets before capture; ``refused``: by host."""
    name = "Offloads"
    if _is_loopback(interfaces):
        return skipped(name, "One host: nothing goes over a wire.")
    on = {host: names for host, facts in interfaces.items() if (names := _joined_by(facts))}
    facts = {"offloads": ", ".join(dict.fromkeys(name for names in on.values() for name in names)) or "off"}
    return dataclasses.replace(_judged_offloads(interfaces, on, refused), facts=facts)


def _judged_offloads(interfaces: Interfaces, on: Mapping[str, Sequence[str]], refused: Mapping[str, str]) -> Step:
    name = "Offloads"
    if not on:
        return ok(name, "Off", "Captures hold the frames of the wire.")
    device = next(iter(interfaces.values())).get("name", "eth0")
    names = [short for short in _JOINING.values() if any(short in offload_names for offload_names in on.values())]
    seen = (
        "The cards join packets before the capture sees them, up to 64 KiB each. Numbers of packets are then estimated, and "
        "times between single packets are missing."
    )
    command = f"sudo ethtool -K {device} {' '.join(f'{short} off' for short in names)}"
    if refused:
        refusals = "; ".join(f"on {host}: {reason}" for host, reason in refused.items())
        return warning(
            name,
            f"Cannot be switched off on {', '.join(refused)}",
            f"{seen} Switching it off was refused {refusals}.",
            "Allow the account that one program, and write for example “sudo -n ethtool” under “Offload command”.",
            command,
            at=with_sudo(refused),
        )
    return warning(
        name,
        f"On, {plural(len(on), 'host')}",
        seen,
        "Choose “off while trials run” under “Offloads”, or switch them off for good.",
        command,
        at=with_sudo(on),
    )


def link(interfaces: Interfaces) -> Step:
    """Check speed and MTU: with different MTUs large messages hang."""
    name = "Link"
    if _is_loopback(interfaces):
        return skipped(name, "One host: nothing goes over a wire.")
    sizes = {host: facts.get("mtu") for host, facts in interfaces.items()}
    speeds = {port_speed_bps({"interface": facts}) for facts in interfaces.values()}
    speed_words = (
        ", ".join(amount(speed, "bit/s") for speed in sorted(speed for speed in speeds if speed)) or "unknown speed"
    )
    device = next(iter(interfaces.values())).get("name", "")
    words = f"{device}: {speed_words}; MTU {', '.join(f'{host} {size} B' for host, size in sizes.items())}."
    known_speeds = [speed for speed in speeds if speed]
    facts = {"mtu": min(size for size in sizes.values() if size)} if any(sizes.values()) else {}
    if known_speeds and len(known_speeds) == len(speeds):
        facts["link_bandwidth_bps"] = min(known_speeds)
    return dataclasses.replace(_judged_link(sizes, speeds, speed_words, words), facts=facts)


def _judged_link(sizes: Mapping[str, Any], speeds: Collection[float | None], speed_words: str, words: str) -> Step:
    name = "Link"
    if len(set(sizes.values())) > 1:
        return warning(name, "MTU differs", words, "Give all hosts the same MTU, or large messages may hang.")
    if len(speeds) > 1:
        return warning(
            name, "Speed differs", words, "The slowest port limits: is a cable or a switch port worse than others?"
        )
    return ok(name, f"{speed_words}, {next(iter(sizes.values()))} B", words)


def path_mtu(session: Session, interfaces: Interfaces) -> Step:
    """Check that packets of the MTU pass from the first host to the second one whole."""
    if len(session.remote_agents) < 2:
        return skipped(PATH_MTU, "One machine: no network between its hosts.")
    first, second = session.hosts[:2]
    agent, mtu = session.remote_agents[first], interfaces[first].get("mtu") or 0
    address = agent.output(["getent", "ahostsv4", second]).split()[:1]
    if not address or not agent.output(["ping", "-V"]):
        return skipped(PATH_MTU, f"ping is not installed on {first}." if address else f"{second} has no IPv4 address.")

    def passes(size: int) -> bool:
        argv = ["ping", "-n", "-c", "1", "-W", "1", "-M", "do", "-s", str(size - _PING_HEADERS), *address]
        return "bytes from" in agent.output(argv)

    if passes(mtu) or passes(mtu):  # a single one may be lost
        return ok(PATH_MTU, f"{mtu} B", f"Packets of {mtu} B get from {first} to {second} in one piece.")
    low, high = _SMALLEST_MTU, mtu
    if not passes(low):
        return skipped(PATH_MTU, f"{second} does not answer pings of {first}.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    device = interfaces[first].get("name", "eth0")
    return warning(
        PATH_MTU,
        f"{low} B of {mtu} B",
        f"From {first} to {second} only packets up to {low} B get through, but the interface is set to {mtu} B. Large messages may hang.",
        "Fix the path (a switch, a tunnel, the other host's MTU), or set the smaller MTU.",
        f"sudo ip link set dev {device} mtu {low}",
        at=with_sudo(session.hosts),
    )


def disk(session: Session, scratch: str) -> Step:
    """Check the space for scratch files on hosts and for captures on this machine."""
    name = "Free disk"
    room = {f"{host}:{scratch}": _room(agent, scratch) for host, agent in session.remote_agents.items()}
    room["this machine"] = shutil.disk_usage(_existing(Path(settings.VAR))).free
    known_room = {fullest: free for fullest, free in room.items() if free is not None}
    words = "; ".join(f"{fullest} {amount(free, 'B')}" for fullest, free in known_room.items()) + "."
    least = min(known_room.values())
    fullest = min(known_room, key=lambda directory: known_room[directory])
    if least < LITTLE_BYTES:
        make = problem if least < TOO_LITTLE_BYTES else warning
        return make(
            name, f"{amount(least, 'B')} on {fullest}", words, "Make room there, or choose another “Scratch directory”."
        )
    return ok(name, f"{amount(least, 'B')} or more", words)


def clocks(session: Session) -> Step:
    """Check the offsets of the hosts' clocks, measured over the agents' connections."""
    name = "Clocks"
    if len(session.remote_agents) < 2:
        return skipped(name, "One clock: nothing to compare.")
    offsets = {host: _offset(agent) for host, agent in session.remote_agents.items()}
    unsure = max(error for _, error in offsets.values())
    middle = sorted(offset for offset, _ in offsets.values())[len(offsets) // 2]
    far = {host: offset - middle for host, (offset, _) in offsets.items()}
    words = ", ".join(
        f"{host} {amount(abs(offset), 's')} {'ahead' if offset > 0 else 'behind'}" for host, offset in far.items()
    )
    wrong = [host for host, offset in far.items() if abs(offset) > CLOCK_LIMIT_S + unsure]
    seen = f"Against the one in the middle, to {amount(unsure, 's')}: {words}."
    if wrong:
        return warning(
            name,
            f"{', '.join(wrong)}: up to {amount(max(abs(far[host]) for host in wrong), 's')} off",
            f"{seen} Recordings are joined by the frames that two hosts have both seen; times between hosts stay less certain.",
            "Synchronise these clocks with NTP, for example with chrony.",
            "sudo apt install chrony",
            at=with_sudo(wrong),
        )
    return ok(name, f"Within {amount(max(abs(offset) for offset in far.values()) + unsure, 's')}", seen)


def _joined_by(facts: Mapping[str, Any]) -> list[str]:
    """Return ethtool's names of active offloads that join frames.

    GRO that is limited to one frame joins none.
    """
    offloads, limit = facts.get("offloads") or {}, facts.get("gro_max_size")
    bounded = isinstance(limit, int) and limit <= (facts.get("mtu") or 0)
    on = [short for long, short in _JOINING.items() if offloads.get(long) == "on"]
    return [short for short in on if not (short == "gro" and bounded)]


def _is_loopback(interfaces: Interfaces) -> bool:
    return all(facts.get("name") == "lo" for facts in interfaces.values())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if re.fullmatch("[0-9]{1,9}", part))


def _existing(path: Path) -> Path:
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())


def _room(agent: RemoteAgent, path: str) -> int | None:
    """Return the free bytes of `df`; None without an answer."""
    words = agent.output(["df", "-Pk", path]).splitlines()[-1:]
    parts: Sequence[str] = words[0].split() if words else ()
    return 1024 * int(parts[3]) if len(parts) > 3 and re.fullmatch("[0-9]{1,15}", parts[3]) else None


def _offset(agent: RemoteAgent) -> tuple[float, float]:
    """Return the host's clock minus ours, and half the question's time, s."""
    answers = []
    for _ in range(_QUESTIONS):
        before, begun = time.time(), time.monotonic()
        there = agent.ask("clock")[0]["time_s"]
        took = time.monotonic() - begun
        answers.append((took / 2, there - before - took / 2))
    error, offset = min(answers)
    return offset, error
