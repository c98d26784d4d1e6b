"""Rules about the network: full links, windows, round trips and retransmissions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.conclusions.observations.reading import Observation, Reading, SizeEntry
from analysis.conclusions.rules.registry import Finding, finding, rule
from analysis.conclusions.sentences.findings import (
    BANDWIDTH_ASKED,
    BANDWIDTH_STATED,
    BASE,
    OUTSIDE_COMPUTING,
    UPPER_BOUND,
    bursts_reach,
    retransmission_cost,
)
from analysis.conclusions.wording import amount, percent, sizes
from analysis.numbers import plural
from analysis.scaling import Point
from analysis.scaling.breakdown import WireRow, busiest_link_share, wire_part

_FULL: Final = 0.8
_PEAK_FULL: Final = 0.9
_BOUND: Final = 0.7
"""A flow at this share of a limit is taken to be set by it: averages over its life include its pauses."""
_SMALLEST_FLOW: Final = 0.01
"""Flows with a smaller share of the payload do not matter to the run."""
_RETRANSMITTED: Final = 0.001
_SEGMENT_BYTES: Final = 1448
"""Payload of a full segment on plain Ethernet with time stamps."""


@dataclass(frozen=True, slots=True)
class _Load:
    """The load of the busiest link at one point: mean and peak."""

    point: Point
    row: WireRow
    mean: float
    peak: float

    @classmethod
    def of(cls, point: Point, row: WireRow) -> _Load:
        bandwidth = row.bandwidth_bps or 1.0
        mean = (row.mean_bps or 0.0) * (busiest_link_share(point.host_matrix) or 1.0) / bandwidth
        return cls(point, row, mean, (row.peak_bps or 0.0) / bandwidth)

    @property
    def link(self) -> str:
        return amount(self.row.bandwidth_bps, "bit/s")


@rule
def link_load(reading: Reading) -> Iterator[Finding]:
    """Report a full link, bursts that fill it, or that it is never full."""
    loads = [
        _Load.of(entry.point, row)
        for entry, row in zip(reading.times, wire_part(reading.study), strict=True)
        if row.mean_bps is not None and row.bandwidth_bps
    ]
    if not loads:
        return
    rows = [load.row for load in loads]
    busiest, bursts = max(loads, key=lambda load: load.mean), max(loads, key=lambda load: load.peak)
    is_exact = all(row.busiest_link_known for row in rows) or reading.study.capture_at == "host"
    evidence = (
        *(Observation("Mean rate", row.mean_bps or 0.0, "bit/s", "throughput_bps", row.size) for row in rows),
        *(
            Observation("Peak rate of a port, 10 ms", row.peak_bps, "bit/s", "port_peak_10ms_bps", row.size)
            for row in rows
            if row.peak_bps
        ),
        *(Observation("Bandwidth", rate, "bit/s") for rate in dict.fromkeys(r.bandwidth_bps or 0.0 for r in rows)),
    )
    doubt = "" if reading.study.link_certified else BANDWIDTH_ASKED
    caveat = " ".join(
        filter(None, (doubt if reading.study.link_made else BANDWIDTH_STATED, "" if is_exact else UPPER_BOUND))
    )
    strength, share = reading.strength(doubtful=bool(caveat)), busiest.mean
    if share >= _FULL and is_exact:
        words = {"at": reading.at(busiest.point), "share": percent(min(share, 1.0)), "link": busiest.link}
        yield finding("link_load, saturated", strength, evidence, explains=share, caveat=caveat, **words)
    elif bursts.peak >= _PEAK_FULL:
        words = {"at": reading.at(bursts.point), "share": percent(min(bursts.mean, 1.0))}
        words["peak"] = bursts_reach(bursts.peak, bursts.link)
        yield finding("link_load, bursts", strength, evidence, explains=bursts.mean, caveat=caveat, **words)
    else:
        most = f"{'at most' if share < _FULL or is_exact else 'up to'} {percent(share)}"
        at = reading.at(*(load.point for load in loads))
        yield finding("link_load", strength, evidence, caveat=caveat, at=at, most=most, link=busiest.link)


_Judge = Callable[[Mapping[str, Any]], float | None]


@rule
def bound_flows(reading: Reading) -> Iterator[Finding]:
    """Report flows at the limit window / round trip, and latency-bound flows."""
    judges: tuple[tuple[str, _Judge], ...] = (("window_bound", _window_bound), ("latency_bound", _latency_bound))
    for name, judge in judges:
        bound = [(entry, flows) for entry in reading.times if (flows := _bound(entry, judge))]
        if not bound:
            continue
        entry, flows = max(bound, key=lambda item: len(item[1]))
        (rate, limit, payload), count = max(flows), len(flows)
        yield finding(
            name,
            reading.strength(doubtful=True),
            (
                Observation("Connections", count, "1", "connections", entry.size),
                Observation("Rate", rate, "bit/s", "goodput_bps", entry.size),
                Observation("Limit", limit, "bit/s", "", entry.size),
            ),
            explains=8 * payload / limit / entry.median,
            run=plural(count, "connection runs", "connections run"),
            at=reading.at(entry.point),
            rate=amount(rate, "bit/s"),
            limit=amount(limit, "bit/s"),
        )


def _bound(entry: SizeEntry, judge: _Judge) -> list[tuple[float, float, float]]:
    """Return rate and limit (bit/s) and payload (bytes) of bound flows that matter."""
    payloads = [float(flow.get("payload_bytes") or 0) for flow in entry.point.flows]
    total = sum(payloads)
    rates = []
    for flow, payload in zip(entry.point.flows, payloads, strict=True):
        limit = judge(flow)
        rate = flow.get("goodput_bps")
        if total and payload / total >= _SMALLEST_FLOW and limit and rate and rate >= _BOUND * limit:
            rates.append((float(rate), float(limit), payload))
    return rates


def _window_bound(flow: Mapping[str, Any]) -> float | None:
    """Return the smaller direction's window / round trip if a window was full."""
    windows = [w for way in ("ab", "ba") if (w := flow.get(f"window_mean_bytes_{way}"))]
    # ACKs at a capture in the middle of the path take a part of the round trip, a handshake takes all of it.
    acknowledged_s, handshake_s = flow.get("rtt_median_s"), flow.get("rtt_handshake_s")
    round_trip = max(acknowledged_s, handshake_s or 0.0) if acknowledged_s else None
    full = (flow.get("window_full_events") or 0) + (flow.get("zero_window_events") or 0)
    return 8 * min(windows) / round_trip if windows and round_trip and full else None


def _latency_bound(flow: Mapping[str, Any]) -> float | None:
    """Return bytes in flight / round trip if at most two segments were in flight."""
    in_flight, round_trip = flow.get("bytes_in_flight_p95"), flow.get("rtt_median_s")
    if not in_flight or not round_trip or in_flight > 2 * _SEGMENT_BYTES or (flow.get("window_full_events") or 0):
        return None
    return float(8 * in_flight / round_trip)


@rule
def retransmissions(reading: Reading) -> Iterator[Finding]:
    """Report retransmissions that matter, and their cost."""
    lossy = [
        (entry, row)
        for entry, row in zip(reading.times, wire_part(reading.study), strict=True)
        if (row.retransmitted_share or 0) >= _RETRANSMITTED
    ]
    if not lossy:
        return
    entry, worst = max(lossy, key=lambda pair: pair[1].retransmitted_share or 0.0)
    cost, caveat = retransmission_cost(worst.retransmission_s, entry.median)
    points = {p.size: p.point.median("retransmitted_segments") for p in reading.times}
    yield finding(
        "retransmissions",
        reading.strength(doubtful=True),
        (
            *(
                Observation("Retransmitted share", r.retransmitted_share or 0.0, "share", "retransmitted_bytes", r.size)
                for _, r in lossy
            ),
            *(
                Observation("Retransmitted segments", n, "1", "retransmitted_segments", x)
                for x, n in points.items()
                if n
            ),
        ),
        explains=None if worst.retransmission_s is None else worst.retransmission_s[0] / entry.median,
        caveat=caveat,
        share=percent(worst.retransmitted_share or 0.0),
        at=reading.at(entry.point),
        cost=cost,
    )


@rule
def waiting_explained(reading: Reading) -> Iterator[Finding]:
    """Report the small part of the waiting that the volume on the wire explains."""
    rows = {row.size: row for row in wire_part(reading.study)}
    if not reading.breakdown or reading.printed or not reading.sizes_differ:
        return
    last = reading.breakdown[-1]
    wire = rows.get(last.size)
    if wire is None or last.off_cpu_share < 0.5:
        return
    moving_s = wire.volume_s if wire.volume_s is not None else wire.link_busy_s
    if moving_s is None or (part := moving_s / last.off_cpu_s) > 0.25:
        return
    waiting = OUTSIDE_COMPUTING[last.profiled]
    name, latency_s = "Latency of messages that wait for each other", wire.latency_s
    yield finding(
        "waiting_explained",
        reading.strength(doubtful=not reading.study.link_certified),
        (
            Observation("Time the link needs for the bytes", moving_s, "s", "", last.size),
            Observation(f"Time {waiting}", last.off_cpu_s, "s", "", last.size),
            *((Observation(name, latency_s, "s", "chain_latency_s", last.size),) if latency_s else ()),
        ),
        part=percent(part),
        waiting=waiting,
        base=BASE[last.profiled],
        size=sizes(last.size, reading.axis),
        moving=amount(moving_s, "s"),
        whole=amount(last.off_cpu_s, "s"),
        share=percent(last.off_cpu_share),
    )
