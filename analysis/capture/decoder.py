"""Frames to packet tables; what must be remembered between chunks (hosts, flows) lives here."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.capture.block import Block
from analysis.capture.formats import Buffer
from analysis.capture.greetings import Greetings
from analysis.kernels import decode as kernel
from analysis.kernels import endpoints
from analysis.packets import PacketTable

MOST_HOSTS: Final = 1 << 20
"""Later addresses are NO_HOST, and a sketch tells about how many there were."""
MOST_FLOWS: Final = 1 << 21
"""Later flows keep NO_FLOW and are counted: a port scan must not take all memory."""
_FIRST_SLOTS, _MANY_SLOTS = 1 << 12, 1 << 20
"""Up to so many there are four times as many at once, then twice as many: what a hash has scattered is memory."""
_NEVER: Final = 1 << 62


class Decoder:
    """Decodes chunk after chunk; indices of hosts and flows stay the same over all of them."""

    def __init__(self) -> None:
        self._tables = np.zeros(1, endpoints.TABLES)
        self._handshakes = np.empty((1024, 3), np.int64)
        self._greetings = Greetings()
        self._host_slots = np.zeros(_FIRST_SLOTS, endpoints.SLOT)
        self._hosts = np.empty(min(_FIRST_SLOTS // 2, MOST_HOSTS), endpoints.HOST)
        self._flow_slots = np.zeros(_FIRST_SLOTS, endpoints.SLOT)
        self._flows = np.empty(min(_FIRST_SLOTS // 2, MOST_FLOWS), endpoints.FLOW)
        self._distinct = np.zeros((2, endpoints.DISTINCT_ROOM), endpoints.DISTINCT)
        self._tables["distinct"] = self._distinct.ctypes.data
        self._filter: npt.NDArray[np.void] | None = None
        self._recent = np.zeros(endpoints.RECENT_ROOM, endpoints.RECENT)
        self._tables["recent"] = self._recent.ctypes.data
        self._tell_addresses()

    def _tell_addresses(self) -> None:
        # A packet has two new hosts at most, and one new flow
        for name, slots, array, most, new in (
            ("host", self._host_slots, self._hosts, MOST_HOSTS, 2),
            ("flow", self._flow_slots, self._flows, MOST_FLOWS, 1),
        ):
            room = min(len(slots) // 2, most)
            self._tables[f"{name}_slots"], self._tables[f"{name}_list"] = slots.ctypes.data, array.ctypes.data
            self._tables[f"{name}_slot_count"], self._tables[f"{name}_room"] = len(slots), room
            self._tables[f"{name}_stop"] = room - new + 1 if room < most else _NEVER

    def _count(self, name: str) -> int:
        return int(self._tables[name][0])

    def _enlarge_hosts(self) -> None:
        self._hosts = _reserved(self._hosts, MOST_HOSTS)
        _enlarge(self._host_slots, MOST_HOSTS)
        self._tell_addresses()
        endpoints.reenter_hosts(self._tables.ctypes.data)

    def _enlarge_flows(self) -> None:
        self._flows = _reserved(self._flows, MOST_FLOWS)
        _enlarge(self._flow_slots, MOST_FLOWS)
        self._tell_addresses()
        endpoints.reenter_flows(self._tables.ctypes.data)

    def filter_flows(self) -> None:
        """Let flows that are not in the table be told by one look at a small filter; for a table that stays as it is."""
        self._filter = np.zeros(endpoints.FILTER_ROOM, endpoints.FILTER)
        self._tables["filter"] = self._filter.ctypes.data
        endpoints.fill_filter(self._tables.ctypes.data)

    def room(self) -> tuple[npt.NDArray[np.int64], int, int]:
        """What the kernels write to, with room for what one packet may bring: handshakes, address of the tables, flows to stop at."""
        if self._count("handshakes") == len(self._handshakes):
            self._handshakes = np.concatenate([self._handshakes, np.empty_like(self._handshakes)])
        if self._count("hosts") >= self._count("host_stop"):
            self._enlarge_hosts()
        if self._count("flows") >= self._count("flow_stop"):
            self._enlarge_flows()
        elif self._count("flows") == MOST_FLOWS and self._filter is None:
            self.filter_flows()
        return self._handshakes, self._tables.ctypes.data, self._count("flow_stop")

    def decode(self, data: Buffer, block: Block, first: int, last: int) -> None:
        """Decode rows ``first`` to ``last`` of the block, whose bytes lie in ``data``."""
        while first < last:
            arguments: list[Any] = [data.ctypes.data, first, *block.decoding_columns(first, last)]
            arguments += self.room()
            first += kernel.decode(*arguments)

    def table(self, block: Block, rows: int, clock_unit_ns: int) -> PacketTable:
        """The first ``rows`` of the block, all decoded, as a table of stamps in such units; the next block begins."""
        flows = self._flows[: self._count("flows")]
        handshakes = self._handshakes[: self._count("handshakes")].copy()
        self._tables["handshakes"] = 0
        columns = block.columns(rows)
        return PacketTable(
            **columns,
            hosts=Addresses(self._hosts[: self._count("hosts")].view(np.uint64).reshape(-1, 2)),
            flow_endpoints=flows.view(endpoints.FLOW_ENDS),
            flow_protocol=flows["protocol"],
            flow_network=flows["network"],
            flow_strays=flows["strays"],
            btl_handshakes=self._greetings.confirmed(handshakes, columns["flow"], columns["kind"]),
            clock_unit_ns=clock_unit_ns,
        )

    def facts(self) -> dict[str, Any]:
        """Counts over all chunks so far."""
        counts = ("unparsed", "not_ip", "addresses_not_kept", "packets_beyond_flow_limit", "hidden", "beyond_frame")
        return {
            "decoder": "native",
            **{name: self._count(name) for name in counts},
            "hosts_beyond_limit": _distinct(self._distinct["longest"][endpoints.HOSTS_BEYOND]),
            "flows_beyond_limit": _distinct(self._distinct["longest"][endpoints.FLOWS_BEYOND]),
            "greetings_forgotten": self._greetings.forgotten,
        }


def _reserved(held: npt.NDArray[np.void], most: int) -> npt.NDArray[np.void]:
    """Room for all that there may be: what nobody has touched is no memory, and tables go on showing what lies there."""
    if len(held) == most:
        return held
    reserved = np.empty(most, held.dtype)
    reserved[: len(held)] = held
    return reserved


def _enlarge(slots: npt.NDArray[np.void], most: int) -> None:
    """More of them, free ones, at least twice as many as the ``most`` that will be entered; in place where the system can."""
    wanted = len(slots) * (4 if len(slots) < _MANY_SLOTS else 2)
    slots.resize(min(wanted, 1 << (2 * most - 1).bit_length()), refcheck=False)
    slots["entry"] = 0


def _distinct(longest: npt.NDArray[np.uint8]) -> int:
    """How many different ones a sketch has seen, to about 2 % (HyperLogLog; few of them by the places that none fell into)."""
    places = len(longest)
    empty = np.count_nonzero(longest == 0)
    estimate = 0.7213 / (1 + 1.079 / places) * places**2 / np.exp2(-longest.astype(np.float64)).sum()
    if estimate <= 2.5 * places and empty:
        estimate = places * np.log(places / empty)
    return round(float(estimate))
