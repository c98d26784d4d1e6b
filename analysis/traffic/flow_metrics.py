"""The TCP metrics of a set of connections, by catalogue id, with a reason for every one that is absent."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import tcp_state as state
from analysis.traffic.flow_records import rtt_samples

Pair = tuple[float, float]
"""Median and 95 % quantile of all samples together, NaN where there are none."""
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
"""Every id that ``capture_metrics`` gives, or gives a reason for."""


def capture_metrics(
    records: npt.NDArray[np.void],
    windows: npt.NDArray[np.float64],
    *,
    rtt_ns: Pair,
    response_ns: Pair,
    in_flight_bytes: Pair,
) -> tuple[Numbers, Reasons]:
    """Over the connections ``records`` (C,) of dtype FLOW: counts summed, samples pooled, handshake times by their median.

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
    """Of one value at least, none of them NaN, for which numpy's would look: half of its time where there are few."""
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
