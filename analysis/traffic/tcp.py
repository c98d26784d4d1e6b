"""The TCP pass: packet tables in, connections out, chunk by chunk.

Definitions and their origin:

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

from analysis.addresses import Addresses
from analysis.kernels import set_aside as set_aside_kernel
from analysis.kernels import tcp as kernel
from analysis.kernels import tcp_state as state
from analysis.packets import ENDS, NO_FLOW, PacketTable
from analysis.traffic.flow_records import assemble, short_way_data
from analysis.traffic.flows import AMONG_MPI, AMONG_NONE, FlowSet, Limits
from analysis.traffic.set_aside import Aside
from analysis.traffic.tcp_samples import SampleLog

_FIRST_CONNECTIONS: Final = 64
_AT_ONCE: Final = 1 << 11
"""Connections whose records are copied at the same time: fresh memory would cost more than the work."""
_MANY_FLOWS, _ALL_FLOWS = 1 << 16, 1 << 21
_FIRST_RESTS: Final = 2 * _ALL_FLOWS
"""Of so many flows room for all is taken at once: what nobody has touched is no memory, and arrays that grow leave holes between others."""
_NO_SKIP: Final = np.zeros(0, np.bool_)


def _enlarge(held: npt.NDArray[Any], limit: int) -> None:
    """Twice the room, at most ``limit`` entries; new entries are zero. In place where the system can: fresh memory costs time."""
    held.resize(min(2 * len(held), max(limit, len(held))), refcheck=False)


class TcpAccumulator:
    """Follows every TCP connection through successive tables whose ``flow`` numbers mean the same (see capture.stream).

    Memory is bounded: ``max_connections`` connections are followed at the same time; when there are more, the half with fewest
    bytes is set aside (summed up, and remembered in 24 bytes so that it may go on), ``most_times`` at most; then, and
    without ``set_aside``, further ones are left out. Each direction remembers at most ``max_outstanding``
    unacknowledged segments and ``max_gaps`` gaps, all lists together ``max_nodes`` entries of 32 bytes. ``max_samples`` round
    trips, response latencies and flight sizes are kept for quantiles (16 bytes each); beyond it an even share of them,
    chosen by ordinal. Lists become short once they were walked through for more than ``most_steps`` entries (and 64 for
    each packet). Whatever was forgotten is counted in ``FlowSet.limits``. Splitting the packets into other chunks never changes a result.
    """

    def __init__(
        self,
        *,
        max_connections: int = 1 << 15,
        max_outstanding: int = 4096,
        max_gaps: int = 1024,
        max_nodes: int = 1 << 19,
        max_samples: int = 1 << 19,
        set_aside: bool = True,
        most_times: int = 160,
        most_steps: int = state.STEPS_AT_FIRST,
    ) -> None:
        self._times_left = most_times if set_aside and max_connections > 1 else 0
        self._aside: tuple[Aside, Aside] | None = None
        self._rests = np.empty(0, set_aside_kernel.REST)
        self._rests_used = 0
        self._limits = {"connections": max_connections, "nodes": max_nodes}
        self._store = np.zeros(1, state.STORE)
        self._store["free_node"] = state.NO_NODE
        self._store["draw_limit"] = 1 << 32
        self._store["max_outstanding"] = max_outstanding
        self._store["max_gaps"] = max_gaps
        self._store["steps_left"] = most_steps
        self._connections = np.zeros(min(_FIRST_CONNECTIONS, max_connections), state.CONNECTION)
        self._sides = np.zeros(2 * len(self._connections), state.DIRECTION)
        self._nodes = np.zeros(min(2 * (max_gaps + state.NODES_PER_PACKET), max_nodes), state.NODE)
        self._samples = SampleLog(max_samples, self._store[0])
        self._current = self._flow_room = np.full(64, state.UNKNOWN, np.int32)
        self._hosts = Addresses()
        self._endpoints: npt.NDArray[np.void] = np.zeros(0, ENDS)
        self._networks: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._make_room()

    def update(
        self,
        table: PacketTable,
        skip: npt.NDArray[np.bool_] | None = None,
        member: npt.NDArray[np.bool_] | None = None,
    ) -> npt.NDArray[np.uint32]:
        """Follow the next packets; rows with ``skip`` (N,) set are as if not captured, ``member`` says which flows carry MPI.

        Returns (N,) the connection of every row, an index of ``FlowSet.records`` (while none is set aside); NO_FLOW where the row
        is not followed.
        """
        self._hosts = table.hosts
        self._endpoints = table.flow_endpoints
        self._networks = table.flow_network
        self._grow_flows(len(table.flow_endpoints))
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
            if self._is_full() and self._times_left:
                self._times_left -= 1
                self._set_aside(member if member is not None else np.zeros(0, np.bool_))
            self._make_room()

    @property
    def has_set_aside(self) -> bool:
        """Whether connections made room for others."""
        return self._aside is not None

    def _is_full(self) -> bool:
        return int(self._store["connections"][0]) >= self._limits["connections"]

    def _set_aside(self, member: npt.NDArray[np.bool_]) -> None:
        """Sum up the half of the connections with fewest bytes, the latest quarter spared, and move the others together."""
        count = int(self._store["connections"][0])
        connections, sides = self._connections[:count], self._sides[: 2 * count]
        volume = sides["wire_bytes"].reshape(-1, 2).sum(axis=1)
        order = np.argsort(volume[: count - count // 4], kind="stable")
        leaving = np.sort(order[: (count + 1) // 2])
        staying = np.setdiff1d(np.arange(count), leaving, assume_unique=True)
        short = np.full(count, -1, np.int64)
        of_mpi = np.zeros(count, np.int64)
        told = leaving[connections["flow"][leaving] < len(member)]
        of_mpi[told] = member[connections["flow"][told]]
        for first in range(0, len(leaving), _AT_ONCE):
            some = leaving[first : first + _AT_ONCE]
            gone, gone_sides = connections.take(some), sides.take(np.stack([2 * some, 2 * some + 1], axis=1).ravel())
            short[some] = short_way_data(gone, gone_sides)
            self._sum_up(gone, gone_sides, short[some], of_mpi[some])
            self._keep_rests(some, gone, gone_sides)
        set_aside_kernel.lists_given_back(leaving, self._sides, self._store)

        places = np.full(count, state.UNKNOWN, np.int64)
        places[staying] = np.arange(len(staying))
        self._renumber_samples(places, leaving, of_mpi[leaving], short[leaving])
        flows = connections["flow"][staying]
        current = self._current[flows] == staying
        self._current[flows[current]] = places[staying[current]]
        set_aside_kernel.move_together(staying, connections, sides)
        connections[len(staying) :].view(np.uint8).fill(0)
        sides[2 * len(staying) :].view(np.uint8).fill(0)
        self._store["connections"] = len(staying)

    def _sum_up(self, gone: Any, sides: Any, short: npt.NDArray[np.int64], of_mpi: npt.NDArray[np.int64]) -> None:
        self._aside = self._aside or (Aside(), Aside())
        nothing = np.full((len(gone), state.SERIES, 2), np.nan)
        records, windows = assemble(gone, sides, nothing, short, self._endpoints)
        for kind, aside in enumerate(self._aside):
            chosen = np.flatnonzero(of_mpi == kind)
            aside.add(records.take(chosen), windows[chosen])

    def _keep_rests(self, leaving: npt.NDArray[np.int64], gone: Any, sides: Any) -> None:
        """Remember those that were alive, and say at every flow what became of its connection."""
        a, b = sides[0::2], sides[1::2]
        ended = (a["rsts"] + b["rsts"] > 0) | ((a["fins"] > 0) & (b["fins"] > 0))
        packets, bytes_seen = a["packets"] + b["packets"], a["payload_bytes"] + b["payload_bytes"]
        opened = (gone["handshake"] == state.HANDSHAKE_SYN) & (packets == 1) & (bytes_seen == 0) & (gone["rest"] < 0)
        alive = ~ended & ((packets > 1) | (bytes_seen > 0) | (gone["rest"] >= 0))
        latest = self._current[gone["flow"]] == leaving
        kept = leaving[alive & latest]
        places = gone["rest"][alive & latest].copy()
        fresh = places < 0
        places[fresh] = self._rests_used + np.arange(np.count_nonzero(fresh))
        self._rests_used += int(np.count_nonzero(fresh))
        if not len(self._rests):
            self._rests = np.empty(_FIRST_RESTS, set_aside_kernel.REST)
        if 2 * self._rests_used > len(self._rests):
            self._rests.resize(max(2 * self._rests_used, len(self._rests) + len(self._rests) // 8), refcheck=False)
        set_aside_kernel.keep_rests(kept, places, self._connections, self._sides, self._rests)
        self._current[gone["flow"][latest]] = set_aside_kernel.NOTHING_KEPT
        isn = np.where(gone["initiator"] == 0, a["isn"], b["isn"])
        of_opened = set_aside_kernel.opened_entries(isn, gone["initiator"])
        self._current[gone["flow"][latest & opened]] = of_opened[latest & opened]
        self._current[self._connections["flow"][kept]] = set_aside_kernel.NOTHING_KEPT - 1 - places
        self._store["rests"], self._store["rest_room"] = self._rests.ctypes.data, len(self._rests)

    def _renumber_samples(
        self,
        places: npt.NDArray[np.int64],
        leaving: npt.NDArray[np.int64],
        of_mpi: npt.NDArray[np.int64],
        short: npt.NDArray[np.int64],
    ) -> None:
        """Samples follow their connections; those of connections set aside go behind all others, but for what ``short`` leaves out."""
        behind = self._limits["connections"]
        numbers = np.where(places < 0, 0, places)
        numbers[leaving] = behind + of_mpi
        per_side = np.arange(2 * state.SERIES)
        series = 2 * state.SERIES * numbers[:, None] + per_side
        left_out = short >= 0
        series[leaving[left_out], 2 * state.RTT_NS + short[left_out]] = 2 * state.SERIES * (behind + AMONG_NONE)
        following = np.arange(2 * state.SERIES * len(places), 2 * state.SERIES * (behind + AMONG_NONE + 1))
        self._samples.renumber(self._store[0], np.concatenate([series.ravel(), following]))

    def conclude(self) -> FlowSet:
        """``result``, after which nothing is added: what was kept for that gives room to it."""
        self._rests, self._current, self._flow_room = (
            self._rests[:0].copy(),
            self._current[:0].copy(),
            self._current[:0].copy(),
        )
        flows = self.result()
        self._connections, self._sides, self._nodes = (
            held[:0].copy() for held in (self._connections, self._sides, self._nodes)
        )
        return flows

    def result(self) -> FlowSet:
        """What is known after the packets so far; ``update`` may go on afterwards."""
        store = self._store[0]
        count = int(store["connections"])
        connections, sides = self._connections[:count], self._sides[: 2 * count]
        short = short_way_data(connections, sides)
        groups = count if self._aside is None else self._limits["connections"] + AMONG_NONE + 1
        left_out = np.zeros((groups, state.SERIES, 2), np.bool_)
        left_out[np.flatnonzero(short >= 0), state.RTT_NS, short[short >= 0]] = True
        values, begins = self._samples.grouped(store, left_out.ravel())
        if self._aside is not None:  # between the last connection and those set aside there is nothing
            between = slice(2 * state.SERIES * count, 2 * state.SERIES * self._limits["connections"])
            begins = np.delete(begins, between)
        return FlowSet.of_state(
            connections,
            sides,
            (values, begins),
            short,
            hosts=self._hosts,
            endpoints=self._endpoints,
            networks=self._networks,
            limits=self._forgotten(sides),
            aside=self._aside,
        )

    def _forgotten(self, sides: npt.NDArray[np.void]) -> Limits:
        store, gone = self._store[0], self._aside or ()
        gaps, segments = (
            int(sides[name].sum()) + sum(int(part.row[f"{name}_{way}"][0]) for part in gone for way in ("ab", "ba"))
            for name in ("gaps_forgotten", "segments_forgotten")
        )
        return Limits(
            untracked_packets=int(store["untracked"]),
            gaps_forgotten=gaps,
            segments_forgotten=segments,
            sampled_share=float(store["draw_limit"]) / 2**32,
            set_aside=sum(part.connections for part in gone),
            resumed=int(store["resumed"]),
            interrupted=int(store["interrupted"]),
            repeated_aside=sum(
                int(part.row[f"retransmitted_segments_{way}"][0]) for part in gone for way in ("ab", "ba")
            ),
            mpi_aside=self._aside[AMONG_MPI].connections if self._aside else 0,
        )

    def _grow_flows(self, flows: int) -> None:
        known = len(self._current)
        if flows > known:
            wanted = max(flows, known + known // 4)
            if wanted > len(self._flow_room):
                room = np.empty(max(wanted, _ALL_FLOWS if wanted > _MANY_FLOWS else 0), np.int32)
                room[:known] = self._current
                self._flow_room = room
            self._current = self._flow_room[:wanted]
            self._current[known:] = state.UNKNOWN

    def _make_room(self) -> None:
        """Enlarge what is full; at its limit an array is declared full, and the kernel forgets instead."""
        store, limits = self._store[0], self._limits
        if store["connections"] == len(self._connections):
            _enlarge(self._connections, limits["connections"])
            _enlarge(self._sides, 2 * limits["connections"])
        spare = len(self._nodes) - store["nodes_used"] + store["free_nodes"]
        if spare < store["max_gaps"] + state.NODES_PER_PACKET:
            _enlarge(self._nodes, limits["nodes"])
        self._samples.make_room(store)
        store["connection_room"] = len(self._connections)
        store["connections_full"] = len(self._connections) >= limits["connections"] and not self._times_left
        store["nodes"], store["node_room"] = self._nodes.ctypes.data, len(self._nodes)
        store["nodes_full"] = len(self._nodes) >= limits["nodes"]

    def _note_handshakes(
        self, table: PacketTable, connection_of: npt.NDArray[np.uint32], first: int, behind: int
    ) -> None:
        """Who speaks on a connection, from the first greeting of either side; rows ``first`` to ``behind``."""
        if not len(table.btl_handshakes):
            return
        said = table.named_ranks(first, behind)
        said = said[connection_of[said[:, 0]] != NO_FLOW]
        sides = 2 * connection_of[said[:, 0]].astype(np.int64) + said[:, 1]
        silent = self._sides["vpid"][sides] == state.UNKNOWN
        said, sides = said[silent], sides[silent]
        sides, heard = np.unique(sides, return_index=True)
        self._sides["vpid"][sides] = said[heard, 3]
        heard = np.sort(heard)  # of two that contradict each other the later one names the job
        index = connection_of[said[heard, 0]]
        self._connections["jobid"][index] = said[heard, 2]
        np.add.at(self._connections["btl_handshakes"], index, 1)
