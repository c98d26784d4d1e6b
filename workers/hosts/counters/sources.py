"""All sources, in the order in which a total is taken from them."""

from __future__ import annotations

from workers.hosts.counters.rapl import Rapl
from workers.hosts.counters.source import Source

SOURCES: tuple[type[Source], ...] = (Rapl,)
