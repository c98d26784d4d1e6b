"""Environment of a trial: cheap facts that are equal on equal systems.

The agent runs the programs inside the host, so that the test-bed's interfaces and settings are described and not the machine's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.numbers import plural
from workers.hosts.processes import Agent

TCP_SYSCTLS = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
)
_SYSCTL_PATHS = {name: f"/proc/sys/{name.replace('.', '/')}" for name in TCP_SYSCTLS}
TCP_QUESTION = ["grep", "-Hs", ".", *_SYSCTL_PATHS.values()]
OFFLOADS = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "rx-checksumming",
    "tx-checksumming",
)

MOST_HOSTS = 4
"""Hosts that a sentence names."""
_OF_SPEED = {"cpu.model": "{}", "cpu.cores": "{} cores", "kernel": "kernel {}", "architecture": "{}"}
COALESCING = ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames")


def describe(
    agent: Agent,
    host: str | None,
    interface: str,
    program: Sequence[str],
    mpirun: str,
    variables: Mapping[str, str],
    *,
    of_interface: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the environment of a trial, JSON-able and sorted.

    `program` is the argv of a rank (empty: none), `mpirun` the launch command, `variables` the environment of both. `of_interface`:
    known answers to `questions_about` it.
    """
    questions = {**(questions_about(interface) if of_interface is None else {}), "tcp": TCP_QUESTION}
    answers = {**(of_interface or {}), **answers_to(questions, agent, host)}
    facts = {
        **agent.machine(program, mpirun, variables),
        "interface": interface_facts(interface, answers),
        "tcp": tcp_settings(answers["tcp"]),
        "variables": dict(variables),
    }
    firmware = _pairs(answers["driver"]).get("firmware-version", "N/A")
    if firmware != "N/A":
        facts["machine"]["firmware"][interface] = firmware
    return {name: facts[name] for name in sorted(facts)}


def answers_to(questions: Mapping[str, Sequence[str]], agent: Agent, host: str | None) -> dict[str, str]:
    """Return what the commands print on a host; they run in parallel."""
    return dict(zip(questions, agent.outputs(list(questions.values()), host), strict=True))


def differing_facts(first: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return another host's facts that differ, as nested; "none" if missing."""
    differing: dict[str, Any] = {}
    for name in sorted({*first, *other}):
        here, there = first.get(name), other.get(name)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            if inner := differing_facts(here, there):
                differing[name] = inner
        elif here != there:
            differing[name] = "none" if there is None else there
    return differing


def different_hosts(environment: Mapping[str, Any]) -> str:
    """Return how other hosts differ from the first one in speed, or ''.

    "kernel 6.6 on n2, n3 (first host: 6.1); 8 cores on n4 (first host: 16)".
    """
    parts = []
    for path, words in _OF_SPEED.items():
        hosts: dict[str, list[str]] = {}
        for host, facts in environment.get("other_hosts", {}).items():
            if (value := _at(facts, path)) is not None:
                hosts.setdefault(str(value), []).append(host)
        first = _at(environment, path)
        for value, names in hosts.items():
            others = f" and {plural(len(names) - MOST_HOSTS, 'other host')}" if len(names) > MOST_HOSTS else ""
            where = ", ".join(names[:MOST_HOSTS]) + others
            parts.append(f"{words.format(value)} on {where} (first host: {first})")
    return "; ".join(parts)


def _at(facts: Mapping[str, Any], path: str) -> Any:
    group, _, name = path.rpartition(".")
    return (facts.get(group, {}) if group else facts).get(name)


def questions_about(interface: str) -> dict[str, list[str]]:
    """Return the commands that describe an interface."""
    return {
        "driver": ["ethtool", "-i", interface],
        "features": ["ethtool", "-k", interface],
        "coalescing": ["ethtool", "-c", interface],
        "speed": ["ethtool", interface],
        "link": ["ip", "-details", "link", "show", "dev", interface],
        "queueing": ["tc", "qdisc", "show", "dev", interface],
    }


def interface_facts(interface: str, answers: Mapping[str, str]) -> dict[str, Any]:
    """Return driver, speed, MTU, queueing and offloads of the interface that MPI uses."""
    features = _pairs(answers["features"])
    limits = dict(re.findall(r"\b(mtu|gso_max_size|gro_max_size) ([0-9]{1,9})\b", answers["link"]))
    return {
        "name": interface,
        "speed": _pairs(answers["speed"]).get("Speed"),
        "coalescing": coalescing(answers["coalescing"]),
        "driver": _pairs(answers["driver"]).get("driver"),
        "queueing": queueing(answers["queueing"]),
        "offloads": {name: features[name].split()[0] for name in OFFLOADS if name in features},
        **{name: int(value) for name, value in limits.items()},
    }


def coalescing(text: str) -> dict[str, str]:
    """Return a card's interrupt delay and whether it adapts, from `ethtool -c`."""
    values = _pairs(text)
    # "Adaptive RX: on  TX: off" is one line; a card that adapts does not keep to the numbers below it.
    adaptive = dict(re.findall(r"\b([RT]X): *(\S+)", f"RX: {values.get('Adaptive RX', '')}"))
    switches = {f"adaptive-{name.lower()}": value for name, value in sorted(adaptive.items())}
    return {**switches, **{name: values[name] for name in COALESCING if name in values}}


def queueing(text: str) -> list[str]:
    """Return the disciplines of `tc qdisc show` without handles and reference counts."""
    # "qdisc tbf 8005: root refcnt 3 rate 1Gbit ...": the handle is a running number, the count is of no interest
    fields = [line.split() for line in text.splitlines()]
    return [" ".join(words[1:2] + words[6:] if "refcnt" in words else words[1:2] + words[3:]) for words in fields]


def tcp_settings(text: str) -> dict[str, str]:
    """Return the kernel's TCP settings on the host; missing ones are left out."""
    values = {path: value for path, _, value in (line.partition(":") for line in text.splitlines())}
    return {name: " ".join(values[path].split()) for name, path in _SYSCTL_PATHS.items() if path in values}


def _pairs(text: str) -> dict[str, str]:
    """Parse `name: value` lines."""
    lines = [line.partition(":") for line in text.splitlines()]
    return {name.strip(): value.strip() for name, _, value in lines if value.strip()}
