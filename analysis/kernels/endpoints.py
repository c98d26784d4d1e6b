"""Hash tables of hosts and flows, by the address of one record (kernels.raw)."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels.raw import record_at, signed
from analysis.packets import NO_HOST

TABLES = np.dtype(
    [
        ("hosts", "i8"),
        ("flows", "i8"),
        ("handshakes", "i8"),
        ("unparsed", "i8"),
        ("not_ip", "i8"),
        ("addresses_not_kept", "i8"),
        ("packets_beyond_flow_limit", "i8"),
        ("hidden", "i8"),
        ("beyond_frame", "i8"),
        ("cut_off", "i8"),
        ("host_slots", "i8"),
        ("host_slot_count", "i8"),
        ("host_list", "i8"),
        ("host_room", "i8"),
        ("flow_slots", "i8"),
        ("flow_slot_count", "i8"),
        ("flow_list", "i8"),
        ("flow_room", "i8"),
        ("recent", "i8"),
    ]
)
"""Counts, and addresses and lengths of the hash tables (powers of two, entries are index + 1) and of the indexed records."""
HOST = np.dtype([("high", "u8"), ("low", "u8")])
"""An IPv6 address; IPv4 is ::ffff:a.b.c.d."""
FLOW = np.dtype(
    [
        ("network", "u8"), ("a", "u4"), ("b", "u4"), ("a_port", "u2"), ("b_port", "u2"), ("protocol", "u1"),
    ],
    align=True,
)  # fmt: skip
"""Hosts and ports of endpoint A and B of a flow, adjacent so that FLOW_ENDS can be a view."""
FLOW_ENDS = np.dtype([("network", "u8"), ("hosts", "u4", 2), ("ports", "u2", 2), ("protocol", "u1")], align=True)
"""The same records as tables show them (analysis.packets)."""
SLOT = np.dtype([("entry", "u4")])
RECENT = np.dtype(
    [("addresses", "u8"), ("ports", "u4"), ("flow", "i4"), ("source", "u4"), ("destination", "u4"), ("kind", "u1")],
    align=True,
)
"""Table entries of a recent TCP packet over IPv4, by the addresses and ports in its headers; ``kind`` is 0 while empty. Flows and
hosts keep their numbers, so entries never expire."""
RECENT_ROOM = 1 << 12
MOST_PROBES = 256
"""Slots searched for one entry: tables are at most half full, so only addresses and ports crafted for the same slots need more.
Those count as without room, instead of a long search for every packet."""

tables_at = record_at(TABLES)
host_at = record_at(HOST)
flow_at = record_at(FLOW)
slot_at = record_at(SLOT)
recent_at = record_at(RECENT)

_HASH = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Knuth's multiplicative hashing
_32 = np.uint64(32)
_29 = np.uint64(29)
_52 = np.uint64(52)
_8 = np.uint64(8)
_255 = np.uint64(255)


@inlined
def mix(value: np.uint64, word: np.uint64) -> np.uint64:
    mixed = (value ^ word) * _HASH
    return mixed ^ (mixed >> _29)


@jit
def slot_of(value: np.uint64, mask: int) -> int:
    """Return the first slot to search; all bits of ``value`` count."""
    return signed((value * _HASH) >> _32) & mask


@jit
def find_host(high: np.uint64, low: np.uint64, tables: int) -> int:
    """Return the index of an address, added if new; NO_HOST without room."""
    state = tables_at(tables, 1, 0)
    mask = state.host_slot_count - 1
    slot = slot_of(mix(high, low * _HASH), mask)
    entry = signed(slot_at(state.host_slots, state.host_slot_count, slot).entry)
    probes = 0
    while entry != 0 and probes < MOST_PROBES:
        probes += 1
        host = host_at(state.host_list, state.host_room, entry - 1)
        if host.low == low and host.high == high:
            return entry - 1
        slot = (slot + 1) & mask
        entry = signed(slot_at(state.host_slots, state.host_slot_count, slot).entry)
    if state.hosts == state.host_room or entry != 0:
        state.addresses_not_kept += 1
        return signed(NO_HOST)
    host = host_at(state.host_list, state.host_room, state.hosts)
    host.high = high
    host.low = low
    slot_at(state.host_slots, state.host_slot_count, slot).entry = state.hosts + 1
    state.hosts += 1
    return signed(state.hosts - 1)


@inlined
def recent_of(addresses: np.uint64, ports: int, tables: int) -> Any:
    """Return the record of recent packets with these addresses and ports."""
    slot = signed(((addresses ^ (np.uint64(ports) * _HASH)) * _HASH) >> _52)
    return recent_at(tables_at(tables, 1, 0).recent, RECENT_ROOM, slot)


@jit
def flow_key(source: int, sport: int, destination: int, dport: int) -> np.uint64:
    """Return a key that is equal for both directions."""
    this = np.uint64((source << 16) | sport)
    that = np.uint64((destination << 16) | dport)
    first, second = (this, that) if this <= that else (that, this)
    return (first << _32 | first >> _32) ^ second


@jit
def identity_of(flow: Any) -> np.uint64:
    return np.uint64(np.uint64(flow.protocol) | flow.network << _8)


@jit
def _is_between(flow: Any, source: int, sport: int, destination: int, dport: int) -> bool:
    if flow.a == source and flow.a_port == sport and flow.b == destination and flow.b_port == dport:
        return True
    return bool(flow.b == source and flow.b_port == sport and flow.a == destination and flow.a_port == dport)


@jit
def find_flow(source: int, sport: int, destination: int, dport: int, identity: np.uint64, tables: int) -> int:
    """Return the index of a flow, added if new; -1 without room.

    ``identity`` is protocol | network << 8.
    """
    state = tables_at(tables, 1, 0)
    key = flow_key(source, sport, destination, dport)
    mask = state.flow_slot_count - 1
    slot = slot_of(mix(key, identity), mask)
    entry = signed(slot_at(state.flow_slots, state.flow_slot_count, slot).entry)
    probes = 0
    while entry != 0 and probes < MOST_PROBES:
        probes += 1
        flow = flow_at(state.flow_list, state.flow_room, entry - 1)
        if _is_between(flow, source, sport, destination, dport) and identity_of(flow) == identity:
            return entry - 1
        slot = (slot + 1) & mask
        entry = signed(slot_at(state.flow_slots, state.flow_slot_count, slot).entry)
    if state.flows == state.flow_room or entry != 0:
        state.packets_beyond_flow_limit += 1
        return -1
    flow = flow_at(state.flow_list, state.flow_room, state.flows)
    flow.network = identity >> _8
    flow.protocol = identity & _255
    flow.a = source
    flow.a_port = sport
    flow.b = destination
    flow.b_port = dport
    slot_at(state.flow_slots, state.flow_slot_count, slot).entry = state.flows + 1
    state.flows += 1
    return signed(state.flows - 1)
