"""Identity of machines: trials lease one machine once, whatever its names are.

This machine is known by the identity that its kernel draws at boot: containers share it, as they share the processors.
Another machine is known by the name in the settings and by the addresses that the name has here.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

from experiments.cluster_kinds.hosts import one_spelling

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
REMEMBERED_S: Final = 60.0
"""Lifetime of a looked-up address; every waiting trial asks for it again."""

LOOK_UP_LIMIT_S: Final = 2.0

_remembered: dict[str, tuple[float, frozenset[str]]] = {}


def this_machine() -> frozenset[str]:
    """Return the leases of a trial on this machine: its identity and its ssh name."""
    return frozenset({f"machine:{_boot_id()}", _named(socket.gethostname())})


def hosts(names: Iterable[str]) -> frozenset[str]:
    """Return the leases of a trial on ssh hosts, one of which may be this machine."""
    names = list(names)
    addresses = addresses_of(*names)
    loopback = {address for address in addresses if ipaddress.ip_address(address).is_loopback}
    resources = {*(_named(name) for name in names), *(f"address:{address}" for address in addresses - loopback)}
    return frozenset(resources | this_machine() if loopback or addresses & _own_addresses() else resources)


def addresses_of(*names: str) -> frozenset[str]:
    """Return the IP addresses of hosts; none of a name that cannot be resolved now.

    All are looked up at once and for ``LOOK_UP_LIMIT_S`` at most: the claim of a trial holds its row meanwhile, and a page waits.
    """
    spelled = {one_spelling(name) for name in names}
    threads = [threading.Thread(target=_look_up, args=(name,), daemon=True) for name in spelled if _is_stale(name)]
    deadline = time.monotonic() + LOOK_UP_LIMIT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0.0))
    for name in filter(_is_stale, spelled):  # an answer that arrives later counts from then on
        _remembered[name] = (time.monotonic(), frozenset())
    return frozenset().union(*(_remembered[name][1] for name in spelled))


def _is_stale(name: str) -> bool:
    return time.monotonic() - _remembered.get(name, (float("-inf"),))[0] >= REMEMBERED_S


def _look_up(name: str) -> None:
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        answers = []
    _remembered[name] = (time.monotonic(), frozenset(_plain(str(address[0])) for *_, address in answers))


def _named(host: str) -> str:
    return f"host:{one_spelling(host)}"


def _plain(address: str) -> str:
    return address.partition("%")[0]


def _own_addresses() -> frozenset[str]:
    families = (socket.AF_INET, socket.AF_INET6)
    interfaces = psutil.net_if_addrs().values()
    return frozenset(
        _plain(entry.address) for interface in interfaces for entry in interface if entry.family in families
    )


@functools.cache
def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
