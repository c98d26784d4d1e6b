"""RoCEv2, InfiniBand in UDP to port 4791: operations, retransmissions, congestion.

Definitions: operations are counted by their first (or only) packet, once if they are sent again. A
retransmission is a packet of a reliable connection whose number (PSN) is not above the highest of its queue pair so far; requests
and READ responses number for themselves. ACKs repeat numbers by design and are left out. A congestion notification (CNP) answers
packets that a switch has marked (ECN 11). Packets without a captured header count only in volume and rates. Rates are those of
analysis.traffic.rates, over the time from the first packet of RoCEv2 to the last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import roce as kernel
from analysis.kernels.decode import ROCE_PORT
from analysis.kernels.rates import ALL
from analysis.memory import reserved
from analysis.packets import CUT, UDP, PacketTable
from analysis.traffic.rates import PEAK_WINDOWS, RateAccumulator

MOST_QUEUE_PAIRS: Final = 1 << 16
MOST_ROWS: Final = 1000
CNP: Final = 0x81
_HEADER_BYTES: Final = 12
"""Length of the base transport header; shorter datagrams are not RoCEv2."""
_MARKED: Final = 3
_RELIABLE: Final = (0, 5)
"""Reliable and extended reliable connection: the upper three bits of the operation code."""
_BEGINS: Final = {
    "SEND": (0x00, 0x04, 0x05, 0x17), "RDMA WRITE": (0x06, 0x0A, 0x0B), "RDMA READ": (0x0C,), "ATOMIC": (0x13, 0x14),
}  # fmt: skip
"""The lower five bits of the first packet of every operation."""
_ANSWERS: Final = (0x0D, 0x0E, 0x0F, 0x10)
_ACKS: Final = (0x11, 0x12)
RATES: Final = (
    "duration_s", "packet_intensity_pps", "throughput_bps", "line_rate_bps", *PEAK_WINDOWS, "burstiness",
)  # fmt: skip
_PER_STREAM: Final = ("packets", "wire_bytes", "payload_bytes")
Integers = npt.NDArray[np.int64]


class RoceAccumulator:
    """Follows all queue pairs over successive tables with the same host numbers."""

    def __init__(self) -> None:
        self._hosts = Addresses()
        self._codes, self._codes_again = np.zeros(256, np.int64), np.zeros(256, np.int64)
        self._marked = self._beyond = 0
        self._volume = np.zeros(len(_PER_STREAM), np.int64)
        self._streams: dict[tuple[int, int, int, int], int] = {}
        self._totals = reserved((MOST_QUEUE_PAIRS, len(_PER_STREAM)), np.int64)
        self._highest, self._repeated = np.full(MOST_QUEUE_PAIRS, kernel.UNKNOWN), np.zeros(MOST_QUEUE_PAIRS, np.int64)
        self._rates: RateAccumulator | None = None

    def update(self, table: PacketTable) -> None:
        """Add the next packets."""
        arriving = table.dport == ROCE_PORT
        if not arriving.any():
            return
        rows = np.flatnonzero(arriving)
        rows = rows[(table.kind[rows] & UDP != 0) & (table.payload[rows] >= _HEADER_BYTES)]
        if not len(rows):
            return
        self._hosts = table.hosts
        self._rates = self._rates or RateAccumulator()
        alone = replace(table, **{name: getattr(table, name)[rows] for name in table.columns()})
        self._rates.update(alone, np.zeros(len(table.flow_endpoints), np.bool_))
        self._volume += [len(rows), table.orig_len[rows].sum(dtype=np.int64), table.payload[rows].sum(dtype=np.int64)]
        rows = rows[table.kind[rows] & CUT == 0]
        codes = table.window[rows]
        self._codes += np.bincount(codes, minlength=256)[:256]
        self._marked += int(np.count_nonzero(table.tcp_flags[rows] == _MARKED))
        stream = self._stream_of(table, rows)
        rows, codes, stream = rows[stream >= 0], codes[stream >= 0], stream[stream >= 0]
        for column, name in enumerate(("", "orig_len", "payload")):
            weights = getattr(table, name)[rows] if name else None
            counts = np.bincount(stream, weights).astype(np.int64)
            self._totals[: len(counts), column] += counts
        numbered = np.isin(codes >> 5, _RELIABLE) & ~np.isin(codes & 31, _ACKS)
        again = np.zeros(np.count_nonzero(numbered), np.bool_)
        kernel.count_repeated(stream[numbered], table.seq[rows[numbered]], self._highest, self._repeated, again)
        self._codes_again += np.bincount(codes[numbered][again], minlength=256)[:256]

    def left_out(self) -> dict[str, int]:
        """Return the packets of queue pairs beyond the limit."""
        return {"queue_pairs_beyond_limit": self._beyond}

    def result(self) -> dict[str, Any] | None:
        """Return JSON-ready results; None without RoCEv2.

        ``queue_pairs``: traffic to those with most bytes. ``rates`` by the catalogue's ids, ``not_available``: reasons for absent ones;
        ``series`` as in ``ScopeRates.series``.
        """
        if self._rates is None:
            return None
        packets, wire_bytes, payload_bytes = self._volume.tolist()
        rates = self._rates.scope(ALL)
        measured, missing = rates.result()
        begun = self._codes - self._codes_again
        operations = {
            name: int(sum(begun[kind << 5 | low] for kind in range(8) for low in lows if kind != CNP >> 5))
            for name, lows in _BEGINS.items()
        }
        return {
            "packets": packets,
            "wire_bytes": wire_bytes,
            "payload_bytes": payload_bytes,
            "rates": {name: measured[name] for name in RATES if name in measured},
            "not_available": {name: missing[name] for name in RATES if name in missing},
            "series": rates.series(),
            "operations": operations,
            "retransmitted_packets": int(self._repeated.sum()),
            "congestion_notifications": int(self._codes[CNP]),
            "marked_packets": self._marked,
            "packets_beyond_limit": self._beyond,
            "queue_pairs": self._rows(),
        }

    def _stream_of(self, table: PacketTable, rows: Integers) -> Integers:
        """Return the number of every row's stream, added if new; -1 beyond the limit."""
        answers = np.isin(table.window[rows] & 31, _ANSWERS)
        # Two hosts and a queue pair exceed 64 bits, so pairs of hosts are numbered first
        pairs = (table.src[rows].astype(np.uint64) << np.uint64(32)) | table.dst[rows]
        ends, of = np.unique(pairs, return_inverse=True)
        keys, places = np.unique((of << 25) | (table.ack[rows].astype(np.int64) << 1) | answers, return_inverse=True)
        numbers = np.empty(len(keys), np.int64)
        for index, key in enumerate(keys.tolist()):
            source_target = int(ends[key >> 25])
            name = (source_target >> 32, source_target & 0xFFFFFFFF, key >> 1 & 0xFFFFFF, key & 1)
            full = len(self._streams) >= MOST_QUEUE_PAIRS and name not in self._streams
            numbers[index] = -1 if full else self._streams.setdefault(name, len(self._streams))
        self._beyond += int(np.count_nonzero(numbers[places] < 0))
        return numbers[places]

    def _rows(self) -> list[dict[str, Any]]:
        rows: dict[tuple[int, int, int], dict[str, int]] = {}
        for (source, target, pair, _), stream in self._streams.items():
            empty = {"source": source, "destination": target, "queue_pair": pair}
            row = rows.setdefault(
                (source, target, pair), empty | dict.fromkeys((*_PER_STREAM, "retransmitted_packets"), 0)
            )
            for column, name in enumerate(_PER_STREAM):
                row[name] += int(self._totals[stream, column])
            row["retransmitted_packets"] += int(self._repeated[stream])
        largest = sorted(rows.values(), key=lambda row: -row["wire_bytes"])[:MOST_ROWS]
        return [row | {end: self._name(row[end]) for end in ("source", "destination")} for row in largest]

    def _name(self, host: int) -> str | None:
        return self._hosts[host] if host < len(self._hosts) else None
