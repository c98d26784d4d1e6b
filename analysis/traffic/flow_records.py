"""Rows of connections from the state of the TCP pass, with names, units and sides."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses
from analysis.kernels import tcp_state as state
from analysis.packets import GENEVE, GRE, NO_TIME, VXLAN

BTL_HANDSHAKE_BYTES: Final = 24
"""First bytes of Open MPI's TCP BTL on a connection: jobid, vpid, "OPAL-TCP-BTL" (docs/reference/metrics.md, Matrices)."""

_IDENTITY: Final = [
    ("flow", np.int64), ("host_a", np.int64), ("port_a", np.int64), ("host_b", np.int64), ("port_b", np.int64),
    ("handshake", np.int64), ("jobid", np.int64), ("rank_a", np.int64), ("rank_b", np.int64), ("aborted", np.bool_),
    ("first_ns", np.int64), ("last_ns", np.int64), ("btl_handshakes", np.int64), ("rtt_of", np.int64),
]  # fmt: skip
_PER_SIDE: Final = ("window_mean_bytes", "window_min_bytes", "bytes_in_flight_max", "rtt_min_s")
_MEASURED: Final = (
    "duration_s", "goodput_bps", "rtt_handshake_s", "rtt_half_a_s", "rtt_half_b_s", "rtt_min_s", "rtt_median_s", "rtt_p95_s",
    "response_latency_s", "response_latency_p95_s", "bytes_in_flight_p95", "bdp_bytes",
)  # fmt: skip
FLOW: Final = np.dtype(
    _IDENTITY
    + [(f"{name}_{way}", np.int64) for name in state.COUNTERS for way in ("ab", "ba")]
    + [(f"{name}_{way}", np.float64) for name in _PER_SIDE for way in ("ab", "ba")]
    + [(name, np.float64) for name in _MEASURED]
)
"""A connection. ``host_*`` index the hosts; -1 is unknown in integers, NaN not available in floats; ``_ab`` is sent by a."""

HANDSHAKES: Final = {
    state.HANDSHAKE_NONE: "none",
    state.HANDSHAKE_SYN: "partial",
    state.HANDSHAKE_SYN_ACK: "partial",
    state.HANDSHAKE_DONE: "complete",
    state.HANDSHAKE_UNTIMED: "complete",
}
RTT_OF: Final = ("both", "ab", "ba")
"""Values of FLOW's rtt_of: the direction whose data gave the flow's round trips."""

_NETWORKS: Final = {VXLAN: "VXLAN", GENEVE: "GENEVE", GRE: "GRE"}
_AT_ONCE: Final = 1 << 11
"""Connections whose sides are copied at a time."""

CLEARLY_LONGER: Final = 10
CLEARLY_LONGER_S: Final = 1e-4
"""Ratio and difference of the halves of a handshake; below either, scheduling noise dominates."""

Records = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]


def short_way_data(connections: Records, sides: Records) -> npt.NDArray[np.int64]:
    """Return the direction of data that cross only a short part of the path, or -1.

    Directions are rows of ``sides``. At a host, its own ACKs follow the data within microseconds, which is no round trip of the path.
    The halves of the handshake show the side; if they are similar, or the longer way has no round trips, the result is -1.
    """
    opener = np.maximum(connections["initiator"], 0)
    numbers = np.arange(len(connections))
    of_a, of_b = 2 * numbers + opener, 2 * numbers + 1 - opener
    a_syn_ns, b_syn_ns = sides["syn_ns"][of_a], sides["syn_ns"][of_b]
    half_a_s = _seconds_between(connections["final_ack_ns"], b_syn_ns)
    half_b_s = _seconds_between(np.where(connections["final_ack_ns"] == NO_TIME, NO_TIME, b_syn_ns), a_syn_ns)
    clear = np.abs(half_a_s - half_b_s) > CLEARLY_LONGER_S
    near_a = clear & (CLEARLY_LONGER * half_a_s < half_b_s) & (sides["rtt_samples"][of_a] > 0)
    near_b = clear & (CLEARLY_LONGER * half_b_s < half_a_s) & (sides["rtt_samples"][of_b] > 0)
    return np.where(near_a, 1 - opener, np.where(near_b, opener, -1))


def assemble(
    connections: Records,
    sides: Records,
    described: Floats,
    short: npt.NDArray[np.int64],
    endpoints: Records,
) -> tuple[Records, Floats]:
    """Return rows (C,) of dtype FLOW, and sum and number (C, 2) of windows.

    ``described`` (C, kind, 2) is median and 95 % quantile of the samples: ns, ns, bytes; ``endpoints`` (F,) as in PacketTable.
    """
    count = len(connections)
    records, windows = np.zeros(count, FLOW), np.zeros((count, 2))
    for first in range(0, count, _AT_ONCE):
        of_sides = sides[2 * first : 2 * (first + _AT_ONCE)]
        rows = slice(first, min(first + _AT_ONCE, count))
        windows[rows] = _fill(records[rows], connections[rows], of_sides, described[rows], short[rows], endpoints)
    return records, windows


def _fill(
    records: Records,
    connections: Records,
    sides: Records,
    described: Floats,
    short: npt.NDArray[np.int64],
    endpoints: Records,
) -> Floats:
    """Fill ``records`` from the same rows of the other arrays; return their windows."""
    turned = np.maximum(connections["initiator"], 0)
    numbers = np.arange(len(connections))
    # take copies records as bytes, an index field by field, which takes 20 times as long
    a, b = sides.take(2 * numbers + turned), sides.take(2 * numbers + 1 - turned)
    for name in ("flow", "jobid", "btl_handshakes", "handshake", "first_ns", "last_ns"):
        records[name] = connections[name]
    for name, of_ends in (("host", endpoints["hosts"]), ("port", endpoints["ports"])):
        records[f"{name}_a"] = of_ends[connections["flow"], turned]
        records[f"{name}_b"] = of_ends[connections["flow"], 1 - turned]
    for name in state.COUNTERS:
        records[f"{name}_ab"], records[f"{name}_ba"] = a[name], b[name]
    records["rtt_of"] = np.where(short < 0, 0, np.where(short == turned, 2, 1))
    records["rank_a"], records["rank_b"] = a["vpid"], b["vpid"]
    records["aborted"] = _is_aborted(records)
    windows = _fill_sides(records, a, b)
    _fill_times(records, connections, a, b, described)
    return windows


def _is_aborted(records: Records) -> npt.NDArray[np.bool_]:
    """Find losers of simultaneous connects: one BTL handshake only, then closed."""
    payload = records["payload_bytes_ab"] + records["payload_bytes_ba"]
    closed = sum(records[f"{name}_{way}"] for name in ("fins", "rsts") for way in ("ab", "ba")) > 0
    aborted: npt.NDArray[np.bool_] = (records["btl_handshakes"] == 1) & (payload == BTL_HANDSHAKE_BYTES) & closed
    return aborted


def _fill_sides(records: Records, a: Records, b: Records) -> Floats:
    """Fill windows, flight and round trips of each direction; return the windows."""
    unscaled = (a["wscale"] == state.UNKNOWN) | (b["wscale"] == state.UNKNOWN)
    is_known = unscaled | ((a["wscale"] != state.NO_SYN) & (b["wscale"] != state.NO_SYN))
    totals = np.zeros((len(records), 2))
    for way, side in (("ab", a), ("ba", b)):
        shift = np.where(unscaled | ~is_known, 0, np.maximum(side["wscale"], 0))
        number = np.where(is_known, side["window_count"] + side["syn_window_count"], 0)
        total = np.where(is_known, (side["window_sum"] << shift) + side["syn_window_sum"], 0)
        least = np.minimum(side["window_min"] << shift, side["syn_window_min"])
        records[f"window_mean_bytes_{way}"] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
        records[f"window_min_bytes_{way}"] = np.where(number > 0, least, np.nan)
        records[f"bytes_in_flight_max_{way}"] = np.where(side["in_flight_max"] >= 0, side["in_flight_max"], np.nan)
        records[f"rtt_min_s_{way}"] = np.where(side["rtt_min_ns"] >= 0, side["rtt_min_ns"] * 1e-9, np.nan)
        totals += np.stack([total, number], axis=1)
    return totals


def _seconds_between(later_ns: Any, earlier_ns: Any) -> Floats:
    is_known = (later_ns != NO_TIME) & (earlier_ns != NO_TIME)
    return np.where(is_known, (np.where(is_known, later_ns, 0) - np.where(is_known, earlier_ns, 0)) * 1e-9, np.nan)


def _fill_times(records: Records, connections: Records, a: Records, b: Records, described: Floats) -> None:
    final_ack_ns = connections["final_ack_ns"]
    answered_ns = np.where(final_ack_ns == NO_TIME, NO_TIME, b["syn_ns"])
    records["rtt_handshake_s"] = _seconds_between(final_ack_ns, a["syn_ns"])
    records["rtt_half_a_s"] = _seconds_between(final_ack_ns, b["syn_ns"])
    records["rtt_half_b_s"] = _seconds_between(answered_ns, a["syn_ns"])
    records["rtt_median_s"], records["rtt_p95_s"] = described[:, state.RTT_NS].T * 1e-9
    records["response_latency_s"], records["response_latency_p95_s"] = described[:, state.RESPONSE_NS].T * 1e-9
    records["bytes_in_flight_p95"] = described[:, state.IN_FLIGHT_BYTES, 1]
    # the running minimum includes samples that a full sample store has dropped
    least = np.fmin(records["rtt_min_s_ab"], records["rtt_min_s_ba"])
    one_way = np.where(records["rtt_of"] == 1, records["rtt_min_s_ab"], records["rtt_min_s_ba"])
    records["rtt_min_s"] = np.where(records["rtt_of"] == 0, least, one_way)
    duration = _seconds_between(records["last_ns"], records["first_ns"])
    records["duration_s"] = duration
    goodput = (records["goodput_bytes_ab"] + records["goodput_bytes_ba"]).astype(np.float64)
    rate = np.divide(goodput, duration, out=np.full(len(records), np.nan), where=duration > 0)
    records["goodput_bps"] = 8 * rate
    records["bdp_bytes"] = rate * records["rtt_min_s"]


def _closings(records: Records) -> list[str]:
    reset = records["rsts_ab"] + records["rsts_ba"] > 0
    ends = (records["fins_ab"] > 0).astype(np.int64) + (records["fins_ba"] > 0)
    names = np.array(["open", "half-closed", "closed", "reset"])
    closings: list[str] = names[np.where(reset, 3, ends)].tolist()
    return closings


def _network_name(network: int) -> str | None:
    if not network:
        return None
    kind, number = network >> 32, network & 0xFFFFFFFF
    return f"{_NETWORKS[kind]} {number}" if kind in _NETWORKS else f"nested {network:x}"


def _or_none(values: npt.NDArray[Any], unknown: Any) -> list[Any]:
    missing = np.isnan(values) if values.dtype.kind == "f" else values == unknown
    plain: list[Any] = values.tolist()
    for row in missing.nonzero()[0].tolist():
        plain[row] = None
    return plain


def rtt_samples(records: Records) -> npt.NDArray[np.int64]:
    """Return the number of round trips of ``rtt_*_s`` of each row, shape (C,)."""
    ab, ba = records["rtt_samples_ab"], records["rtt_samples_ba"]
    chosen: npt.NDArray[np.int64] = np.where(records["rtt_of"] == 2, 0, ab) + np.where(records["rtt_of"] == 1, 0, ba)
    return chosen


def rows(
    records: Records, numbers: npt.NDArray[np.int64], hosts: Addresses, networks: npt.NDArray[np.uint64]
) -> list[dict[str, Any]]:
    """Return JSON-ready rows: sums by catalogue id, directions by id_ab, id_ba.

    ``network`` is the virtual network, if the capture has any.
    """
    columns: dict[str, list[Any]] = {"connection": numbers.tolist(), "flow": records["flow"].tolist()}
    for end in ("a", "b"):
        columns[f"host_{end}"] = hosts.named(records[f"host_{end}"].tolist())
        columns[f"port_{end}"] = records[f"port_{end}"].tolist()
    if networks.any():
        columns["network"] = [_network_name(int(networks[flow])) for flow in records["flow"].tolist()]
    columns["handshake"] = [HANDSHAKES[value] for value in records["handshake"].tolist()]
    columns["closing"] = _closings(records)
    columns["aborted"] = records["aborted"].tolist()
    for name in ("rank_a", "rank_b", "jobid"):
        columns[name] = _or_none(records[name], state.UNKNOWN)
    columns["start_ns"] = _or_none(records["first_ns"], NO_TIME)
    for name in state.COUNTERS:
        columns[name] = (records[f"{name}_ab"] + records[f"{name}_ba"]).tolist()
    columns["rtt_samples"] = rtt_samples(records).tolist()
    columns["rtt_of"] = [RTT_OF[value] for value in records["rtt_of"].tolist()]
    identity = {name for name, _ in _IDENTITY}
    for name in records.dtype.names or ():
        if name not in identity:
            values = records[name]
            columns[name] = _or_none(values, NO_TIME) if values.dtype.kind == "f" else values.tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
