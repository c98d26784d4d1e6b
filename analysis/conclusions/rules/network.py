"""Rules about what the wire sets: full links, windows, round trips and retransmissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent, sizes
from analysis.numbers import amount, plural
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


@rule
def link_load(reading: Reading) -> Iterator[Finding]:
    """A full link, bursts that fill it, or that it never is full."""
    loads = [
        _Load.of(place.point, row)
        for place, row in zip(reading.times, wire_part(reading.study), strict=True)
        if row.mean_bps is not None and row.bandwidth_bps
    ]
    if not loads:
        return
    rows = [load.row for load in loads]
    busiest, bursts = max(loads, key=lambda load: load.mean), max(loads, key=lambda load: load.peak)
    known = all(row.busiest_link_known for row in rows) or reading.study.capture_at == "host"
    evidence = (
        *(Evidence("Mean rate", row.mean_bps or 0.0, "bit/s", "throughput_bps", row.size) for row in rows),
        *(
            Evidence("Peak rate of a port, 10 ms", row.peak_bps, "bit/s", "port_peak_10ms_bps", row.size)
            for row in rows
            if row.peak_bps
        ),
        *(
            Evidence("Bandwidth", bandwidth, "bit/s")
            for bandwidth in dict.fromkeys(r.bandwidth_bps or 0.0 for r in rows)
        ),
    )
    asked = ""
    if not reading.study.link_made:
        asked = "The bandwidth is what the cluster's facts or its network cards say; what the link reaches was not measured."
    elif not reading.study.link_certified:
        asked = "The bandwidth is the one asked for; no certificate says what the link reached."
    upper = "" if known else "All captured bytes are set against one link, so the true load is at most this."
    caveat = " ".join(filter(None, (asked, upper)))
    yield _load_finding(reading, busiest, bursts, known, evidence, caveat)


@dataclass(frozen=True, slots=True)
class _Load:
    """How full the busiest link is at one point: on average, and at its peak."""

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


def _load_finding(
    reading: Reading, busiest: _Load, bursts: _Load, known: bool, evidence: tuple[Evidence, ...], caveat: str
) -> Finding:
    strength, share = reading.strength(doubtful=bool(caveat)), busiest.mean
    explains: float | None = None
    if share >= _FULL and known:
        statement = f"The link is saturated{reading.at(busiest.point)}: {percent(min(share, 1.0))} of {busiest.link} on average."
        explains = min(share, 1.0)
        step = "Measure on a faster link, or send less: the time cannot fall before the load does."
    elif bursts.peak >= _PEAK_FULL:
        peak = f"reaches all of {bursts.link}" if bursts.peak >= 1 else f"is {percent(bursts.peak)} of {bursts.link}"
        statement = (
            f"Bursts fill the link{reading.at(bursts.point)}: the fullest port's 10 ms peak {peak}, "
            f"its mean at most {percent(min(bursts.mean, 1.0))}."
        )
        explains = min(bursts.mean, 1.0)
        step = "Measure on a faster link: bursts of a synchronous program may be what all ranks wait for."
    else:
        most = f"at most {percent(share)}" if share < _FULL or known else f"up to {percent(share)}"
        statement = f"The link is not full: {most} of {busiest.link} on average."
        step = "More bandwidth alone is unlikely to help; look at round trips and at the number of messages."
    return Finding("link_load", "network", statement, strength, evidence, "throughput", step, caveat, explains=explains)


@rule
def bound_flows(reading: Reading) -> Iterator[Finding]:
    """Flows whose rate is near window / round trip, and flows that wait a round trip for every message."""
    for kind, judge in (("window", _window_bound), ("latency", _latency_bound)):
        bound = [(place, flows) for place in reading.times if (flows := _bound(place, judge))]
        if bound:
            place, flows = max(bound, key=lambda item: len(item[1]))
            yield _bound_finding(reading, kind, place, flows)


def _bound(place: Place, judge: Any) -> list[tuple[float, float, float]]:
    """(rate, limit) in bit/s and the payload in bytes of the flows that matter and that ``judge`` calls bound."""
    payloads = [float(flow.get("payload_bytes") or 0) for flow in place.point.flows]
    total = sum(payloads)
    rates = []
    for flow, payload in zip(place.point.flows, payloads, strict=True):
        limit = judge(flow)
        rate = flow.get("goodput_bps")
        if total and payload / total >= _SMALLEST_FLOW and limit and rate and rate >= _BOUND * limit:
            rates.append((float(rate), float(limit), payload))
    return rates


def _window_bound(flow: Mapping[str, Any]) -> float | None:
    """The smaller direction's window / round trip; only where a window was seen to be full."""
    windows = [w for way in ("ab", "ba") if (w := flow.get(f"window_mean_bytes_{way}"))]
    round_trip = flow.get("rtt_median_s")
    full = (flow.get("window_full_events") or 0) + (flow.get("zero_window_events") or 0)
    return 8 * min(windows) / round_trip if windows and round_trip and full else None


def _latency_bound(flow: Mapping[str, Any]) -> float | None:
    """What is in flight / round trip, where that is no more than two segments and no window was full."""
    in_flight, round_trip = flow.get("bytes_in_flight_p95"), flow.get("rtt_median_s")
    if not in_flight or not round_trip or in_flight > 2 * _SEGMENT_BYTES or (flow.get("window_full_events") or 0):
        return None
    return float(8 * in_flight / round_trip)


def _bound_finding(reading: Reading, kind: str, place: Place, flows: list[tuple[float, float, float]]) -> Finding:
    rate, limit, payload = max(flows)
    at, count = reading.at(place.point), len(flows)
    flows_run = plural(count, "connection runs", "connections run")
    if kind == "window":
        statement = (
            f"{flows_run} at the limit of the TCP window{at}: {amount(rate, 'bit/s')}, "
            f"where window / round trip allows {amount(limit, 'bit/s')}."
        )
        step = "Raise the TCP buffers, or shorten the round trip; more bandwidth will not help these connections."
    else:
        statement = (
            f"{flows_run} one message per round trip{at}: {amount(rate, 'bit/s')}, set by latency and not by bandwidth."
        )
        step = "Shorten the round trip, overlap messages with computing, or combine them; more bandwidth will not help."
    return Finding(
        f"{kind}_bound",
        "network",
        statement,
        reading.strength(doubtful=True),
        (
            Evidence("Connections", count, "1", "connections", place.size),
            Evidence("Rate", rate, "bit/s", "goodput_bps", place.size),
            Evidence("Limit", limit, "bit/s", "", place.size),
        ),
        "throughput",
        step,
        "From the connections of one typical trial; rates are means over their whole life.",
        explains=min(1.0, 8 * payload / limit / place.median),
    )


@rule
def retransmissions(reading: Reading) -> Iterator[Finding]:
    """Retransmissions that are enough to matter, and what they may cost."""
    seen = [
        (place, row)
        for place, row in zip(reading.times, wire_part(reading.study), strict=True)
        if (row.retransmitted_share or 0) >= _RETRANSMITTED
    ]
    if not seen:
        return
    rows = [row for _, row in seen]
    place, worst = max(seen, key=lambda each: each[1].retransmitted_share or 0.0)
    share, cost, explains, caveat = worst.retransmitted_share or 0.0, "", None, ""
    if worst.retransmission_s is not None:
        cost, caveat = _retransmission_cost(*worst.retransmission_s, place.median)
        explains = min(worst.retransmission_s[0] / place.median, 1.0)
    points = {p.size: p.point.median("retransmitted_segments") for p in reading.times}
    yield Finding(
        "retransmissions",
        "network",
        f"{percent(share)} of the payload is sent again{reading.at(place.point)}{cost}.",
        reading.strength(doubtful=True),
        (
            *(
                Evidence("Retransmitted share", r.retransmitted_share or 0.0, "share", "retransmitted_bytes", r.size)
                for r in rows
            ),
            *(Evidence("Retransmitted segments", n, "1", "retransmitted_segments", x) for x, n in points.items() if n),
        ),
        "packets",
        "Look for the loss: the link's certificate, queue length, and drops on the hosts.",
        caveat,
        explains=explains,
    )


def _retransmission_cost(low: float, high: float, elapsed: float) -> tuple[str, str]:
    """How the sentence goes on, and its caveat: waits that were seen, or bounds."""
    if low == high:
        return (
            f", and the run waits {amount(low, 's')} for it",
            "Waits on the longest chain of messages in the capture.",
        )
    low, high = min(low, elapsed), min(high, elapsed)
    # A connection cannot lose more than the run takes: where the bounds reach it, only the lower one says anything.
    costs = f"between {amount(low, 's')} and {amount(high, 's')}" if high < elapsed else f"{amount(low, 's')} or more"
    caveat = "One round trip each at least, a time-out of 200 ms each at most."
    return f", which costs each connection {costs}", caveat


@rule
def waiting_explained(reading: Reading) -> Iterator[Finding]:
    """Which part of the time off the CPU the wire's volume can explain at the largest size, when it is small."""
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
    waiting = "outside of computing" if last.profiled else "off the CPU"
    name, latency_s = "Latency of messages that wait for each other", wire.latency_s
    latency = (Evidence(name, latency_s, "s", "chain_latency_s", last.size),) if latency_s else ()
    yield Finding(
        "waiting_explained",
        "network",
        f"Moving the bytes explains at most {percent(part)} of the time {waiting} at {sizes(last.size, reading.axis)} "
        f"({amount(moving_s, 's')} of {amount(last.off_cpu_s, 's')}).",
        reading.strength(doubtful=not reading.study.link_certified),
        (
            Evidence("Time the link needs for the bytes", moving_s, "s", "", last.size),
            Evidence(f"Time {waiting}", last.off_cpu_s, "s", "", last.size),
            *latency,
        ),
        "where-time-goes",
        "Compare delay 0 with the present one; the MPI profile shows what the ranks do in the rest.",
        f"On average {percent(last.off_cpu_share)} of the run is {waiting}.",
    )
