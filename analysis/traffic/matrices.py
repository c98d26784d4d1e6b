"""Who sent how much to whom: host x host over all IP packets, rank x rank over MPI connections.

Rows send, columns receive. Messages between ranks of one host that use shared memory never reach the wire; the launchers pin
``--mca btl tcp,self`` against that, and the result says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import pairs
from analysis.numbers import amount, grouped
from analysis.packets import PacketTable
from analysis.traffic.flows import FlowSet
from analysis.traffic.placed_ranks import PlacedRanks

LARGEST_MATRIX: Final = 256
"""Rows of a matrix handed out; beyond it those with least traffic are left out, and counted."""

MOST_PAIRS: Final = 1 << 20
"""Pairs of hosts that are counted exactly, in 40 bytes each; beyond them those with fewest bytes are dropped again and again."""

_MANY_PAIRS: Final = 1 << 14
"""Of so many room for all is taken at once: what nobody has touched is no memory."""

LARGEST_RANK: Final = 1 << 20
"""A BTL handshake naming a higher rank is not one."""

SHARED_MEMORY_NOTE: Final = (
    "Only what crossed the captured wire counts: messages between ranks of one host that use shared memory are missing "
    "(the launchers pin --mca pml ob1 --mca btl tcp,self)."
)
_VOLUMES: Final = ("packets", "wire_bytes", "payload_bytes")
_SOURCES: Final = ("btl_handshake", "launcher_map", "one_rank_per_host")
_HEARD, _TOLD, _PLACED = range(len(_SOURCES))
_AT_ONCE: Final = 1 << 14
"""Pairs, or hosts, that are looked at together."""
_NO_SKIP: Final = np.zeros(0, np.bool_)
Integers = npt.NDArray[np.int64]


class MatrixAccumulator:
    """Counts packets between hosts over successive tables whose ``src`` and ``dst`` numbers mean the same."""

    def __init__(self, most_pairs: int = MOST_PAIRS) -> None:
        self._most = most_pairs
        self._missed_bytes = 0
        self._room = 64
        self._slots = np.zeros(2 * self._room, np.int32)
        self._keys, self._totals = np.empty(self._room, np.int64), np.empty((self._room, 3), np.int64)
        self._used = np.zeros(2, np.int64)
        self._hosts = Addresses()
        self._gone = _Ends()

    def update(self, table: PacketTable, skip: npt.NDArray[np.bool_] | None = None) -> None:
        """Add the next packets; rows with ``skip`` (N,) set are as if not captured."""
        self._hosts = table.hosts
        row = 0
        while True:
            row = pairs.count_pairs(
                row, table.kind, table.src, table.dst, table.orig_len, table.payload,
                _NO_SKIP if skip is None else skip, self._slots, self._keys[: self._room], self._totals, self._used,
            )  # fmt: skip
            if row == len(table):
                return
            self._make_room()

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

    @property
    def hosts(self) -> int:
        """Addresses seen so far."""
        return len(self._hosts)

    def left_out(self) -> dict[str, int]:
        """The most bytes that any pair of hosts may have more than the matrix says."""
        return {"missed_by_pairs": self._missed()}

    def notes(self) -> list[str]:
        """What bounded memory cost."""
        if not self._missed():
            return []
        lost = amount(self._missed(), "B")
        what = (
            f"more than {grouped(self._most)} pairs of hosts"
            if self._missed_bytes
            else "addresses chosen to lie together"
        )
        return [f"{what}: the host matrix may miss {lost} of any pair"]

    def _missed(self) -> int:
        """Wire bytes that any pair may lack: of pairs that made room, and of all whose addresses were chosen to find no slot."""
        return self._missed_bytes + int(self._used[pairs.MISSED])

    def _make_room(self) -> None:
        """A larger table; at the limit the half of the pairs with fewest bytes is dropped, and the most that a pair lost is kept."""
        if self._room < self._most:
            self._room = min(2 * self._room, self._most)
            if self._room > len(self._keys):
                held, room = len(self._keys), self._room if self._room < _MANY_PAIRS else self._most
                keys, totals = np.empty(room, np.int64), np.empty((room, 3), np.int64)
                keys[:held], totals[:held] = self._keys, self._totals
                self._keys, self._totals = keys, totals
            self._slots = np.zeros(1 << (2 * self._room - 1).bit_length(), np.int32)
        else:
            self._drop_the_lighter()
            self._slots[:] = 0
        pairs.enter_pairs(self._keys[: self._used[0]], self._slots)

    def _drop_the_lighter(self) -> None:
        """Half of the pairs, and of equal ones those that came first; in little memory, because there is none left then."""
        wire_bytes, half = self._totals[: self._room, 1], self._room // 2
        limit = np.partition(wire_bytes, half)[half]
        leaving = wire_bytes < limit
        leaving[np.flatnonzero(wire_bytes == limit)[: half - np.count_nonzero(leaving)]] = True
        self._add_up(self._gone, leaving)
        self._missed_bytes += int(limit)
        self._used[0] = 0
        for first in range(0, len(leaving), _AT_ONCE):
            staying = first + np.flatnonzero(~leaving[first : first + _AT_ONCE])
            places = slice(int(self._used[0]), int(self._used[0]) + len(staying))
            self._keys[places], self._totals[places] = self._keys[staying], self._totals[staying]
            self._used[0] += len(staying)

    def _host_matrix(self, flows: FlowSet) -> dict[str, Any]:
        ends = self._gone.copy()
        self._add_up(ends)
        largest = ends.heaviest()
        matrix = _Matrix(len(largest))
        for source, target, totals in self._pairs():
            inside = np.flatnonzero(largest[source] & largest[target])
            inside = inside[~self._hosts.are_link_local_groups(target[inside])]
            matrix.add_volume(source[inside], target[inside], totals[inside])
        a, b = flows.records["host_a"], flows.records["host_b"]
        among = largest[a] & largest[b]
        matrix.add_tcp(a[among], b[among], flows.records, among)
        kept = self._hosts.in_order(np.flatnonzero(largest))
        return matrix.as_dict(kept, self._hosts.named(kept)) | {
            "omitted": int(np.count_nonzero(ends.seen)) - len(kept),
            "neighbourhood_packets": ends.neighbourhood_packets,
        }

    def _add_up(self, ends: _Ends, among: npt.NDArray[np.bool_] | None = None) -> None:
        ends.make_room(len(self._hosts))
        for source, target, totals in self._pairs(among):
            ends.add(source, target, totals, self._hosts.are_link_local_groups(target))

    def _pairs(self, among: npt.NDArray[np.bool_] | None = None) -> Iterator[tuple[Integers, Integers, Integers]]:
        """(sources, targets, totals) of all pairs of known hosts or those ``among``, some at a time: all would double the memory."""
        for first in range(0, int(self._used[0]), _AT_ONCE):
            behind = min(first + _AT_ONCE, int(self._used[0]))
            rows: Any = slice(first, behind) if among is None else first + np.flatnonzero(among[first:behind])
            keys = self._keys[rows]
            source, target = keys >> 32 & 0xFFFFFFFF, keys & 0xFFFFFFFF
            known = (source < len(self._hosts)) & (target < len(self._hosts))
            yield source[known], target[known], self._totals[rows][known]


class _Ends:
    """Of every host whether it was seen and its bytes, sent and received; exact, also of pairs that are gone."""

    def __init__(self) -> None:
        self.seen, self._weight = np.zeros(0, np.bool_), np.zeros(0, np.int64)
        self.neighbourhood_packets = 0

    def copy(self) -> _Ends:
        other = _Ends()
        other.seen, other._weight = self.seen.copy(), self._weight.copy()
        other.neighbourhood_packets = self.neighbourhood_packets
        return other

    def make_room(self, hosts: int) -> None:
        for held in (self.seen, self._weight):
            held.resize(hosts, refcheck=False)

    def add(self, source: Integers, target: Integers, totals: Integers, to_group: npt.NDArray[np.bool_]) -> None:
        """``totals`` (n, 3) as in the matrix; what went to a group is of the neighbourhood, and of no host."""
        self.neighbourhood_packets += int(totals[to_group, 0].sum())
        source, target, wire_bytes = source[~to_group], target[~to_group], totals[~to_group, 1]
        self.seen[source] = self.seen[target] = True
        np.add.at(self._weight, source, wire_bytes)
        np.add.at(self._weight, target[source != target], wire_bytes[source != target])

    def heaviest(self) -> npt.NDArray[np.bool_]:
        """Shape (hosts,): the LARGEST_MATRIX hosts with most bytes of those that were seen."""
        places = np.zeros(0, np.int64)
        for first in range(0, len(self.seen), _AT_ONCE):
            places = np.concatenate([places, first + np.flatnonzero(self.seen[first : first + _AT_ONCE])])
            places = np.sort(places[np.argsort(-self._weight[places], kind="stable")[:LARGEST_MATRIX]])
        chosen = np.zeros(len(self.seen), np.bool_)
        chosen[places] = True
        return chosen


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
