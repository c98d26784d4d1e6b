"""The IP addresses of real hosts, asked on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from workers.hosts.remote_agent import RemoteKeeper

_ADDRESS: Final = re.compile(r"\binet6? ([0-9a-fA-F.:]+)/")


def addresses_of(keeper: RemoteKeeper) -> frozenset[str]:
    """All that the host has, the loopback's too."""
    return frozenset(_ADDRESS.findall(keeper.output(["ip", "-o", "address", "show"])))


def addresses_by_name(keepers: Iterable[RemoteKeeper]) -> Mapping[str, frozenset[str]]:
    """By what each host calls itself; hosts that call themselves alike are left out."""
    hosts = list(keepers)
    names = Counter(keeper.name for keeper in hosts)
    return {keeper.name: addresses_of(keeper) for keeper in hosts if names[keeper.name] == 1}
