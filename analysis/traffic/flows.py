"""Connections and what they measured: one row per TCP connection, and the sums of any set of them.

A connection is a 4-tuple and an initial sequence number: ports used again make a new one, idleness never does. ``a`` is the
side that sent the SYN, or, where no handshake was captured, the sender of the first packet. ``_ab`` is what a sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import tcp_state as state
from analysis.kernels.samples import pool_pairs
from analysis.traffic.flow_metrics import capture_metrics
from analysis.traffic.flow_records import assemble, rows
from analysis.traffic.tcp_samples import quantiles_of, quantiles_of_each


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounded memory made the pass forget; all zero (and a share of 1) on ordinary captures."""

    untracked_packets: int = 0
    gaps_forgotten: int = 0
    segments_forgotten: int = 0
    sampled_share: float = 1.0


@dataclass(frozen=True, slots=True)
class FlowSet:
    """All connections of a capture: ``records`` has shape (C,) and dtype FLOW, in order of their first packets."""

    records: npt.NDArray[np.void]
    hosts: Addresses = field(default_factory=Addresses)
    networks: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Shape (F,): the virtual network of every flow (capture.virtual_networks); (0,) where none is known."""
    limits: Limits = field(default_factory=Limits)
    windows: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)), repr=False)
    """Shape (C, 2): sum and number of the windows whose scale is known, both directions."""
    samples: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """Round trips, latencies (ns) and flight sizes (bytes), by connection and kind."""
    begins: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64), repr=False)
    """Where each series of ``samples`` begins: (connection * 3 + kind) * 2 + direction."""

    def __len__(self) -> int:
        return len(self.records)

    @property
    def torn_by_networks(self) -> int:
        """How many connections have each direction in a virtual network of its own, as behind a router that is in several places at once:
        each of the two halves is a row.
        """
        if not self.networks.any():
            return 0
        network = self.networks[self.records["flow"]]
        sent_a, sent_b = (self.records[f"packets_{way}"] > 0 for way in ("ab", "ba"))
        halves: dict[tuple[int, ...], set[int]] = {}
        torn = 0
        for row in np.flatnonzero((network > 0) & (sent_a != sent_b)).tolist():
            a, b = (tuple(self.records[[f"host_{end}", f"port_{end}"]][row].tolist()) for end in ("a", "b"))
            way, back = ((*a, *b), (*b, *a)) if sent_a[row] else ((*b, *a), (*a, *b))
            torn += bool(halves.get(back, set()) - {int(network[row])})
            halves.setdefault(way, set()).add(int(network[row]))
        return torn

    @classmethod
    def of_state(
        cls,
        connections: npt.NDArray[np.void],
        sides: npt.NDArray[np.void],
        samples: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
        short: npt.NDArray[np.int64],
        *,
        hosts: Addresses,
        endpoints: npt.NDArray[np.void],
        networks: npt.NDArray[np.uint64],
        limits: Limits,
    ) -> FlowSet:
        """Read the state of the TCP pass (kernels.tcp_state) and keep nothing of it but ``samples``: values and begins.

        ``short`` is what ``flow_records.short_way_data`` gave.
        """
        values, begins = samples
        described = quantiles_of_each(values, begins).reshape(-1, state.SERIES, 2)
        records, windows = assemble(connections, sides, described, short, endpoints)
        return cls(records, hosts, networks, limits, windows, values, begins=begins)

    def chosen(self, flow_mask: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Shape (C,): connections whose flow is set in ``flow_mask`` (F,); flows beyond its end are not."""
        if flow_mask is None:
            return np.ones(len(self.records), np.bool_)
        padded = np.zeros(max(len(flow_mask), int(self.records["flow"].max(initial=-1)) + 1), np.bool_)
        padded[: len(flow_mask)] = flow_mask
        chosen: npt.NDArray[np.bool_] = padded[self.records["flow"]]
        return chosen

    def pooled(self, kind: int, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """All samples of one kind (tcp_state.RTT_NS, RESPONSE_NS, IN_FLIGHT_BYTES) of the chosen connections."""
        pairs = np.flatnonzero(chosen) * state.SERIES + kind
        pooled: npt.NDArray[np.int64] = pool_pairs(self.samples, self.begins, pairs)
        return pooled

    def metrics(self, flow_mask: npt.NDArray[np.bool_] | None = None) -> tuple[dict[str, int | float], dict[str, str]]:
        """Section 5 of the catalogue over all connections or those of ``flow_mask`` (F,): values, and reasons for absences."""
        chosen = self.chosen(flow_mask)
        everything = bool(chosen.all())
        return capture_metrics(
            self.records if everything else self.records.take(np.flatnonzero(chosen)),
            self.windows if everything else self.windows[chosen],
            rtt_ns=quantiles_of(self.pooled(state.RTT_NS, chosen)),
            response_ns=quantiles_of(self.pooled(state.RESPONSE_NS, chosen)),
            in_flight_bytes=quantiles_of(self.pooled(state.IN_FLIGHT_BYTES, chosen)),
        )

    def flows(self, flow_mask: npt.NDArray[np.bool_] | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """JSON-ready rows in order of first packet; ``limit`` keeps those with most wire bytes. Not available: None."""
        numbers = np.flatnonzero(self.chosen(flow_mask))
        if limit is not None and len(numbers) > limit:
            volume = self.records["wire_bytes_ab"][numbers] + self.records["wire_bytes_ba"][numbers]
            numbers = np.sort(numbers[np.argsort(-volume, kind="stable")[:limit]])
        return rows(self.records.take(numbers), numbers, self.hosts, self.networks)
