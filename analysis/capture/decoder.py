"""Frames to packet tables; what must be remembered between chunks (hosts, flows) lives here."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.capture.block import Block
from analysis.capture.formats import Buffer
from analysis.capture.greetings import Greetings
from analysis.kernels import decode as kernel
from analysis.kernels import endpoints
from analysis.packets import PacketTable

MOST_HOSTS: Final = 65_535
MOST_FLOWS: Final = 1 << 20
"""Later flows keep NO_FLOW and are counted: a port scan must not take all memory."""
_HOST_SLOTS: Final = 1 << 17
_FIRST_FLOW_SLOTS: Final = 1 << 12


class Decoder:
    """Decodes chunk after chunk; indices of hosts and flows stay the same over all of them."""

    def __init__(self) -> None:
        self._tables = np.zeros(1, endpoints.TABLES)
        self._host_names: tuple[str, ...] = ()
        self._handshakes = np.empty((1024, 3), np.int64)
        self._greetings = Greetings()
        self._host_slots = np.zeros(_HOST_SLOTS, endpoints.SLOT)
        self._hosts = np.empty(MOST_HOSTS, endpoints.HOST)
        self._flow_slots = np.zeros(_FIRST_FLOW_SLOTS, endpoints.SLOT)
        self._flows = np.empty(_FIRST_FLOW_SLOTS // 2, endpoints.FLOW)
        self._distinct = np.zeros((2, endpoints.DISTINCT_ROOM), endpoints.DISTINCT)
        self._tables["distinct"] = self._distinct.ctypes.data
        self._filter: npt.NDArray[np.void] | None = None
        self._recent = np.zeros(endpoints.RECENT_ROOM, endpoints.RECENT)
        self._tables["recent"] = self._recent.ctypes.data
        self._tell_addresses()

    def _tell_addresses(self) -> None:
        for name, array in (
            ("host_slots", self._host_slots),
            ("host_list", self._hosts),
            ("flow_slots", self._flow_slots),
            ("flow_list", self._flows),
        ):
            self._tables[name] = array.ctypes.data
        self._tables["host_slot_count"], self._tables["host_room"] = len(self._host_slots), len(self._hosts)
        self._tables["flow_slot_count"], self._tables["flow_room"] = len(self._flow_slots), len(self._flows)

    def _count(self, name: str) -> int:
        return int(self._tables[name][0])

    def _enlarge_flows(self, slots: int) -> None:
        """Tables for ``slots / 2`` flows, half full at most; entered flows are carried over."""
        flows = np.empty(slots // 2, endpoints.FLOW)
        flows[: len(self._flows)] = self._flows
        self._flows, self._flow_slots = flows, np.zeros(slots, endpoints.SLOT)
        self._tell_addresses()
        endpoints.reenter_flows(self._tables.ctypes.data)

    def filter_flows(self) -> None:
        """Let flows that are not in the table be told by one look at a small filter; for a table that stays as it is."""
        self._filter = np.zeros(endpoints.FILTER_ROOM, endpoints.FILTER)
        self._tables["filter"] = self._filter.ctypes.data
        endpoints.fill_filter(self._tables.ctypes.data)

    def decode(self, data: Buffer, block: Block, first: int, last: int) -> None:
        """Decode rows ``first`` to ``last`` of the block, whose bytes lie in ``data``."""
        while first < last:
            if self._count("handshakes") == len(self._handshakes):
                self._handshakes = np.concatenate([self._handshakes, np.empty_like(self._handshakes)])
            full = len(self._flows)
            if self._count("flows") == full and full < MOST_FLOWS:
                self._enlarge_flows(8 * full)
                full = len(self._flows)
            elif self._count("flows") == full and self._filter is None:
                self.filter_flows()
            room = full if full < MOST_FLOWS else full + 1
            arguments: list[Any] = [data.ctypes.data, first, *block.decoding_columns(first, last)]
            arguments += [self._handshakes, self._tables.ctypes.data, room]
            first += kernel.decode(*arguments)

    def table(self, block: Block, rows: int) -> PacketTable:
        """The first ``rows`` of the block, all decoded, as a table; the next block begins."""
        flows = self._flows[: self._count("flows")]
        handshakes = self._handshakes[: self._count("handshakes")].copy()
        self._tables["handshakes"] = 0
        columns = block.columns(rows)
        return PacketTable(
            **columns,
            hosts=self._names(),
            flow_endpoints=_endpoints(flows),
            flow_protocol=flows["protocol"],
            flow_network=flows["network"],
            flow_strays=flows["strays"],
            btl_handshakes=self._greetings.confirmed(handshakes, columns["flow"], columns["kind"]),
        )

    def _names(self) -> tuple[str, ...]:
        known, count = len(self._host_names), self._count("hosts")
        if known < count:
            self._host_names += tuple(
                _address(int(host["high"]), int(host["low"])) for host in self._hosts[known:count]
            )
        return self._host_names

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


def _endpoints(flows: npt.NDArray[np.void]) -> npt.NDArray[np.uint16]:
    """Shape (F, 4): a view, because a copy for every table of a million flows would be most of the work."""
    return np.ndarray((len(flows), 4), np.uint16, flows, strides=(endpoints.FLOW.itemsize, 2))


def _distinct(longest: npt.NDArray[np.uint8]) -> int:
    """How many different ones a sketch has seen, to about 2 % (HyperLogLog; few of them by the places that none fell into)."""
    places = len(longest)
    empty = np.count_nonzero(longest == 0)
    estimate = 0.7213 / (1 + 1.079 / places) * places**2 / np.exp2(-longest.astype(np.float64)).sum()
    if estimate <= 2.5 * places and empty:
        estimate = places * np.log(places / empty)
    return round(float(estimate))


def _address(high: int, low: int) -> str:
    if high == 0 and low >> 32 == 0xFFFF:
        return str(ipaddress.IPv4Address(low & 0xFFFFFFFF))
    return str(ipaddress.IPv6Address(high << 64 | low))
