"""Speed of the network cards of a trial's hosts, from its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_NO_CARDS: Final = frozenset({"veth", "bridge", "tun", "dummy"})
"""Drivers of interfaces without a card: the kernel reports a nominal speed of them."""


def port_speed_bps(environment: Mapping[str, Any]) -> float | None:
    """Return the slowest of the hosts' ports in bit/s; None if one is not known.

    ``other_hosts`` of an environment holds only what differs from the first host.
    """
    first = environment.get("interface") or {}
    others = [host.get("interface") or {} for host in (environment.get("other_hosts") or {}).values()]
    speeds = [_speed_bps({**first, **other}) for other in ({}, *others)]
    measured = [speed for speed in speeds if speed is not None]
    return min(measured) if len(measured) == len(speeds) else None


def _speed_bps(interface: Mapping[str, Any]) -> float | None:
    """Return the speed that ethtool reports: ``10000Mb/s``, or ``Unknown!``."""
    match = re.fullmatch(r"(\d+)Mb/s", str(interface.get("speed")))
    return 1e6 * int(match[1]) if match and interface.get("driver") not in _NO_CARDS else None
