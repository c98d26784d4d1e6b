"""Traffic matrices: host x host over IP packets, rank x rank over connections.

Rows send, columns receive. Messages between ranks of one host that use shared memory never reach the wire; the launchers pin
``--mca btl tcp,self`` against that, and the result states it.
"""

from __future__ import annotations

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
"""Rows of a matrix; beyond it those with least traffic are omitted, and counted."""

MOST_PAIRS: Final = 2 * MOST_FLOWS
"""Capacity for ordered pairs of hosts, 40 bytes each: two per flow."""

LARGEST_RANK: Final = 1 << 20
"""A BTL handshake with a higher rank is invalid."""

SHARED_MEMORY_NOTE: Final = (
    "Only what crossed the captured wire counts: messages between ranks of one host that use shared memory are missing "
    "(the launchers pin --mca pml ob1 --mca btl tcp,self)."
)
_VOLUMES: Final = ("packets", "wire_bytes", "payload_bytes")
_SOURCES: Final = ("btl_handshake", "one_rank_per_host")
_HEARD, _PLACED = range(len(_SOURCES))
_NO_SKIP: Final = np.zeros(0, np.bool_)
Integers = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]


class MatrixAccumulator:
    """Counter of packets between hosts over successive tables of equal numbers."""

    def __init__(self, most_pairs: int = MOST_PAIRS) -> None:
        self._slots = reserved(1 << (2 * most_pairs - 1).bit_length(), np.int32)
        self._keys, self._totals = reserved(most_pairs, np.int64), reserved((most_pairs, 3), np.int64)
        self._used = np.zeros(2, np.int64)
        self._hosts = Addresses()

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are ignored."""
        self._hosts = table.hosts
        pairs.count_pairs(
            table.kind, table.src, table.dst, table.orig_len, table.payload, _NO_SKIP if skip is None else skip,
            self._slots, self._keys, self._totals, self._used,
        )  # fmt: skip

    def result(self, flows: FlowSet, placed: PlacedRanks | None = None) -> dict[str, Any]:
        """Return JSON-ready matrices of hosts and ranks: labels, and rows per quantity.

        Of several MPI jobs the one with most handshakes counts; ``placed`` are the ranks that follow from the host only. Packets to
        link-local multicast groups (neighbour discovery) are not in the host matrix; ``neighbourhood_packets`` counts them.
        """
        return {"hosts": self._host_matrix(flows), "ranks": rank_matrix(flows, placed)}

    def left_out(self) -> dict[str, int]:
        """Return the wire bytes of pairs without room."""
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
        largest = self._hosts.in_order(np.sort(heaviest))
        row = np.full(len(self._hosts), -1)
        row[largest] = np.arange(len(largest))
        inside = (row[source] >= 0) & (row[target] >= 0)
        a, b = row[flows.records["host_a"]], row[flows.records["host_b"]]
        among = (a >= 0) & (b >= 0)
        return _matrix(
            self._hosts.named(largest),
            (row[source[inside]], row[target[inside]], totals[inside]),
            (a[among], b[among]),
            flows.records,
            among,
        ) | {"omitted": len(seen) - len(largest), "neighbourhood_packets": neighbourhood_packets}

    def _between_hosts(self) -> tuple[Integers, Integers, Integers]:
        keys = self._keys[: self._used[pairs.TAKEN]]
        source, target = keys >> 32 & 0xFFFFFFFF, keys & 0xFFFFFFFF
        has_number = (source < len(self._hosts)) & (target < len(self._hosts))
        return source[has_number], target[has_number], self._totals[: len(keys)][has_number]


def rank_matrix(flows: FlowSet, placed: PlacedRanks | None = None) -> dict[str, Any]:
    """Return the rank matrix of the connections of one MPI job.

    ``source`` of the ranks is "btl_handshake", "one_rank_per_host", "mixed", or None without ranks. ``by_host_alone`` is the reason
    for missing connections of an MPI library that names no ranks, or None.
    """
    placed = placed or PlacedRanks.in_flows(flows, None, {})
    records = flows.records
    jobs, counts = np.unique(records["jobid"][records["jobid"] >= 0], return_counts=True)
    jobid = int(jobs[np.argmax(counts)]) if len(jobs) else None
    ours = np.flatnonzero((records["jobid"] == (-1 if jobid is None else jobid)) | (records["jobid"] < 0))
    ranks = np.stack([records["rank_a"][ours], records["rank_b"][ours]], axis=1)
    ranks = np.where(ranks < LARGEST_RANK, ranks, -1)
    sources = np.where(placed.ends[ours], _PLACED, _HEARD)
    nothing_heard = not ((sources == _HEARD) & (ranks >= 0)).any()
    complete = (ranks >= 0).all(axis=1)
    mpi = (ranks >= 0).any(axis=1) | (placed.of_mpi[ours] & nothing_heard)
    nameless = np.zeros(len(records), np.bool_)
    nameless[ours] = mpi & ~complete & nothing_heard
    labels = np.unique(ranks[complete])
    a, b = np.searchsorted(labels, ranks[complete]).reshape(-1, 2).T
    rows = ours[complete]
    sent, received = (np.stack([records[f"{name}_{way}"][rows] for name in _VOLUMES], axis=1) for way in ("ab", "ba"))
    weight = np.zeros(len(labels), np.int64)
    np.add.at(weight, a, sent[:, 1] + received[:, 1])
    np.add.at(weight, b[a != b], (sent + received)[a != b, 1])
    largest = np.sort(np.argsort(-weight, kind="stable")[:LARGEST_MATRIX])
    row = np.full(len(labels), -1)
    row[largest] = np.arange(len(largest))
    among = (row[a] >= 0) & (row[b] >= 0)
    a, b = row[a[among]], row[b[among]]
    volumes = np.concatenate([a, b]), np.concatenate([b, a]), np.concatenate([sent[among], received[among]])
    return _matrix(labels[largest].tolist(), volumes, (a, b), records, rows[among]) | {
        "omitted": len(labels) - len(largest),
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


def _matrix(
    labels: list[Any],
    volumes: tuple[Integers, Integers, Integers],
    ends: tuple[Integers, Integers],
    records: Records,
    chosen: npt.NDArray[Any],
) -> dict[str, Any]:
    """Return sums over ordered pairs of ends, numbered by ``labels``.

    ``volumes``: sources, targets and (n, 3) packets, wire bytes, payload bytes. ``ends``: those of the connections ``chosen`` from
    ``records``, whose retransmissions and smallest round trips count in both directions.
    """
    size = len(labels)
    totals = np.zeros((size, size, len(_VOLUMES)), np.int64)
    np.add.at(totals, volumes[:2], volumes[2])
    repeated, rtt_s = np.zeros((size, size), np.int64), np.full((size, size), np.inf)
    for pair, way in ((ends, "ab"), (ends[::-1], "ba")):
        np.add.at(repeated, pair, records[f"retransmitted_segments_{way}"][chosen])
        np.fmin.at(rtt_s, pair, records[f"rtt_min_s_{way}"][chosen])
    return {
        "labels": labels,
        **{name: totals[:, :, column].tolist() for column, name in enumerate(_VOLUMES)},
        "retransmitted_segments": repeated.tolist(),
        "rtt_min_s": [[value if value < np.inf else None for value in row] for row in rtt_s.tolist()],
    }
