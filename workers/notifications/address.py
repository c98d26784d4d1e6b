"""Permitted addresses of webhooks: public ones, and networks of the settings."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

_Address = IPv4Address | IPv6Address
_NAT64: Final = ip_network("64:ff9b::/96")
# In public networks, and reached by the guests of a cloud alone: Azure answers for its machines there.
_METADATA: Final = frozenset({ip_address("168.63.129.16")})
LONGEST: Final = 500


class Refused(ValueError):
    """A refused address; the message is a sentence for the user."""


def checked(url: str) -> tuple[str, str, int, str]:
    """Return (scheme, host, port, path with query) of a valid address. Raise Refused.

    `reachable` judges the target later, when it is contacted.
    """
    if len(url) > LONGEST or any(character <= " " or character > "~" for character in url):
        raise Refused(f"An address has at most {LONGEST} characters, no blanks, and only letters of ASCII.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused("Not an address: write it as https://example.org/path.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused("Not an address: write it as https://example.org/path.")
    if parts.username is not None or parts.password is not None:
        raise Refused("Remove the name and password from the address: the signature identifies the sender.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path


def reachable(host: str, port: int, allowed: Iterable[Any]) -> str:
    """Resolve ``host`` once and return an address to connect to.

    ``allowed`` are networks besides public ones. Raise Refused if one of the addresses is not permitted, OSError without any.
    """
    allowed = list(allowed)
    addresses = [row[4][0] for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        if not is_allowed(ip_address(str(address).partition("%")[0]), allowed):
            subject = host if address == host else f"{host} is {address}, which"
            raise Refused(
                f"{subject} is not a public address. An administrator can allow its network (RANKWIRE_WEBHOOK_NETWORKS)."
            )
    return str(addresses[0])


def is_allowed(address: _Address, allowed: Iterable[Any] = ()) -> bool:
    """Return whether ``address``, and one in it, are public or in ``allowed``."""
    return all(_is_public(target) or any(target in network for network in allowed) for target in _meant(address))


def _is_public(address: _Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved and address not in _METADATA


def _meant(address: _Address) -> list[_Address]:
    """Return the addresses that packets may end at: some of IPv6 carry one of IPv4."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    carried: list[_Address] = []
    if address.sixtofour is not None:
        carried.append(address.sixtofour)
    if address.teredo is not None:
        carried += address.teredo
    if address in _NAT64:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *carried]
