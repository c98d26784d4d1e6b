"""Rules about traffic: packet sizes, arrivals and pairs of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.conclusions.observations.reading import Observation, Reading
from analysis.conclusions.rules.registry import Finding, finding, rule
from analysis.conclusions.sentences.findings import heaviest_host, heaviest_pair
from analysis.conclusions.wording import amount, spread_words
from analysis.numbers import SHARE
from analysis.scaling.breakdown import busiest_link_share

_SMALL: Final = 0.3
_BURSTY: Final = 1.5
_SKEWED: Final = 3.0
"""Times the even share of a pair of hosts, or of one host's link."""
_USED: Final = 0.01
"""Least share of the heaviest pair's bytes of a pair in use: a ring uses its edges, not all pairs."""


@rule
def packet_size(reading: Reading) -> Iterator[Finding]:
    """Report the mean packet size: headers and latency, or volume."""
    metric, how = "packet_size_mean_bytes", ""
    measured = [(p.size, p.median) for p in reading.series(metric)]
    if not measured:
        rates = {p.size: p.median for p in reading.series("throughput_Bps")}
        packets = {p.size: p.median for p in reading.series("packet_intensity_pps")}
        measured = [(x, rates[x] / packets[x]) for x in rates if packets.get(x)]
        metric, how = "", " (throughput / packet intensity)"
    if measured:
        yield finding(
            "packet_size",
            reading.strength(),
            (Observation("Mean packet size", v, "B", metric, x) for x, v in measured),
            at=reading.at_sizes([size for size, _ in measured]),
            sizes=spread_words([v for _, v in measured], "B"),
            how=how,
        )


@rule
def small_packets(reading: Reading) -> Iterator[Finding]:
    """Report a large share of packets below 100 bytes."""
    places = reading.series("small_packet_share")
    if not places or max(p.median for p in places) < _SMALL:
        return
    yield finding(
        "small_packets",
        reading.strength(),
        (
            *reading.evidence("Small packets", "small_packet_share"),
            *reading.evidence("Pure acknowledgements", "pure_ack_share"),
        ),
        at=reading.at_sizes([p.size for p in places]),
        share=spread_words([p.median for p in places], SHARE),
    )


@rule
def arrivals(reading: Reading) -> Iterator[Finding]:
    """Report bursts, compared with a Poisson stream."""
    places = reading.series("interarrival_cv")
    if not places or min(p.median for p in places) < _BURSTY:
        return
    yield finding(
        "arrivals",
        reading.strength(),
        reading.evidence("Inter-arrival CV", "interarrival_cv", "1"),
        at=reading.at_sizes([p.size for p in places]),
        variation=spread_words([p.median for p in places], ""),
    )


@rule
def iteration(reading: Reading) -> Iterator[Finding]:
    """Report the period of the traffic."""
    places = reading.series("iteration_period_s")
    if places:
        yield finding(
            "iteration",
            reading.strength(doubtful=True),
            reading.evidence("Iteration period", "iteration_period_s", "s"),
            period=amount(places[-1].median, "s"),
            at=reading.at(places[-1].point),
        )


@rule
def matrix_skew(reading: Reading) -> Iterator[Finding]:
    """Report traffic concentrated on one pair, or on one host's link."""
    if not reading.study.ranks_alike:
        return
    for name in ("host", "rank"):
        skews = [
            (skew, entry) for entry in reading.times if (skew := _skew(getattr(entry.point, f"{name}_matrix"), name))
        ]
        if skews:
            (_, share, what), entry = max(skews, key=lambda item: item[0][0])
            yield finding(
                "matrix_skew",
                reading.strength(),
                (Observation("Share of the bytes", share, "share", f"{name}_matrix", entry.size),),
                at=reading.at(entry.point),
                what=what,
            )
            return


def _skew(matrix: Mapping[str, Any] | None, name: str) -> tuple[float, float, str] | None:
    """Return (times the even share, share, words) of the heaviest pair or link."""
    table, labels = (matrix or {}).get("wire_bytes"), (matrix or {}).get("labels")
    if not table or not labels or len(labels) < 3:
        return None
    count = len(labels)
    total = sum(map(sum, table))
    pairs = {(i, j): table[i][j] + table[j][i] for i in range(count) for j in range(i)}
    if not total:
        return None
    (a, b), heaviest = max(pairs.items(), key=lambda item: item[1])
    share, even = heaviest / total, 1 / sum(volume >= _USED * heaviest for volume in pairs.values())
    if share > _SKEWED * even and count > 3:
        return share / even, share, heaviest_pair(name, labels[b], labels[a], share, even)
    # in a star all pairs with the centre are equal: none is prominent, but the centre's link carries all
    link, even = busiest_link_share(matrix) or 0.0, 1 / count
    if link > 1.6 * even and link > 0.45:
        involved = [sum(table[i]) + sum(row[i] for row in table) for i in range(count)]
        centre = labels[involved.index(max(involved))]
        return link / even, link, heaviest_host(name, centre, max(involved) / total)
    return None
