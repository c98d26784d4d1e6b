"""Tables of the time by size, and of waiting explained by the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis import numbers
from analysis.conclusions import Diagnosis, Slice
from analysis.scaling import TimeRow, WireRow
from dashboard.labels import parameter_label, value_words


def breakdown(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return `names` of the other swept parameters, and the rows of both tables."""
    parts = diagnosis.slices
    names = list(dict.fromkeys(name for part in parts for name in part.where))

    def head(part: Slice, row: TimeRow | WireRow) -> dict[str, Any]:
        return {
            "where": [value_words(name, part.where.get(name)) for name in names],
            "size": value_words(diagnosis.axis, int(row.size)),
        }

    times = [head(part, row) | _time(row) for part in parts for row in part.time]
    wires = [
        head(part, row) | _wire(row) | {"beyond": _is_beyond(row, part.time)}
        for part in parts
        for row in part.wire
        if _explains(row)
    ]
    return {
        "names": [parameter_label(name) for name in names],
        "times": times,
        "wires": wires,
        "oversubscribed": any(row["oversubscribed"] for row in times),
        "profiled": any(row["profiled"] for row in times),
        "beyond": any(row["beyond"] for row in wires),
    }


def _is_beyond(row: WireRow, times: Sequence[TimeRow]) -> bool:
    off_cpu_s = next((time.off_cpu_s for time in times if time.size == row.size), None)
    return row.explained_s is not None and off_cpu_s is not None and row.explained_s > off_cpu_s


def _time(row: TimeRow) -> dict[str, Any]:
    shares = {
        "off_cpu_share": row.off_cpu_share,
        "load_balance": row.load_balance,
        "communication": row.communication_efficiency,
        "parallel": row.parallel_efficiency,
        "computation": row.computation_scaling,
    }
    words = {name: numbers.amount(share, numbers.SHARE) for name, share in shares.items()}
    flags = {"oversubscribed": row.oversubscribed, "profiled": row.profiled}
    return {"off_cpu": numbers.amount(row.off_cpu_s, "s"), **words, **flags}


def _explains(row: WireRow) -> bool:
    names_of_values = ("mean_bps", "peak_bps", "latency_s", "retransmission_s", "small_packet_share")
    return any(getattr(row, name) is not None for name in names_of_values)


def _wire(row: WireRow) -> dict[str, str]:
    bandwidth, volume = row.bandwidth_bps, row.volume_s if row.volume_s is not None else row.link_busy_s
    busy = numbers.amount(volume, "s")
    if row.volume_s is None and row.link_busy_s is not None and not row.busiest_link_known:
        busy = f"at most {busy}"
    return {
        "mean": _rate(row.mean_bps, None),  # total of all hosts: no share of one link
        "peak": _rate(row.peak_bps, bandwidth),
        "busy": busy,
        "latency": numbers.amount(row.latency_s, "s"),
        "retransmissions": _retransmissions(row),
        "small": numbers.amount(row.small_packet_share, numbers.SHARE),
    }


def _retransmissions(row: WireRow) -> str:
    """Return the waiting for retransmissions, or its upper bound."""
    ends = row.retransmission_s
    if row.retransmission_rate_bound is not None:
        return f"none, below {numbers.amount(row.retransmission_rate_bound, numbers.SHARE, 1)} of packets"
    if ends is None:
        return numbers.NOTHING
    return numbers.amount(ends[0], "s") if ends[0] == ends[1] else numbers.between(ends[0], ends[1], "s")


def _rate(value: float | None, bandwidth: float | None) -> str:
    share = f" ({numbers.amount(value / bandwidth, numbers.SHARE)})" if value is not None and bandwidth else ""
    return f"{numbers.amount(value, 'bit/s')}{share}"
