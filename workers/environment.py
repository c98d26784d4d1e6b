"""What a trial ran on and with, as far as it is cheap to know: stable on one system, so that equal means equal.

Everything that needs a program is asked inside the host (through the keeper), so that the test-bed's interfaces and
settings are described and not the machine's.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.processes import QUESTION_LIMIT_S, Keeper
from workers.testbed.probe import find_program

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


def describe(
    keeper: Keeper, host: str | None, interface: str, program: Path | None, variables: Mapping[str, str]
) -> dict[str, Any]:
    """The environment of a trial as a JSON-able dict with sorted keys; nothing in it changes while nothing changes."""
    facts = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "cpu": processor(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "mpi": mpi_version(find_program("mpirun")),
        "interface": interface_facts(keeper, host, interface),
        "tcp": tcp_settings(keeper, host),
        "variables": dict(variables),
        "program": None if program is None else program_facts(program),
    }
    return {name: facts[name] for name in sorted(facts)}


def processor() -> dict[str, Any]:
    """Model, cores this process may use, and the frequency governor where there is one."""
    models = [line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    governor = _lines(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    return {
        "model": models[0] if models else platform.processor() or "unknown",
        "cores": len(os.sched_getaffinity(0)),
        "governor": governor[0] if governor else None,
    }


def interface_facts(keeper: Keeper, host: str | None, interface: str) -> dict[str, Any]:
    """Driver, MTU, queueing and offloads of the interface that MPI uses, as seen on the host."""
    driver = _pairs(ask(keeper, host, "ethtool", "-i", interface))
    features = _pairs(ask(keeper, host, "ethtool", "-k", interface))
    link = ask(keeper, host, "ip", "-details", "link", "show", "dev", interface).split()
    limits = {name: link[link.index(name) + 1] for name in ("mtu", "gso_max_size", "gro_max_size") if name in link}
    return {
        "name": interface,
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


def program_facts(program: Path) -> dict[str, str | None]:
    """Where the measured program lies, what exactly it is, and the package it came with."""
    found = find_program(str(program))
    if found is None:
        return {"path": str(program), "sha256": None, "package": None}
    path = Path(found).resolve()
    status = path.stat()
    return {
        "path": str(path),
        "sha256": _digest(path, status.st_mtime_ns, status.st_size),
        "package": _package(path, status.st_mtime_ns),
    }


def mpi_version(mpirun: str | None) -> str | None:
    """The first line of `mpirun --version`."""
    return None if mpirun is None else _mpi_version(mpirun, Path(mpirun).stat().st_mtime_ns)


def ask(keeper: Keeper, host: str | None, program: str, *arguments: str) -> str:
    """Standard output of a small program run on the host; empty when it is not there."""
    return keeper.output([find_program(program) or program, *arguments], host)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, _changed_ns: int, _size: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@functools.lru_cache(maxsize=64)
def _package(path: Path, _changed_ns: int) -> str | None:
    """`name version` from dpkg, None where the file belongs to no package."""
    # Packages from before the merge of /bin into /usr/bin list the old name.
    names = [str(path), str(path).removeprefix("/usr")]
    owner = next(
        (found.partition(":")[0] for name in names if (found := _output("dpkg-query", "--search", name))), None
    )
    if owner is None:
        return None
    return _output("dpkg-query", "--show", "--showformat=${Package} ${Version}", owner) or None


@functools.lru_cache(maxsize=8)
def _mpi_version(mpirun: str, _changed_ns: int) -> str | None:
    return next(iter(_output(mpirun, "--version").splitlines()), None)


def _output(*argv: str) -> str:
    """Standard output of a program on the worker's machine; empty when it fails."""
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=QUESTION_LIMIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _pairs(text: str) -> dict[str, str]:
    """`name: value` lines as a dict."""
    lines = [line.partition(":") for line in text.splitlines()]
    return {name.strip(): value.strip() for name, _, value in lines if value.strip()}
