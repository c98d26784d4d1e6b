"""Who sent how much to whom: host x host over all IP packets, rank x rank over MPI connections.

Rows send, columns receive. Messages between ranks of one host that use shared memory never reach the wire; the launchers pin
``--mca btl tcp,self`` against that, and the result says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import pairs
from analysis.memory import reserved
from analysis.packets import MOST_FLOWS, PacketTable
from analysis.traffic.flows import FlowSet
from analysis.traffic.placed_ranks import PlacedRanks

LARGEST_MATRIX: Final = 256
"""Rows of a matrix handed out; beyond it those with least traffic are left out, and counted."""

MOST_PAIRS: Final = 2 * MOST_FLOWS
"""Ordered pairs of hosts that are counted, in 40 bytes each: two for every flow that has room."""

LARGEST_RANK: Final = 1 << 20
"""A BTL handshake naming a higher rank is not one."""

SHARED_MEMORY_NOTE: Final = (
    "Only what crossed the captured wire counts: messages between ranks of one host that use shared memory are missing "
    "(the launchers pin --mca pml ob1 --mca btl tcp,self)."
)
_VOLUMES: Final = ("packets", "wire_bytes", "payload_bytes")
_SOURCES: Final = ("btl_handshake", "launcher_map", "one_rank_per_host")
_HEARD, _TOLD, _PLACED = range(len(_SOURCES))
_NO_SKIP: Final = np.zeros(0, np.bool_)
Integers = npt.NDArray[np.int64]


class MatrixAccumulator:
    """Counts packets between hosts over successive tables whose ``src`` and ``dst`` numbers mean the same."""

    def __init__(self, most_pairs: int = MOST_PAIRS) -> None:
        self._slots = reserved(1 << (2 * most_pairs - 1).bit_length(), np.int32)
        self._keys, self._totals = reserved(most_pairs, np.int64), reserved((most_pairs, 3), np.int64)
        self._used = np.zeros(2, np.int64)
        self._hosts = Addresses()

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are as if not captured."""
        self._hosts = table.hosts
        pairs.count_pairs(
            table.kind, table.src, table.dst, table.orig_len, table.payload, _NO_SKIP if skip is None else skip,
            self._slots, self._keys, self._totals, self._used,
        )  # fmt: skip

    def result(
        self,
        flows: FlowSet,
        *,
        rank_map: Mapping[tuple[str, int], int] | None = None,
        jobid: int | None = None,
        placed: PlacedRanks | None = None,
    ) -> dict[str, Any]:
        """``{"hosts": matrix, "ranks": matrix}``, each JSON-ready: labels, and one list of rows per quantity.

        ``rank_map`` {(address, port): rank} serves connections without a captured BTL handshake; ``jobid`` chooses one of
        several MPI jobs (default: the one with most handshakes); ``placed`` says which ranks follow from the host alone. Packets
        to link-local multicast groups (neighbour discovery) are left out of the host matrix and counted as ``neighbourhood_packets``.
        """
        return {"hosts": self._host_matrix(flows), "ranks": rank_matrix(flows, rank_map or {}, jobid, placed)}

    def left_out(self) -> dict[str, int]:
        """Wire bytes of pairs without room."""
        return {"missed_by_pairs": int(self._used[pairs.MISSED])}

    def _host_matrix(self, flows: FlowSet) -> dict[str, Any]:
        source, target, totals = self._between_hosts()
        to_group = self._hosts.are_link_local_groups(target)
        neighbourhood_packets = int(totals[to_group, 0].sum())
        source, target, totals = source[~to_group], target[~to_group], totals[~to_group]
        weight = np.zeros(len(self._hosts), np.int64)
        np.add.at(weight, source, totals[:, 1])
        np.add.at(weight, target[source != target], totals[source != target, 1])
        seen = np.unique(np.concatenate([source, target]))
        heaviest = seen[np.argsort(-weight[seen], kind="stable")[:LARGEST_MATRIX]]
        largest = np.zeros(len(self._hosts), np.bool_)
        largest[heaviest] = True
        matrix = _Matrix(len(largest))
        inside = largest[source] & largest[target]
        matrix.add_volume(source[inside], target[inside], totals[inside])
        a, b = flows.records["host_a"], flows.records["host_b"]
        among = largest[a] & largest[b]
        matrix.add_tcp(a[among], b[among], flows.records, among)
        kept = self._hosts.in_order(np.flatnonzero(largest))
        return matrix.as_dict(kept, self._hosts.named(kept)) | {
            "omitted": len(seen) - len(kept),
            "neighbourhood_packets": neighbourhood_packets,
        }

    def _between_hosts(self) -> tuple[Integers, Integers, Integers]:
        """(sources, targets, totals) of all pairs of hosts with a number."""
        keys = self._keys[: self._used[pairs.TAKEN]]
        source, target = keys >> 32 & 0xFFFFFFFF, keys & 0xFFFFFFFF
        known = (source < len(self._hosts)) & (target < len(self._hosts))
        return source[known], target[known], self._totals[: len(keys)][known]


def rank_matrix(
    flows: FlowSet,
    rank_map: Mapping[tuple[str, int], int],
    jobid: int | None = None,
    placed: PlacedRanks | None = None,
) -> dict[str, Any]:
    """Rank x rank from the connections of one MPI job; ``source`` tells where the ranks come from.

    ``source`` is "btl_handshake", "launcher_map", "one_rank_per_host", "mixed", or None when no rank is known. ``by_host_alone``
    says why connections of an MPI library that names no ranks are missing here; None where none is.
    """
    placed = placed or PlacedRanks.in_flows(flows, None, {})
    records = flows.records
    jobs, counts = np.unique(records["jobid"][records["jobid"] >= 0], return_counts=True)
    if jobid is None and len(jobs):
        jobid = int(jobs[np.argmax(counts)])
    ours = np.flatnonzero((records["jobid"] == (-1 if jobid is None else jobid)) | (records["jobid"] < 0))
    ranks = np.stack([records["rank_a"][ours], records["rank_b"][ours]], axis=1)
    ranks = np.where(ranks < LARGEST_RANK, ranks, -1)
    sources = np.where(placed.ends[ours], _PLACED, np.where(ranks >= 0, _HEARD, _TOLD))
    nothing_heard = not (sources == _HEARD).any()
    if rank_map:
        for column, end in enumerate(("a", "b")):
            rows = np.flatnonzero(ranks[:, column] < 0)
            names = flows.hosts.named(records[f"host_{end}"][ours[rows]].tolist())
            ports = records[f"port_{end}"][ours[rows]].tolist()
            ranks[rows, column] = [rank_map.get(address, -1) for address in zip(names, ports, strict=True)]
    complete = (ranks >= 0).all(axis=1)
    mpi = (ranks >= 0).any(axis=1) | (placed.of_mpi[ours] & nothing_heard)
    nameless = np.zeros(len(records), np.bool_)
    nameless[ours] = mpi & ~complete & nothing_heard
    labels = np.unique(ranks[complete])
    matrix = _Matrix(len(labels))
    source, target = np.searchsorted(labels, ranks[complete]).T if complete.any() else np.zeros((2, 0), np.int64)
    matrix.add_connections(source, target, records[ours[complete]])
    return matrix.as_dict(range(len(labels)), [int(rank) for rank in labels]) | {
        "source": _source(sources[complete]),
        "jobid": jobid,
        "jobs": len(jobs),
        "connections_without_ranks": int(np.count_nonzero(mpi & ~complete)),
        "by_host_alone": placed.why_by_host(flows, nameless),
        "note": SHARED_MEMORY_NOTE,
    }


def _source(sources: Integers) -> str | None:
    kinds = np.unique(sources).tolist()
    return "mixed" if len(kinds) > 1 else _SOURCES[kinds[0]] if kinds else None


class _Matrix:
    """Sums over ordered pairs of numbered ends, kept as a list of pairs until the largest rows are known."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._volumes: dict[tuple[int, int], Integers] = {}
        self._repeated: dict[tuple[int, int], int] = {}
        self._rtt_min_s: dict[tuple[int, int], float] = {}

    def add_volume(self, source: Integers, target: Integers, totals: Integers) -> None:
        """``totals`` (n, 3): packets, wire bytes, payload bytes."""
        for pair, total in zip(zip(source.tolist(), target.tolist(), strict=True), totals, strict=True):
            self._volumes[pair] = self._volumes.get(pair, 0) + total

    def add_tcp(self, a: Integers, b: Integers, records: npt.NDArray[np.void], chosen: Any = slice(None)) -> None:
        """Retransmissions and smallest round trips of the ``chosen`` connections, between ``a`` and ``b``, both directions."""
        for source, target, way in ((a, b, "ab"), (b, a, "ba")):
            repeated, rtt_s = (records[f"{name}_{way}"][chosen] for name in ("retransmitted_segments", "rtt_min_s"))
            for pair, count, rtt in zip(
                zip(source.tolist(), target.tolist(), strict=True), repeated.tolist(), rtt_s.tolist(), strict=True
            ):
                self._repeated[pair] = self._repeated.get(pair, 0) + count
                if rtt == rtt:
                    self._rtt_min_s[pair] = min(rtt, self._rtt_min_s.get(pair, rtt))

    def add_connections(self, a: Integers, b: Integers, records: npt.NDArray[np.void]) -> None:
        """Everything that the connections say of the pair."""
        for source, target, way in ((a, b, "ab"), (b, a, "ba")):
            self.add_volume(source, target, np.stack([records[f"{name}_{way}"] for name in _VOLUMES], axis=1))
        self.add_tcp(a, b, records)

    def as_dict(self, order: Sequence[int], labels: list[Any]) -> dict[str, Any]:
        """Rows and columns in ``order``, named ``labels``; at most LARGEST_MATRIX of them, those with most wire bytes."""
        weight = np.zeros(self._size, np.int64)
        for (source, target), total in self._volumes.items():
            weight[[source, target]] += total[1]
        kept = set(sorted(order, key=lambda end: -int(weight[end]))[:LARGEST_MATRIX])
        places = {end: place for place, end in enumerate(end for end in order if end in kept)}
        cells: dict[str, list[list[Any]]] = {
            name: [[0] * len(places) for _ in places] for name in (*_VOLUMES, "retransmitted_segments")
        }
        cells["rtt_min_s"] = [[None] * len(places) for _ in places]
        for values, names in (
            (self._volumes, _VOLUMES),
            (self._repeated, ("retransmitted_segments",)),
            (self._rtt_min_s, ("rtt_min_s",)),
        ):
            for (source, target), value in values.items():
                if source in places and target in places:
                    for name, number in zip(names, np.atleast_1d(value).tolist(), strict=True):
                        cells[name][places[source]][places[target]] = number
        return {
            "labels": [label for end, label in zip(order, labels, strict=True) if end in places],
            "omitted": len(order) - len(places),
            **cells,
        }
