"""Connections: one row per TCP connection, and the metrics of any set of them.

A connection is a 4-tuple and an initial sequence number: reused ports make a new one, idle time does not. ``a`` sent the SYN, or the
first packet if no handshake was captured. ``_ab`` is sent by a.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import tcp_state as state
from analysis.traffic.flow_records import rows, rtt_samples
from analysis.traffic.tcp_samples import quantiles_of

Pair = tuple[float, float]
"""Median and 95 % quantile of all samples, NaN without samples."""
Numbers = dict[str, int | float]
Reasons = dict[str, str]

SUMMED: Final = (
    "retransmitted_segments", "retransmitted_bytes", "out_of_order_segments", "ambiguous_segments", "keep_alives",
    "zero_window_probes", "duplicate_acks", "triple_duplicate_acks", "zero_window_events", "window_full_events",
    "acked_unseen_segments", "goodput_bytes",
)  # fmt: skip
_TIMES: Final = ("rtt_min_s", "rtt_median_s", "rtt_p95_s")
_WINDOWS: Final = ("window_mean_bytes", "window_min_bytes")
_FLIGHTS: Final = ("bytes_in_flight_max", "bytes_in_flight_p95")
HALVES: Final = ("rtt_handshake_s", "rtt_half_a_s", "rtt_half_b_s")
_CONNECTIONS: Final = ("connections", "flows_without_handshake", "aborted_connections")
IDS: Final = (
    *_CONNECTIONS,
    *SUMMED,
    *_WINDOWS,
    *_FLIGHTS,
    *HALVES,
    "rtt_samples",
    *_TIMES,
    "response_latency_s",
    "bdp_bytes",
)
"""All ids that ``FlowSet.metrics`` returns, or returns a reason for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Data dropped for bounded memory: zeros (a share of 1) on ordinary captures."""

    untracked_packets: int = 0
    gaps_forgotten: int = 0
    segments_forgotten: int = 0
    sampled_share: float = 1.0


@dataclass(frozen=True, slots=True)
class FlowSet:
    """All connections of a capture by first packet; ``records`` (C,) of FLOW."""

    records: npt.NDArray[np.void]
    hosts: Addresses = field(default_factory=Addresses)
    networks: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Shape (F,): the virtual network of every flow (PacketTable); (0,) if unknown."""
    limits: Limits = field(default_factory=Limits)
    windows: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)), repr=False)
    """Shape (C, 2): sum and number of the windows whose scale is known, both directions."""
    samples: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """Round trips, latencies (ns) and flight sizes (bytes), by connection and kind."""
    begins: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64), repr=False)
    """Start of each series of ``samples``: (connection * 3 + kind) * 2 + direction."""

    def __len__(self) -> int:
        return len(self.records)

    def chosen(self, flow_mask: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.bool_]:
        """Return the connections, shape (C,), whose flow is set in ``flow_mask`` (F,)."""
        if flow_mask is None:
            return np.ones(len(self.records), np.bool_)
        padded = np.zeros(max(len(flow_mask), int(self.records["flow"].max(initial=-1)) + 1), np.bool_)
        padded[: len(flow_mask)] = flow_mask
        chosen: npt.NDArray[np.bool_] = padded[self.records["flow"]]
        return chosen

    def pooled(self, kind: int, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return all samples of one kind (tcp_state.RTT_NS ...) of the chosen connections."""
        of_kind = np.zeros((len(chosen), state.SERIES), np.bool_)
        of_kind[:, kind] = chosen
        pooled: npt.NDArray[np.int64] = self.samples[np.repeat(of_kind, np.diff(self.begins[::2]))]
        return pooled

    def metrics(self, flow_mask: npt.NDArray[np.bool_] | None = None) -> tuple[dict[str, int | float], dict[str, str]]:
        """Return (metrics, not_available) of all connections or those of ``flow_mask``."""
        chosen = self.chosen(flow_mask)
        everything = bool(chosen.all())
        return _metrics_of(
            self.records if everything else self.records.take(np.flatnonzero(chosen)),
            self.windows if everything else self.windows[chosen],
            rtt_ns=quantiles_of(self.pooled(state.RTT_NS, chosen)),
            response_ns=quantiles_of(self.pooled(state.RESPONSE_NS, chosen)),
            in_flight_bytes=quantiles_of(self.pooled(state.IN_FLIGHT_BYTES, chosen)),
        )

    def flows(self, flow_mask: npt.NDArray[np.bool_] | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """Return JSON-ready rows; ``limit`` keeps those with most wire bytes."""
        numbers = np.flatnonzero(self.chosen(flow_mask))
        if limit is not None and len(numbers) > limit:
            volume = self.records["wire_bytes_ab"][numbers] + self.records["wire_bytes_ba"][numbers]
            numbers = np.sort(numbers[np.argsort(-volume, kind="stable")[:limit]])
        return rows(self.records.take(numbers), numbers, self.hosts, self.networks)


def _metrics_of(
    records: npt.NDArray[np.void],
    windows: npt.NDArray[np.float64],
    *,
    rtt_ns: Pair,
    response_ns: Pair,
    in_flight_bytes: Pair,
) -> tuple[Numbers, Reasons]:
    """Combine connections (C,) of dtype FLOW: sums, pooled samples, medians.

    ``windows`` is (C, 2), sum and number of advertised windows. bdp_bytes is the largest of any connection.
    """
    metrics: Numbers = {"connections": len(records)}
    if not metrics["connections"]:
        return metrics, dict.fromkeys(IDS[1:], "no TCP connection")
    missing: Reasons = {}
    unopened = records["syns_ab"] + records["syns_ba"] == 0
    metrics["flows_without_handshake"] = int(np.count_nonzero(unopened))
    metrics["aborted_connections"] = int(np.count_nonzero(records["aborted"]))
    halves = {name: _median(values) for name in HALVES if len(values := _timed(records, name))}
    for name in SUMMED:
        metrics[name] = int(records[f"{name}_ab"].sum() + records[f"{name}_ba"].sum())
    for part in (
        _window_metrics(records, windows, metrics),
        _flight_metrics(records, in_flight_bytes, metrics),
        _handshake_metrics(records, halves, metrics),
        _rtt_metrics(records, rtt_ns, response_ns, metrics),
    ):
        missing |= part
    return metrics, missing


def _window_metrics(records: npt.NDArray[np.void], windows: npt.NDArray[np.float64], metrics: Numbers) -> Reasons:
    total, number = windows.sum(axis=0)
    if number == 0:
        del metrics["window_full_events"]
        return dict.fromkeys((*_WINDOWS, "window_full_events"), "no SYN captured, so the window scale is unknown")
    metrics["window_mean_bytes"] = float(total / number)
    metrics["window_min_bytes"] = int(_least(records, "window_min_bytes"))
    return {}


def _flight_metrics(records: npt.NDArray[np.void], in_flight_bytes: Pair, metrics: Numbers) -> Reasons:
    if np.isnan(in_flight_bytes[1]):
        return dict.fromkeys(_FLIGHTS, "no data after a first ACK")
    highest = np.fmax(records["bytes_in_flight_max_ab"], records["bytes_in_flight_max_ba"])
    metrics["bytes_in_flight_max"] = int(np.nanmax(highest))
    metrics["bytes_in_flight_p95"] = in_flight_bytes[1]
    return {}


def _timed(records: npt.NDArray[np.void], name: str) -> npt.NDArray[np.float64]:
    times: npt.NDArray[np.float64] = records[name][~np.isnan(records["rtt_handshake_s"])]
    return times


def _median(values: npt.NDArray[np.float64]) -> float:
    """Return the median; numpy's check for NaN would double the time."""
    middle = len(values) // 2
    around = np.partition(values, (max(middle - 1, 0), middle))
    return float(around[middle] if len(values) % 2 else (around[middle - 1] + around[middle]) / 2)


def _handshake_metrics(records: npt.NDArray[np.void], halves: dict[str, float], metrics: Numbers) -> Reasons:
    metrics.update(halves)
    if halves:
        return {}
    seen = np.any(records["handshake"] != state.HANDSHAKE_NONE)
    reason = "no handshake without a repeated or lost packet" if seen else "no handshake captured"
    return dict.fromkeys(HALVES, reason)


def _rtt_metrics(records: npt.NDArray[np.void], rtt_ns: Pair, response_ns: Pair, metrics: Numbers) -> Reasons:
    missing: Reasons = {}
    metrics["rtt_samples"] = int(rtt_samples(records).sum())
    if not np.isnan(rtt_ns[0]):
        metrics["rtt_min_s"] = float(np.nanmin(records["rtt_min_s"]))
        metrics["rtt_median_s"], metrics["rtt_p95_s"] = rtt_ns[0] * 1e-9, rtt_ns[1] * 1e-9
    else:
        missing |= dict.fromkeys(_TIMES, "no pure ACK of captured data")
    if not np.isnan(response_ns[0]):
        metrics["response_latency_s"] = response_ns[0] * 1e-9
    else:
        missing["response_latency_s"] = "no ACK of captured data on a segment with payload"
    products = records["bdp_bytes"][~np.isnan(records["bdp_bytes"])]
    if len(products):
        metrics["bdp_bytes"] = float(products.max())
    else:
        missing["bdp_bytes"] = "no connection with a round trip and a duration"
    return missing


def _least(records: npt.NDArray[np.void], name: str) -> Any:
    return np.nanmin(np.fmin(records[f"{name}_ab"], records[f"{name}_ba"]))
