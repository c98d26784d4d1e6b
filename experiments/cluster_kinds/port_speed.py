"""How fast the network cards of a trial's hosts are, out of the description of its environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_NO_CARDS: Final = frozenset({"veth", "bridge", "tun", "dummy"})
"""Drivers of interfaces without a card: the kernel tells a speed of them that nothing keeps to."""


def port_speed_bps(environment: Mapping[str, Any]) -> float | None:
    """Return the slowest of the hosts' ports in bit/s, as ethtool told it of each; None where one of them is not known.

    ``other_hosts`` of an environment holds only what is different on other hosts than the first.
    """
    first = environment.get("interface") or {}
    others = [host.get("interface") or {} for host in (environment.get("other_hosts") or {}).values()]
    speeds = [_speed_bps({**first, **other}) for other in ({}, *others)]
    known = [speed for speed in speeds if speed is not None]
    return min(known) if len(known) == len(speeds) else None


def _speed_bps(interface: Mapping[str, Any]) -> float | None:
    """ethtool's words: ``10000Mb/s``; ``Unknown!`` of most virtual cards."""
    match = re.fullmatch(r"(\d+)Mb/s", str(interface.get("speed")))
    return 1e6 * int(match[1]) if match and interface.get("driver") not in _NO_CARDS else None
