"""What a trial ran on and with, as far as it is cheap to know: stable on one system, so that equal means equal.

Everything that needs a program is asked inside the host (through the keeper), so that the test-bed's interfaces and
settings are described and not the machine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.processes import Keeper
from workers.testbed.probe import find_program, search_path

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
OFFLOADS = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "rx-checksumming",
    "tx-checksumming",
)

COALESCING = ("rx-usecs", "rx-frames", "tx-usecs", "tx-frames")  # how long a card waits before it interrupts


def describe(
    keeper: Keeper, host: str | None, interface: str, program: Path | None, variables: Mapping[str, str]
) -> dict[str, Any]:
    """The environment of a trial as a JSON-able dict with sorted keys; nothing in it changes while nothing changes."""
    facts = {
        **keeper.machine(program, search_path()),
        "interface": interface_facts(keeper, host, interface),
        "tcp": tcp_settings(keeper, host),
        "variables": dict(variables),
    }
    return {name: facts[name] for name in sorted(facts)}


def interface_facts(keeper: Keeper, host: str | None, interface: str) -> dict[str, Any]:
    """Driver, MTU, queueing and offloads of the interface that MPI uses, as seen on the host."""
    driver = _pairs(ask(keeper, host, "ethtool", "-i", interface))
    features = _pairs(ask(keeper, host, "ethtool", "-k", interface))
    coalescing = _pairs(ask(keeper, host, "ethtool", "-c", interface))
    link = ask(keeper, host, "ip", "-details", "link", "show", "dev", interface).split()
    limits = {name: link[link.index(name) + 1] for name in ("mtu", "gso_max_size", "gro_max_size") if name in link}
    return {
        "name": interface,
        "speed": _pairs(ask(keeper, host, "ethtool", interface)).get("Speed"),
        "coalescing": {name: coalescing[name] for name in COALESCING if name in coalescing},
        "driver": driver.get("driver"),
        "queueing": _queueing(keeper, host, interface),
        "offloads": {name: features[name].split()[0] for name in OFFLOADS if name in features},
        **{name: int(value) for name, value in limits.items()},
    }


def _queueing(keeper: Keeper, host: str | None, interface: str) -> list[str]:
    lines = ask(keeper, host, "tc", "qdisc", "show", "dev", interface).splitlines()
    # "qdisc tbf 8005: root refcnt 3 rate 1Gbit ...": the handle is a running number, the count is of no interest
    fields = [line.split() for line in lines]
    return [" ".join(words[1:2] + words[6:] if "refcnt" in words else words[1:2] + words[3:]) for words in fields]


def tcp_settings(keeper: Keeper, host: str | None) -> dict[str, str]:
    """The kernel's TCP settings on the host; those it does not have are left out."""
    paths = ["/proc/sys/" + name.replace(".", "/") for name in TCP_SYSCTLS]
    lines = ask(keeper, host, "grep", "-Hs", ".", *paths).splitlines()
    values = dict(line.split(":", 1) for line in lines)
    return {
        name: " ".join(values[path].split()) for name, path in zip(TCP_SYSCTLS, paths, strict=True) if path in values
    }


def ask(keeper: Keeper, host: str | None, program: str, *arguments: str) -> str:
    """Standard output of a small program run on the host; empty when it is not there."""
    return keeper.output([find_program(program) or program, *arguments], host)


def _pairs(text: str) -> dict[str, str]:
    """`name: value` lines as a dict."""
    lines = [line.partition(":") for line in text.splitlines()]
    return {name.strip(): value.strip() for name, _, value in lines if value.strip()}
