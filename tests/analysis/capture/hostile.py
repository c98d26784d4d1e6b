"""Captures that ask a reader for all its memory or time, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from analysis.kernels import endpoints
from tests.analysis import capture_files as files
from tests.analysis.frames import ethernet, ipv4, tcp

_HEADER: Final = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65_535, 1)
_SYN: Final = ethernet(ipv4(tcp(flags=0x02, ack=0)), pad=False)
_RECORD: Final = np.dtype([
    ("seconds", "<u4"), ("ns", "<u4"), ("captured", "<u4"), ("original", "<u4"), ("head", "V26"),
    ("source", ">u4"), ("destination", ">u4"), ("sport", ">u2"), ("dport", ">u2"), ("seq", ">u4"), ("rest", f"V{len(_SYN) - 42}"),
])  # fmt: skip
"""A savefile's record of an Ethernet, IPv4 and TCP header without options."""


def _records(count: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """SYNs from 10.0.0.1:40000 to 10.0.0.2:20000, a microsecond apart."""
    made = np.frombuffer(struct.pack("<IIII", 10**6, 0, len(_SYN), len(_SYN)) + _SYN, _RECORD).repeat(count)
    made["seconds"] += np.arange(count, dtype=np.uint32) // 10**6
    made["ns"] = np.arange(count) % 10**6 * 1000
    return made


def _saved(records: np.ndarray[tuple[int], np.dtype[np.void]]) -> bytes:
    return _HEADER + records.tobytes()


def zeros(count: int) -> bytes:
    """Records without a byte, all stamped 0."""
    return _HEADER + bytes(16 * count)


def equal_stamps(count: int) -> bytes:
    made = _records(count)
    made["ns"], made["seconds"] = 0, 5
    return _saved(made)


def stamps_to_and_fro(count: int) -> bytes:
    """Return stamps that jump back by half a window at every other packet."""
    made = _records(count)
    made["seconds"] = 5
    made["ns"] = np.arange(count) + 50_000_000 * (np.arange(count) % 2)
    return _saved(made)


def sections(count: int) -> bytes:
    """Nothing but section headers of pcapng."""
    return count * struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


def options(count: int) -> bytes:
    """One interface of pcapng with so many options, each of them empty."""
    length = 20 + 4 * count
    block = struct.pack("<IIHHI", 1, length, 1, 0, 0) + count * struct.pack("<HH", 2, 0) + struct.pack("<I", length)
    return sections(1) + block


def _data(count: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Records of segments of 100 bytes, of which the headers are captured."""
    made = _records(count)
    data = ethernet(ipv4(tcp(payload=bytes(100))))[: len(_SYN)]
    made["original"], made["head"], made["rest"] = 154, np.void(data[:26]), np.void(data[42:])
    return made


def handshakes(count: int) -> bytes:
    """Connections with nothing but the handshake of Open MPI."""
    signature = struct.pack("<II", 1, 5) + b"OPAL-TCP-BTL" + bytes(4)
    frame = ethernet(ipv4(tcp(payload=signature)), pad=False)
    record = np.frombuffer(struct.pack("<IIII", 5, 0, len(frame), len(frame)) + frame, np.uint8)
    made, number = np.tile(record, (count, 1)), np.arange(count)
    made[:, 49], made[:, 50], made[:, 51] = number // 51_200 % 250 + 2, number % 200 + 20, number // 200 % 256
    return _HEADER + made.tobytes()


def host_scan(count: int) -> bytes:
    """One host asks the same port of every address."""
    made = _records(count)
    made["destination"] += np.arange(count, dtype=np.uint32)
    return _saved(made)


def spoofed_hosts(count: int) -> bytes:
    """Every address asks the same port of one host."""
    made = _records(count)
    made["source"] += 256 * np.arange(count, dtype=np.uint32)
    return _saved(made)


def strangers(count: int) -> bytes:
    """Every address sends data to the next but one, and never speaks again."""
    made, number = _data(count), np.arange(count, dtype=np.uint32)
    made["source"], made["destination"] = 0x0A000000 + number, 0x0A000000 + (number + 2) % count
    made["sport"] = 1024 + number % 60_000
    return _saved(made)


def port_scan(count: int) -> bytes:
    """All ports of one address, from all ports of another."""
    made = _records(count)
    made["dport"], made["sport"] = np.arange(count) % 65_536, np.arange(count) // 65_536 + 1024
    return _saved(made)


def host_pairs(count: int) -> bytes:
    """A few thousand hosts, each of which talks to every other."""
    made = _records(count)
    made["source"] += np.arange(count, dtype=np.uint32) // 2048
    made["destination"] += 65_536 + np.arange(count, dtype=np.uint32) % 2048
    return _saved(made)


def connections_in_turn(count: int) -> bytes:
    """Sixty thousand connections without a handshake, each sends 100 bytes in turn."""
    made = _data(count)
    turn, connection = np.divmod(np.arange(count), 60_000)
    made["sport"], made["destination"] = connection % 30_000 + 1024, made["destination"] + connection // 30_000
    made["seq"] = 100 * turn
    return _saved(made)


def at_random(count: int, hosts: int) -> bytes:
    """Packets between pairs of many hosts, drawn at random: no hostile capture."""
    random, made = np.random.default_rng(count), _records(count)
    for end in ("source", "destination"):
        made[end] = 0x0A000000 + random.integers(0, hosts, count)
    return _saved(made)


def _slots(
    values: np.ndarray[tuple[int], np.dtype[np.uint64]], bits: int
) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return (values * endpoints._HASH >> np.uint64(32)) & np.uint64((1 << bits) - 1)


def _mixed(value: Any, word: Any) -> Any:
    mixed = (value ^ word) * endpoints._HASH
    return mixed ^ (mixed >> np.uint64(29))


def _chosen(slots: np.ndarray[tuple[int], np.dtype[np.uint64]], most: int, count: int) -> Any:
    """Return ``count`` indices of keys that begin in the first ``most`` slots.

    The indices repeat if there are fewer such keys; all keys are taken if no key begins there.
    """
    chosen = np.flatnonzero(slots < np.uint64(most))
    return np.resize(chosen if len(chosen) else np.arange(len(slots)), count)


def _tried(count: int) -> int:
    """Keys that are looked through: enough for many packets, few for few."""
    return min(1 << 24, 1 << 12 + count.bit_length() // 2 * 2)


def chosen_hosts(count: int) -> bytes:
    """Addresses that share their first slots in the largest table of hosts."""
    address = np.arange(0x0B000000, 0x0B000000 + _tried(count), dtype=np.uint64)
    word = (np.uint64(0xFFFF00000000) | address) * endpoints._HASH
    made = _records(count)
    made["source"] = address[_chosen(_slots(_mixed(np.uint64(0), word), 21), 512, count)]
    return _saved(made)


def chosen_ports(count: int) -> bytes:
    """Ports of two hosts whose flows share the same few thousand slots."""
    pairs = np.arange(_tried(count), dtype=np.uint64)
    sport, dport = pairs >> np.uint64(12), np.uint64(1024) + (pairs & np.uint64(4095))
    key = sport << np.uint64(32) | np.uint64(1 << 16) | dport
    made, chosen = _records(count), _chosen(_slots(_mixed(key, np.uint64(6)), 22), 8192, count)
    made["sport"], made["dport"] = sport[chosen], dport[chosen]
    return _saved(made)


def chosen_pairs(count: int) -> bytes:
    """Pairs of some thousand hosts, chosen for a few slots of the table of pairs."""
    hosts = min(4096, count)
    pairs = np.arange(hosts * hosts, dtype=np.uint64)
    source, target = pairs // np.uint64(hosts), pairs % np.uint64(hosts)
    made, first = _records(count), np.arange(hosts // 2)
    chosen = _chosen(_slots(source << np.uint64(32) | target, 21), 8192, count - len(first))
    made["source"] = 0x0A000000 + np.concatenate([2 * first, source[chosen]])
    made["destination"] = 0x0A000000 + np.concatenate([2 * first + 1, target[chosen]])
    return _saved(made)


def answered_twice(connections: int) -> bytes:
    """All connections open and are answered twice: many at once, none hostile."""
    made = _records(4 * connections)
    number = np.arange(4 * connections) % connections
    made["sport"], made["destination"] = number % 30_000 + 1024, made["destination"] + number // 30_000
    back = np.arange(4 * connections) // connections % 2 == 1
    for one, other in (("source", "destination"), ("sport", "dport")):
        made[one][back], made[other][back] = made[other][back], made[one][back].copy()
    return _saved(made)


def wrapped_without_end(count: int) -> bytes:
    packet = ipv4(tcp())
    for _ in range(60):
        packet = ipv4(packet, protocol=4)
    return files.pcap([files.Frame.whole(10**15 + k, ethernet(packet)) for k in range(min(count, 5000))])


GENERATORS: Final[dict[str, Callable[[int], bytes]]] = {
    made.__name__: made
    for made in (
        zeros, equal_stamps, stamps_to_and_fro, host_scan, spoofed_hosts, strangers, port_scan, host_pairs, connections_in_turn,
        wrapped_without_end, chosen_hosts, chosen_ports, chosen_pairs,
    )
}  # fmt: skip

LARGE: Final[dict[str, Callable[[int], bytes]]] = {made.__name__: made for made in (sections, options, handshakes)}
"""Others that show only when they are large."""


def captures(count: int) -> Iterator[tuple[str, bytes]]:
    """Every kind, of about ``count`` packets."""
    for name, made in GENERATORS.items():
        yield name, made(count)
