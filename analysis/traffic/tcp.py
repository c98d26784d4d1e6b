"""The TCP pass: packet tables in, connections out, chunk by chunk.

Definitions (METRICS.md section 5) and whose they are:

retransmission
    a segment whose payload range overlaps payload already seen from that side; bytes = the overlap (tcptrace). SYN and
    FIN are no payload. Keep-alives and zero-window probes are counted apart.
out of order
    starts before a recorded segment (a FIN is one) and fills a gap never seen before (tcptrace). **Ambiguous**: those of them that came
    no sooner than one round trip after the gap was visible (or with no round trip known), so that a retransmission of
    something lost before the capture point looks the same.
keep-alive, zero-window probe
    no FIN or SYN, at most one byte, one below the next number, everything acknowledged (Wireshark, plus the last
    condition and not for a last segment of one byte that comes again: those are retransmissions). While the peer's window
    is zero that is a zero-window probe, as is data at the left edge of the closed window.
duplicate ACK
    the highest ACK again, no payload, SYN or FIN, same raw window, data outstanding (RFC 5681 section 2). Triple: the third in a
    row.
zero window
    window field 0 without SYN, FIN, RST (Wireshark).  **Window full**: payload that reaches the right edge of the peer's scaled
    window (Wireshark, but >= where it has =).
RTT sample
    a pure ACK that acknowledges new payload: time since the newest never-repeated byte it covers was sent (Karn's rule); none
    when a repetition that it covers was sent after that byte, because the ACK may have waited for it. Payload or FIN on the
    acknowledging segment makes it a response latency. A capture point close to one host (ten times, and 0.1 ms, by the
    halves of the handshake) sees round trips of that host alone in one direction: a flow's ``rtt_*`` leave those out, its
    ``rtt_min_s_ab``, ``_ba`` and ``rtt_samples_ab``, ``_ba`` keep both.
bytes in flight
    highest sequence end sent - highest ACK received, after every segment with payload.
ACKed unseen
    ACKs that cover, for the first time, bytes above everything seen (Wireshark's "ACKed unseen segment") or inside a gap
    (bytes that passed the capture point unseen). Not those whose bytes are recorded within 1 ms after all (Wireshark counts
    them): a bridge hands a frame on before it is recorded, and processors record side by side.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import tcp as kernel
from analysis.kernels import tcp_state as state
from analysis.packets import NO_FLOW, PacketTable
from analysis.traffic.flow_records import short_way_data
from analysis.traffic.flows import FlowSet
from analysis.traffic.tcp_samples import SampleLog

_FIRST_CONNECTIONS: Final = 64
_NO_SKIP: Final = np.zeros(0, np.bool_)


def _enlarged(old: npt.NDArray[Any], limit: int) -> npt.NDArray[Any]:
    """Twice the room, at most ``limit`` entries; new entries are zero."""
    new = np.zeros(min(2 * len(old), max(limit, len(old))), old.dtype)
    new[: len(old)] = old
    return new


class TcpAccumulator:
    """Follows every TCP connection through successive tables whose ``flow`` numbers mean the same (see capture.stream).

    Memory is bounded: ``max_connections`` connections are followed, each direction remembers at most ``max_outstanding``
    unacknowledged segments and ``max_gaps`` gaps, all lists together ``max_nodes`` entries of 32 bytes. ``max_samples`` round
    trips, response latencies and flight sizes are kept for quantiles (16 bytes each); beyond it an even share of them,
    chosen by ordinal. Whatever was forgotten is counted in ``FlowSet.limits``. Splitting the packets into other chunks
    never changes a result.
    """

    def __init__(
        self,
        *,
        max_connections: int = 250_000,
        max_outstanding: int = 4096,
        max_gaps: int = 1024,
        max_nodes: int = 4_000_000,
        max_samples: int = 8_000_000,
    ) -> None:
        self._limits = {"connections": max_connections, "nodes": max_nodes}
        self._store = np.zeros(1, state.STORE)
        self._store["free_node"] = state.NO_NODE
        self._store["draw_limit"] = 1 << 32
        self._store["max_outstanding"] = max_outstanding
        self._store["max_gaps"] = max_gaps
        self._connections = np.zeros(min(_FIRST_CONNECTIONS, max_connections), state.CONNECTION)
        self._sides = np.zeros(2 * len(self._connections), state.DIRECTION)
        self._nodes = np.zeros(min(2 * (max_gaps + state.NODES_PER_PACKET), max_nodes), state.NODE)
        self._samples = SampleLog(max_samples, self._store[0])
        self._current = np.full(64, state.UNKNOWN, np.int32)
        self._hosts: tuple[str, ...] = ()
        self._endpoints: npt.NDArray[np.uint16] = np.zeros((0, 4), np.uint16)
        self._networks: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._make_room()

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.uint32]:
        """Follow the next packets; rows with ``skip`` (N,) set are as if not captured.

        Returns (N,) the connection of every row, an index of ``FlowSet.records``; NO_FLOW where the row is not followed.
        """
        self._hosts = table.hosts
        self._endpoints = table.flow_endpoints
        self._networks = table.flow_network
        self._grow_flows(len(table.flow_endpoints))
        connection_of = np.full(len(table), NO_FLOW, np.uint32)
        row = 0
        while True:
            row = kernel.follow_packets(
                row, table.time_ns, table.orig_len, table.kind, table.flow, table.payload, table.seq, table.ack,
                table.window, table.tcp_flags, table.wscale, _NO_SKIP if skip is None else skip, self._current,
                self._connections, self._sides, self._store, connection_of,
            )  # fmt: skip
            if row == len(table):
                break
            self._make_room()
        self._note_handshakes(table, connection_of)
        return connection_of

    def result(self) -> FlowSet:
        """What is known after the packets so far; ``update`` may go on afterwards."""
        store = self._store[0]
        count = int(store["connections"])
        connections, sides = self._connections[:count], self._sides[: 2 * count]
        short = short_way_data(connections, sides)
        left_out = np.zeros((count, state.SERIES, 2), np.bool_)
        left_out[short >= 0, state.RTT_NS, short[short >= 0]] = True
        return FlowSet.of_state(
            connections,
            sides,
            self._samples.grouped(store, left_out.ravel()),
            short,
            hosts=self._hosts,
            endpoints=self._endpoints,
            networks=self._networks,
            sampled_share=float(store["draw_limit"]) / 2**32,
            untracked_packets=int(store["untracked"]),
        )

    def _grow_flows(self, flows: int) -> None:
        known = len(self._current)
        if flows > known:
            grown = np.full(max(flows, 2 * known), state.UNKNOWN, np.int32)
            grown[:known] = self._current
            self._current = grown

    def _make_room(self) -> None:
        """Enlarge what is full; at its limit an array is declared full, and the kernel forgets instead."""
        store, limits = self._store[0], self._limits
        if store["connections"] == len(self._connections):
            self._connections = _enlarged(self._connections, limits["connections"])
            self._sides = _enlarged(self._sides, 2 * limits["connections"])
        spare = len(self._nodes) - store["nodes_used"] + store["free_nodes"]
        if spare < store["max_gaps"] + state.NODES_PER_PACKET:
            self._nodes = _enlarged(self._nodes, limits["nodes"])
        self._samples.make_room(store)
        store["connection_room"] = len(self._connections)
        store["connections_full"] = len(self._connections) >= limits["connections"]
        store["nodes"], store["node_room"] = self._nodes.ctypes.data, len(self._nodes)
        store["nodes_full"] = len(self._nodes) >= limits["nodes"]

    def _note_handshakes(self, table: PacketTable, connection_of: npt.NDArray[np.uint32]) -> None:
        """Who speaks on a connection, from the first BTL handshake of either side."""
        for row, jobid, vpid in table.btl_handshakes.tolist():
            index = int(connection_of[row])
            if index == NO_FLOW:
                continue
            side = self._sides[2 * index + (int(table.kind[row]) >> 7)]
            if side["vpid"] == state.UNKNOWN:
                side["vpid"] = vpid
                self._connections[index]["jobid"] = jobid
                self._connections[index]["btl_handshakes"] += 1
