"""Permitted addresses of webhooks: public ones, and networks of the settings."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

_Address = IPv4Address | IPv6Address
_NAT64: Final = ip_network("64:ff9b::/96")
_UNICAST: Final = {4: ip_network("0.0.0.0/0"), 6: ip_network("2000::/3")}
"""Global unicast addresses; everything else of IPv6 is refused (RFC 4291, 2.4)."""
_SPECIAL: Final = tuple(
    map(
        ip_network,
        (
            # IANA IPv4 Special-Purpose Address Registry, as of October 2024
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
            *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4"),
            "224.0.0.0/4",  # multicast has a registry of its own
            # IANA IPv6 Special-Purpose Address Registry, as of October 2024, as far as it is global unicast
            *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
            "168.63.129.16/32",  # Azure answers its own guests there
        ),
    )
)
"""Networks that no receiver is in, whether the registries call them globally reachable or not."""
_METADATA: Final = tuple(map(ip_network, ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128", "168.63.129.16/32")))
"""Networks in which clouds answer their own guests, with keys among others: no message advises to allow them."""
_ADVICE: Final = " Administrators can allow its network in the setting RANKWIRE_WEBHOOK_NETWORKS."
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
    if parts.netloc and parts.scheme not in ("", "http", "https"):
        raise Refused("Only addresses of http and https are possible.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused("Not an address: write it as https://example.org/path.")
    if parts.username is not None or parts.password is not None:
        raise Refused("Remove the name and password from the address: the signature identifies the sender.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80), path


def refuse_private(host: str, allowed: Iterable[Any] = ()) -> None:
    """Raise Refused if ``host`` is an IP address that is not permitted.

    Names are judged when they are contacted: their addresses change, except those of localhost (RFC 6761, 6.3).
    """
    is_loopback = f".{host.lower().rstrip('.')}".endswith(".localhost")
    try:
        address = ip_address("127.0.0.1" if is_loopback else host.partition("%")[0])
    except ValueError:
        return
    if not is_allowed(address, allowed):
        raise _not_public(host, address)


def reachable(host: str, port: int, allowed: Iterable[Any]) -> str:
    """Resolve ``host`` once and return an address to connect to.

    ``allowed`` are networks besides public ones. Raise Refused if one of the addresses is not permitted, OSError without any.
    """
    allowed = list(allowed)
    addresses = [row[4][0] for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses:
        target = ip_address(str(address).partition("%")[0])
        if not is_allowed(target, allowed):
            raise _not_public(host if address == host else f"{host} is {address}, which", target)
    return str(addresses[0])


def is_allowed(address: _Address, allowed: Iterable[Any] = ()) -> bool:
    """Return whether ``address``, and one in it, are public or in ``allowed``."""
    return all(_is_public(target) or any(target in network for network in allowed) for target in _meant(address))


def _not_public(subject: str, address: _Address) -> Refused:
    is_metadata = any(target in network for target in _meant(address) for network in _METADATA)
    return Refused(f"{subject} is not a public address.{'' if is_metadata else _ADVICE}")


def _is_public(address: _Address) -> bool:
    return address in _UNICAST[address.version] and not any(address in network for network in _SPECIAL)


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
