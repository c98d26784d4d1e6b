"""Evaluation of arrivals: the measured path against the request. Pure.

Tolerances: bandwidth 5 %; delay 5 % or 0.3 ms; loss and the length of its bursts: the requested value is inside the 99 %
interval of the count.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from analysis.numbers import SHARE, amount
from workers.testbed.schedule import TCP_HEADERS, RequestedPath, train

BANDWIDTH_TOLERANCE: Final = 0.05
DELAY_TOLERANCE: Final = 0.05
DELAY_TOLERANCE_S: Final = 0.3e-3
JITTER_TOLERANCE: Final = 0.25  # a hundred probes know a spread no better
LOSS_CONFIDENCE: Final = 0.99
# A bucket of a few frames lets a train start faster than the rate; beyond this, short messages would not meet the link.
BURST_TOLERANCE: Final = 0.5
NORMAL_QUARTILES: Final = 1.349  # interquartile range of a normal distribution in standard deviations

Arrivals = Sequence[Sequence[int]]  # sequence, sent, echoed, arrived (of an echo: returned), IP bytes (arrived)


@dataclass
class Way:
    """Measured direction; None for what could not be measured."""

    udp_bps: float | None = None
    tcp_bps: float | None = None
    burst_bps: float | None = None
    delays_s: list[float] = field(default_factory=list)
    lost: int = 0
    probed: int = 0
    loss_runs: int = 0  # number of runs of successive lost probes
    mtu: int | None = None
    longer_refused: bool = True


@dataclass(frozen=True)
class CertificateRow:
    """Quantity of one direction: requested, achieved, enough (None: not judged)."""

    source: str
    target: str
    quantity: str
    unit: str
    asked: float | None
    achieved: float | None
    interval: tuple[float, float] | None = None
    tolerance: str = ""
    kept: bool | None = None


def rate_of_stream(arrivals: Arrivals, frame_bytes: int) -> float | None:
    """Return bit/s of a stream without the first tenth, a bucket's burst."""
    times = sorted(arrival[3] for arrival in arrivals)
    times = times[len(times) // 10 :]
    if len(times) < 3 or times[-1] <= times[0]:
        return None
    return (len(times) - 1) * 8 * frame_bytes / ((times[-1] - times[0]) / 1e9)


def rate_of_trains(arrivals: Arrivals, frames: int, frame_bytes: int) -> float | None:
    """Return the median rate of trains from first to last frame, corrected for losses."""
    trains: dict[int, list[tuple[int, int]]] = {}
    for sequence, _, _, arrived_ns, _ in arrivals:
        trains.setdefault(sequence // frames, []).append((sequence, arrived_ns))
    rates = []
    for arrived in trains.values():
        (first, begin_ns), (last, end_ns) = min(arrived), max(arrived)
        if last - first >= frames // 2 and end_ns > begin_ns:
            rates.append((last - first) * 8 * frame_bytes / ((end_ns - begin_ns) / 1e9))
    return statistics.median(rates) if rates else None


def losses(arrivals: Arrivals, sent: int) -> tuple[int, int]:
    """Return the number of missing probes, and of the runs they form."""
    seen = sorted({arrival[0] for arrival in arrivals})
    runs = sum(after - before > 1 for before, after in pairwise([-1, *seen, sent]))
    return sent - len(seen), runs


def loss_interval(lost: int, sent: int, run: float = 1.0, confidence: float = LOSS_CONFIDENCE) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for the lost share.

    Biometrika 26, 1934. Losses in runs of mean length `run` carry less information: the number of probes is reduced by
    the factor (1 + r) / (1 - r) of a two-state Markov chain with the correlation r from probe to probe.
    """
    share = lost / sent
    correlation = max(0.0, 1 - 1 / run - share / (1 - share) / run) if run > 1 and share < 1 else 0.0
    worth = (1 - correlation) / (1 + correlation)
    n, k = sent * worth, lost * worth
    tail = (1 - confidence) / 2
    low = 0.0 if lost == 0 else _beta_quantile(tail, k, n - k + 1)
    high = 1.0 if lost == sent else _beta_quantile(1 - tail, k + 1, n - k)
    return low, high


def run_interval(lost: int, runs: int, confidence: float = LOSS_CONFIDENCE) -> tuple[float, float]:
    """Return the interval for the mean length of a run of losses.

    After each lost probe a run ends with a fixed probability, so the `runs` (at least one) are a binomial count among the
    `lost`, and the mean length is the inverse of its share.
    """
    low, high = loss_interval(runs, lost, confidence=confidence)
    return 1 / high, 1 / low


def _beta_quantile(probability: float, a: float, b: float) -> float:
    # Imported here: only a certificate needs scipy, and a launcher must start on the standard library alone.
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def spread(delays_s: Sequence[float], distribution: str) -> float | None:
    """Return the jitter from the quartiles, so that a few late probes do not count."""
    if len(delays_s) < 8:
        return None
    low, _, high = statistics.quantiles(delays_s, n=4)
    return (high - low) / (NORMAL_QUARTILES if distribution == "normal" else 1.0)


def rows(source: str, target: str, requested: RequestedPath, way: Way) -> list[CertificateRow]:
    """Return all quantities of one direction; requested ones are judged."""
    return [
        _bandwidth(source, target, requested, way),
        CertificateRow(source, target, "TCP rate", "bit/s", None, way.tcp_bps),
        *_burst(source, target, requested, way),
        *_delay(source, target, requested, way),
        *_loss(source, target, requested, way),
        _mtu(source, target, requested, way),
    ]


def _bandwidth(source: str, target: str, requested: RequestedPath, way: Way) -> CertificateRow:
    """Return the bandwidth in frames: of the UDP stream, or of TCP if it reached more.

    The kernel stamps the stream's arrivals; TCP counts only if the stream fell short.
    """
    achieved = way.udp_bps
    tcp_frames_bps = (
        None if way.tcp_bps is None else way.tcp_bps * requested.frame_bytes / (requested.mtu - TCP_HEADERS)
    )
    enough_bps = math.inf if requested.rate_bps is None else requested.rate_bps * (1 - BANDWIDTH_TOLERANCE)
    if tcp_frames_bps is not None and (achieved is None or achieved < min(enough_bps, tcp_frames_bps)):
        achieved = tcp_frames_bps
    if requested.rate_bps is None:
        return CertificateRow(source, target, "bandwidth", "bit/s", None, achieved)
    is_kept = achieved is not None and abs(achieved / requested.rate_bps - 1) <= BANDWIDTH_TOLERANCE
    return CertificateRow(
        source, target, "bandwidth", "bit/s", requested.rate_bps, achieved, tolerance="5 %", kept=is_kept
    )


def _burst(source: str, target: str, requested: RequestedPath, way: Way) -> list[CertificateRow]:
    if requested.rate_bps is None or way.burst_bps is None:
        return [CertificateRow(source, target, "rate of a short burst", "bit/s", None, way.burst_bps)]
    # Only faster is wrong: a busy machine may space a burst out.
    is_kept = way.burst_bps <= requested.rate_bps * (1 + BURST_TOLERANCE)
    short = CertificateRow(
        source,
        target,
        "rate of a short burst",
        "bit/s",
        requested.rate_bps,
        way.burst_bps,
        tolerance="+50 %",
        kept=is_kept,
    )
    return [short, CertificateRow(source, target, "burst", "B", None, bytes_at_once(requested, way.burst_bps))]


def bytes_at_once(requested: RequestedPath, burst_bps: float) -> float:
    """Return the bytes ahead of the rate after a pause: a frame and more.

    Messages are shorter by as much on this link, which estimates of a program's bytes use.
    """
    later_bytes = (train(requested)[0] - 1) * requested.frame_bytes
    ahead_bytes = later_bytes * (1 - (requested.rate_bps or burst_bps) / burst_bps)
    return requested.frame_bytes + max(0.0, ahead_bytes)


def _delay(source: str, target: str, requested: RequestedPath, way: Way) -> list[CertificateRow]:
    achieved = statistics.median(way.delays_s) if way.delays_s else None
    allowed = max(DELAY_TOLERANCE_S, DELAY_TOLERANCE * requested.delay_s)
    is_kept = achieved is not None and abs(achieved - requested.delay_s) <= allowed
    judged = [
        CertificateRow(
            source, target, "delay", "s", requested.delay_s, achieved, tolerance="5 % or 0.3 ms", kept=is_kept
        )
    ]
    if requested.jitter_s:
        jitter = spread(way.delays_s, requested.distribution)
        allowed = max(DELAY_TOLERANCE_S, JITTER_TOLERANCE * requested.jitter_s)
        is_kept = jitter is not None and abs(jitter - requested.jitter_s) <= allowed
        judged.append(
            CertificateRow(
                source, target, "jitter", "s", requested.jitter_s, jitter, tolerance="25 % or 0.3 ms", kept=is_kept
            )
        )
    return judged


def _loss(source: str, target: str, requested: RequestedPath, way: Way) -> list[CertificateRow]:
    if not way.probed:
        return [CertificateRow(source, target, "loss", "", requested.loss, None, tolerance="99 % interval", kept=False)]
    low, high = loss_interval(way.lost, way.probed, max(requested.loss_burst, 1.0))
    # An interval that begins above 0 by rounding alone would refuse 0.
    is_kept = low <= requested.loss <= high or math.isclose(requested.loss, low)
    achieved = way.lost / way.probed
    judged = [
        CertificateRow(source, target, "loss", "", requested.loss, achieved, (low, high), "99 % interval", is_kept)
    ]
    if requested.loss_burst > 1 and way.loss_runs:
        run, (shortest, longest) = way.lost / way.loss_runs, run_interval(way.lost, way.loss_runs)
        is_kept = shortest <= requested.loss_burst <= longest
        row = CertificateRow(
            source, target, "length of loss bursts", "packets", requested.loss_burst, run, (shortest, longest)
        )
        judged.append(dataclasses.replace(row, tolerance="99 % interval", kept=is_kept))
    return judged


def _mtu(source: str, target: str, requested: RequestedPath, way: Way) -> CertificateRow:
    is_kept = way.mtu == requested.mtu and way.longer_refused
    return CertificateRow(source, target, "path MTU", "B", requested.mtu, way.mtu, tolerance="exact", kept=is_kept)


def sentence(row: CertificateRow) -> str:
    """Return what is wrong with a row, for a trial's page."""
    where = f"from {row.source} to {row.target}"
    if row.achieved is None:
        return f"the {row.quantity} {where} could not be measured"
    achieved, asked = (amount(value, unit_of(row.unit)) for value in (row.achieved, row.asked or 0.0))
    return f"the {row.quantity} {where} is {achieved} instead of {asked} (tolerance {row.tolerance})"


def unit_of(stored: str) -> str:
    """Return the display unit of a row: stored shares have no unit."""
    return stored or SHARE


def summary(delays_s: Sequence[float]) -> dict[str, Any]:
    """Return quantiles of round trips in seconds, and the number of probes."""
    if len(delays_s) < 2:
        return {"probes": len(delays_s)}
    cuts = statistics.quantiles(delays_s, n=100, method="inclusive")
    return {
        "probes": len(delays_s),
        "min_s": min(delays_s),
        "p05_s": cuts[4],
        "p25_s": cuts[24],
        "median_s": cuts[49],
        "p75_s": cuts[74],
        "p95_s": cuts[94],
        "max_s": max(delays_s),
    }
