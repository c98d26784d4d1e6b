"""Frames to packet tables, with the hosts and flows that persist between chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.capture.formats import Block, Buffer
from analysis.kernels import decode as kernel
from analysis.kernels import endpoints
from analysis.memory import reserved
from analysis.packets import MOST_FLOWS, MOST_HOSTS, PacketTable


class Decoder:
    """Decodes successive chunks; indices of hosts and flows stay the same.

    Tables have room for MOST_HOSTS and MOST_FLOWS from the beginning. Later hosts are NO_HOST and later flows NO_FLOW, and
    are counted.
    """

    def __init__(self) -> None:
        self._tables = np.zeros(1, endpoints.TABLES)
        self._handshakes = np.empty((0, 3), np.int64)
        self._host_slots, self._hosts = _room(MOST_HOSTS, endpoints.HOST)
        self._flow_slots, self._flows = _room(MOST_FLOWS, endpoints.FLOW)
        self._recent = np.zeros(endpoints.RECENT_ROOM, endpoints.RECENT)
        self._tables["recent"] = self._recent.ctypes.data
        for name, slots, entries in (
            ("host", self._host_slots, self._hosts),
            ("flow", self._flow_slots, self._flows),
        ):
            self._tables[f"{name}_slots"], self._tables[f"{name}_slot_count"] = slots.ctypes.data, len(slots)
            self._tables[f"{name}_list"], self._tables[f"{name}_room"] = entries.ctypes.data, len(entries)

    def _count(self, name: str) -> int:
        return int(self._tables[name][0])

    def decode(self, data: Buffer, block: Block, first: int, last: int) -> None:
        """Decode rows ``first`` to ``last`` of the block, whose bytes are in ``data``."""
        if len(self._handshakes) < block.capacity:
            self._handshakes = np.empty((block.capacity, 3), np.int64)
        kernel.decode(data.ctypes.data, first, block.rows(first, last), self._handshakes, self._tables.ctypes.data)

    def table(self, block: Block, rows: int) -> PacketTable:
        """Return the first ``rows`` of the block, all decoded, as a table."""
        flows = self._flows[: self._count("flows")]
        handshakes = self._handshakes[: self._count("handshakes")].copy()
        self._tables["handshakes"] = 0
        return PacketTable(
            **block.columns(rows),
            hosts=Addresses(self._hosts[: self._count("hosts")].view(np.uint64).reshape(-1, 2)),
            flow_endpoints=flows.view(endpoints.FLOW_ENDS),
            flow_protocol=flows["protocol"],
            flow_network=flows["network"],
            btl_handshakes=handshakes,
        )

    def facts(self) -> dict[str, Any]:
        """Return the counts over all chunks so far."""
        counts = ("unparsed", "not_ip", "addresses_not_kept", "packets_beyond_flow_limit", "hidden", "beyond_frame")
        return {"decoder": "native", **{name: self._count(name) for name in counts}}


def _room(most: int, dtype: np.dtype[np.void]) -> tuple[npt.NDArray[np.void], npt.NDArray[np.void]]:
    """Return free slots, at least twice the ``most`` entries, and room for these."""
    return reserved(1 << (2 * most - 1).bit_length(), endpoints.SLOT), reserved(most, dtype)
