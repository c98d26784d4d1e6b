"""Frames to packet tables; what must be remembered between chunks (hosts, flows) lives here."""

from __future__ import annotations

import ipaddress
from typing import Any, Final

import numpy as np

from analysis.capture.formats import Frames
from analysis.kernels import decode as kernel
from analysis.kernels.raw import Buffer
from analysis.packets import PacketTable

NATIVE_LINK_TYPES: Final = frozenset(
    {
        kernel.NULL,
        kernel.ETHERNET,
        kernel.RAW_IP,
        kernel.RAW_IP_101,
        kernel.LOOP,
        kernel.LINUX_SLL,
        kernel.IPV4_ONLY,
        kernel.IPV6_ONLY,
        kernel.LINUX_SLL2,
    }
)
MOST_HOSTS: Final = 65_535
MOST_FLOWS: Final = 1 << 22
"""Later flows keep NO_FLOW and are counted: a port scan must not take all memory."""
_HOST_SLOTS: Final = 1 << 17


class Decoder:
    """Decodes chunk after chunk; indices of hosts and flows stay the same over all of them."""

    def __init__(self) -> None:
        self._state = np.zeros(kernel.STATE_SIZE, np.int64)
        self._host_slots = np.zeros(_HOST_SLOTS, np.int32)
        self._hosts = np.empty((MOST_HOSTS, 2), np.uint64)
        self._host_names: tuple[str, ...] = ()
        self._handshakes = np.empty((1024, 3), np.int64)
        self._flow_slots = np.zeros(1 << 12, np.int32)
        self._flow_keys = np.empty(1 << 11, np.uint64)
        self._flow_endpoints = np.empty((1 << 11, 4), np.uint16)
        self._flow_protocol = np.empty(1 << 11, np.uint8)

    def _enlarge_flows(self, slots: int) -> None:
        """Flow tables for ``slots / 2`` flows, half full at most; entered flows are carried over."""
        count, size = int(self._state[kernel.FLOWS]), slots // 2
        keys, endpoints = np.empty(size, np.uint64), np.empty((size, 4), np.uint16)
        protocols = np.empty(size, np.uint8)
        keys[:count], endpoints[:count] = self._flow_keys[:count], self._flow_endpoints[:count]
        protocols[:count] = self._flow_protocol[:count]
        self._flow_slots = np.zeros(slots, np.int32)
        kernel.reenter_flows(self._flow_slots, keys, protocols, count)
        self._flow_keys, self._flow_endpoints, self._flow_protocol = keys, endpoints, protocols

    def decode(self, data: Buffer, frames: Frames, rows: int) -> PacketTable:
        """Columns of the first ``rows`` frames, whose bytes lie in ``data``."""
        columns: dict[str, Any] = {
            "time_ns": frames.time_ns[:rows].copy(),
            "cap_len": frames.cap_len[:rows].copy(),
            "orig_len": frames.orig_len[:rows].copy(),
        }
        for name in ("kind", "tcp_flags", "wscale"):
            columns[name] = np.empty(rows, np.uint8)
        for name in ("src", "dst", "sport", "dport", "window", "mss"):
            columns[name] = np.empty(rows, np.uint16)
        for name in ("flow", "payload", "seq", "ack", "fingerprint"):
            columns[name] = np.empty(rows, np.uint32)
        self._fill(data, frames.offset[:rows], frames.link[:rows], columns)
        return PacketTable(
            **columns,
            hosts=self._names(),
            flow_endpoints=self._flow_endpoints[: self._state[kernel.FLOWS]],
            flow_protocol=self._flow_protocol[: self._state[kernel.FLOWS]],
            btl_handshakes=self._handshakes[: self._state[kernel.HANDSHAKES]].copy(),
        )

    def _fill(self, data: Buffer, offsets: Any, links: Any, columns: dict[str, Any]) -> None:
        self._state[kernel.HANDSHAKES] = 0
        row = 0
        while row < len(offsets):
            if self._state[kernel.HANDSHAKES] == len(self._handshakes):
                self._handshakes = np.concatenate([self._handshakes, np.empty_like(self._handshakes)])
            full = len(self._flow_keys)
            if self._state[kernel.FLOWS] == full and full < MOST_FLOWS:
                self._enlarge_flows(8 * full)
                full = len(self._flow_keys)
            room = full if full < MOST_FLOWS else full + 1
            row = kernel.decode(
                data, offsets, links, row,
                columns["cap_len"], columns["orig_len"], columns["kind"], columns["src"], columns["dst"],
                columns["sport"], columns["dport"], columns["flow"], columns["payload"], columns["seq"],
                columns["ack"], columns["window"], columns["tcp_flags"], columns["wscale"], columns["mss"],
                columns["fingerprint"],
                self._host_slots, self._hosts, self._flow_slots, self._flow_keys, self._flow_endpoints,
                self._flow_protocol, self._handshakes, self._state, room,
            )  # fmt: skip

    def _names(self) -> tuple[str, ...]:
        known = len(self._host_names)
        if known < self._state[kernel.HOSTS]:
            fresh = self._hosts[known : self._state[kernel.HOSTS]]
            self._host_names += tuple(_address(int(high), int(low)) for high, low in fresh)
        return self._host_names

    def facts(self) -> dict[str, Any]:
        """Counts over all chunks so far."""
        return {
            "decoder": "native",
            "unparsed": int(self._state[kernel.UNPARSED]),
            "not_ip": int(self._state[kernel.NOT_IP]),
            "addresses_not_kept": int(self._state[kernel.HOSTS_LOST]),
            "packets_beyond_flow_limit": int(self._state[kernel.FLOWS_LOST]),
        }


def _address(high: int, low: int) -> str:
    if high == 0 and low >> 32 == 0xFFFF:
        return str(ipaddress.IPv4Address(low & 0xFFFFFFFF))
    return str(ipaddress.IPv6Address(high << 64 | low))
