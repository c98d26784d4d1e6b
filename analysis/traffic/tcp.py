"""The TCP pass: packet tables in, connections out, chunk by chunk.

Definitions and their origin:

retransmission
    a segment whose payload range overlaps payload already seen from that side; bytes = the overlap (tcptrace). SYN and
    FIN are no payload. Keep-alives and zero-window probes count separately.
out of order
    starts before a recorded segment (a FIN is one) and fills a gap never seen before (tcptrace). **Ambiguous**: those of them that came
    no sooner than one round trip after the gap was visible (or with no round trip known), so that a retransmission of
    something lost before the capture point looks the same.
keep-alive, zero-window probe
    no FIN or SYN, at most one byte, one below the next number, everything acknowledged (Wireshark, plus the last
    condition and not for a repeated last segment of one byte: those are retransmissions). While the peer's window is zero that is a
    zero-window probe, as is data at the left edge of the closed window.
duplicate ACK
    the highest ACK again, no payload, SYN or FIN, same raw window, data outstanding (RFC 5681 section 2). Triple: the third
    consecutive one.
zero window
    window field 0 without SYN, FIN, RST (Wireshark).  **Window full**: payload that reaches the right edge of the peer's scaled
    window (Wireshark, but >= where it has =).
RTT sample
    a pure ACK that acknowledges new payload: time since the newest never-repeated byte it covers was sent (Karn's rule); none
    if a repetition that it covers was sent after that byte, because the ACK may have waited for it. Payload or FIN on the
    acknowledging segment makes it a response latency. A capture point close to one host (ten times, and 0.1 ms, by the
    halves of the handshake) has round trips of that host only in one direction: a flow's ``rtt_*`` exclude those, its
    ``rtt_min_s_ab``, ``_ba`` and ``rtt_samples_ab``, ``_ba`` include both.
bytes in flight
    highest sequence end sent - highest ACK received, after every segment with payload.
ACKed unseen
    ACKs that cover, for the first time, bytes above everything seen (Wireshark's "ACKed unseen segment") or inside a gap
    (bytes that passed the capture point unseen). Not those whose bytes are recorded within 1 ms (Wireshark counts
    them): a bridge forwards a frame before it is recorded, and processors record in parallel.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import tcp as kernel
from analysis.kernels import tcp_state as state
from analysis.memory import reserved
from analysis.packets import ENDS, MOST_FLOWS, NO_FLOW, PacketTable
from analysis.traffic.flow_records import assemble, short_way_data
from analysis.traffic.flows import FlowSet, Limits
from analysis.traffic.tcp_samples import SampleLog, quantiles_of_each

_NO_SKIP: Final = np.zeros(0, np.bool_)


class TcpAccumulator:
    """Follower of all TCP connections through successive tables.

    Their flow numbers are the same (capture.stream). Memory is bounded: packets of more than ``max_connections``
    connections are counted and left out. Each direction remembers at most ``max_outstanding`` unacknowledged segments
    and ``max_gaps`` gaps, all lists together ``max_nodes`` entries of 32 bytes. ``max_samples`` round trips, response
    latencies and flight sizes are kept for quantiles (16 bytes each); beyond it an even share of them, chosen by
    ordinal. ``FlowSet.limits`` counts what was dropped. Splitting the packets into other chunks never changes a result.
    """

    def __init__(
        self,
        *,
        max_connections: int = MOST_FLOWS,
        max_outstanding: int = 4096,
        max_gaps: int = 1024,
        max_nodes: int = 1 << 19,
        max_samples: int = 1 << 19,
    ) -> None:
        self._store = np.zeros(1, state.STORE)
        self._store["free_node"] = state.NO_NODE
        self._store["draw_limit"] = 1 << 32
        self._store["max_outstanding"] = max_outstanding
        self._store["max_gaps"] = max_gaps
        self._connections = reserved(max_connections, state.CONNECTION)
        self._sides = reserved(2 * max_connections, state.DIRECTION)
        self._nodes = reserved(max_nodes, state.NODE)
        self._store["nodes"], self._store["node_room"] = self._nodes.ctypes.data, max_nodes
        self._samples = SampleLog(max_samples, self._store[0])
        self._current = reserved(MOST_FLOWS, np.int32)
        self._hosts = Addresses()
        self._endpoints: npt.NDArray[np.void] = np.zeros(0, ENDS)
        self._networks: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.uint32]:
        """Follow the next packets; rows with ``skip`` (N,) set are ignored.

        Returns the connection of every row (N,), an index of ``FlowSet.records``; NO_FLOW if the row is not followed.
        """
        self._hosts = table.hosts
        self._endpoints = table.flow_endpoints
        self._networks = table.flow_network
        connection_of = np.empty(len(table), np.uint32)
        row = noted = 0
        while True:
            row = kernel.follow_packets(
                row, table.time_ns, table.orig_len, table.kind, table.flow, table.payload, table.seq, table.ack,
                table.window, table.tcp_flags, table.wscale, _NO_SKIP if skip is None else skip, self._current,
                self._connections, self._sides, self._store, connection_of,
            )  # fmt: skip
            self._note_handshakes(table, connection_of, noted, row)
            noted = row
            if row == len(table):
                return connection_of
            self._samples.make_room(self._store[0])

    def result(self) -> FlowSet:
        """Return the connections so far; ``update`` may continue afterwards."""
        store = self._store[0]
        count = int(store["connections"])
        connections, sides = self._connections[:count], self._sides[: 2 * count]
        short = short_way_data(connections, sides)
        left_out = np.zeros((count, state.SERIES, 2), np.bool_)
        left_out[np.flatnonzero(short >= 0), state.RTT_NS, short[short >= 0]] = True
        samples, begins = self._samples.grouped(store, left_out.ravel())
        described = quantiles_of_each(samples, begins).reshape(-1, state.SERIES, 2)
        records, windows = assemble(connections, sides, described, short, self._endpoints)
        limits = Limits(
            untracked_packets=int(store["untracked"]),
            gaps_forgotten=int(sides["gaps_forgotten"].sum()),
            segments_forgotten=int(sides["segments_forgotten"].sum()),
            sampled_share=float(store["draw_limit"]) / 2**32,
        )
        return FlowSet(records, self._hosts, self._networks, limits, windows, samples, begins)

    def _note_handshakes(
        self, table: PacketTable, connection_of: npt.NDArray[np.uint32], first: int, behind: int
    ) -> None:
        """Record jobs and ranks from the first signature of each side."""
        if not len(table.btl_handshakes):
            return
        named = table.named_ranks(first, behind)
        named = named[connection_of[named[:, 0]] != NO_FLOW]
        sides = 2 * connection_of[named[:, 0]].astype(np.int64) + named[:, 1]
        silent = self._sides["vpid"][sides] == state.UNKNOWN
        named, sides = named[silent], sides[silent]
        sides, heard = np.unique(sides, return_index=True)
        self._sides["vpid"][sides] = named[heard, 3]
        heard = np.sort(heard)  # the later of two contradictory ones determines the job
        index = connection_of[named[heard, 0]]
        self._connections["jobid"][index] = named[heard, 2]
        np.add.at(self._connections["btl_handshakes"], index, 1)
