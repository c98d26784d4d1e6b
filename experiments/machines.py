"""Which machine is which: what a trial leases, so that one machine is never taken under two names.

This machine is known by the identity that its kernel draws at boot: containers share it, as they share the processors.
Another machine is known by the name in the settings and by the addresses that the name has here.
"""

from __future__ import annotations

import functools
import ipaddress
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import psutil

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
REMEMBERED_S: Final = 60.0
"""How long an address is taken for what the name service said; every waiting trial asks for it again."""

_remembered: dict[str, tuple[float, frozenset[str]]] = {}


def this_machine() -> frozenset[str]:
    """What a trial on this machine leases: its identity, and the name under which another worker may reach it with ssh."""
    return frozenset({f"machine:{_boot_id()}", _named(socket.gethostname())})


def hosts(names: Iterable[str]) -> frozenset[str]:
    """What a trial on these ssh hosts leases: names and addresses, and this machine where one of them means it."""
    found: set[str] = set()
    own = _own_addresses()
    for name in names:
        addresses = addresses_of(name)
        loopback = {address for address in addresses if ipaddress.ip_address(address).is_loopback}
        found |= {_named(name), *(f"address:{address}" for address in addresses - loopback)}
        if loopback or addresses & own:
            found |= this_machine()
    return frozenset(found)


def addresses_of(name: str) -> frozenset[str]:
    """The IP addresses of a host; none when the name is known to ssh alone, or to nobody at the moment."""
    name = _one_spelling(name)
    asked, known = _remembered.get(name, (-REMEMBERED_S, frozenset()))
    if time.monotonic() - asked < REMEMBERED_S:
        return known
    try:
        told = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        told = []
    found = frozenset(_plain(str(address[0])) for *_, address in told)
    _remembered[name] = (time.monotonic(), found)
    return found


def _named(host: str) -> str:
    return f"host:{_one_spelling(host)}"


def _one_spelling(host: str) -> str:
    return host.lower().rstrip(".")


def _plain(address: str) -> str:
    """Without the interface of a link-local address: fe80::1%eth0."""
    return address.partition("%")[0]


def _own_addresses() -> frozenset[str]:
    families = (socket.AF_INET, socket.AF_INET6)
    interfaces = psutil.net_if_addrs().values()
    return frozenset(_plain(own.address) for each in interfaces for own in each if own.family in families)


@functools.cache
def _boot_id() -> str:
    return BOOT_ID.read_text().strip()
