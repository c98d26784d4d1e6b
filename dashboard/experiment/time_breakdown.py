"""Where the time of every size goes, and how much of the waiting the wire can explain, as words for a table."""

from __future__ import annotations

from typing import Any

from analysis import numbers
from analysis.findings import Diagnosis, Slice
from analysis.scaling import TimeRow, WireRow
from dashboard.labels import parameter_label, value_words


def breakdown(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return `names` of the other swept parameters, and the rows of both tables; empty where nothing was measured."""
    parts = diagnosis.slices
    names = list(dict.fromkeys(name for part in parts for name in part.where))

    def head(part: Slice, row: TimeRow | WireRow) -> dict[str, Any]:
        return {
            "where": [value_words(name, part.where.get(name)) for name in names],
            "size": value_words(diagnosis.axis, int(row.size)),
        }

    times = [head(part, row) | _time(row) for part in parts for row in part.time]
    wires = [head(part, row) | _wire(row) for part in parts for row in part.wire if _explains(row)]
    return {
        "names": [parameter_label(name) for name in names],
        "times": times,
        "wires": wires,
        "oversubscribed": any(row["oversubscribed"] for row in times),
    }


def _time(row: TimeRow) -> dict[str, Any]:
    return {
        "off_cpu": _seconds(row.off_cpu_s),
        "off_cpu_share": _percent(row.off_cpu_share),
        "load_balance": _percent(row.load_balance),
        "communication": _percent(row.communication_efficiency),
        "parallel": _percent(row.parallel_efficiency),
        "computation": _percent(row.computation_scaling),
        "oversubscribed": row.oversubscribed,
    }


def _explains(row: WireRow) -> bool:
    """Whether the captures tell anything of this size."""
    told = ("mean_bps", "peak_bps", "latency_s", "retransmission_s", "small_packet_share")
    return any(getattr(row, name) is not None for name in told)


def _wire(row: WireRow) -> dict[str, str]:
    bandwidth, busy = row.bandwidth_bps, _seconds(row.link_busy_s)
    if row.link_busy_s is not None and not row.busiest_link_known:
        busy = f"at most {busy}"
    return {
        "mean": _rate(row.mean_bps, None),  # of all hosts together: no share of one link
        "peak": _rate(row.peak_bps, bandwidth),
        "busy": busy,
        "latency": _seconds(row.latency_s),
        "retransmissions": _retransmissions(row),
        "small": _percent(row.small_packet_share),
    }


def _retransmissions(row: WireRow) -> str:
    """Seconds from one round trip to one time-out each; where there was none, what the packets rule out."""
    ends = row.retransmission_s
    if row.retransmission_rate_bound is not None:
        return f"none, below {numbers.significant(100 * row.retransmission_rate_bound, 1)} % of packets"
    return numbers.NOTHING if ends is None else f"{_seconds(ends[0])} to {_seconds(ends[1])}"


def _seconds(value: float | None) -> str:
    if value is None:
        return numbers.NOTHING
    number, unit = numbers.quantity(value, "s")
    return f"{number}{numbers.NARROW}{unit}"


def _rate(value: float | None, bandwidth: float | None) -> str:
    if value is None:
        return numbers.NOTHING
    number, unit = numbers.quantity(value, "bit/s")
    share = f" ({numbers.significant(100 * value / bandwidth, 2)} %)" if bandwidth else ""
    return f"{number}{numbers.NARROW}{unit}{share}"


def _percent(share: float | None) -> str:
    return numbers.NOTHING if share is None else f"{100 * share:.1f} %"
