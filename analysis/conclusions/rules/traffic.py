"""Rules about what is on the wire: packet sizes, arrivals in time, and who talks to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Evidence, Finding, rule
from analysis.conclusions.wording import percent
from analysis.numbers import SHARE, amount, between
from analysis.scaling.breakdown import busiest_link_share

_SMALL: Final = 0.3
_BURSTY: Final = 1.5
_SKEWED: Final = 3.0
"""Times the even share of a pair of hosts, or of one host's link."""
_USED: Final = 0.01
"""Of the heaviest pair: with less, two hosts do not talk. The edges of a ring share its bytes, not all pairs."""


def spread_words(values: list[float], unit: str, digits: int = 2) -> str:
    """ "35 %", or "35 to 45 %", for a metric over the sizes."""
    low, high = min(values), max(values)
    if amount(low, unit, digits) == amount(high, unit, digits):
        return amount(low, unit, digits)
    return between(low, high, unit, digits)


def packet_sizes(reading: Reading) -> tuple[list[tuple[float, float]], str]:
    """(size, mean bytes) by size, measured or as throughput / packet intensity, and which of the two."""
    direct = reading.series("packet_size_mean_bytes")
    if direct:
        return [(p.size, p.median) for p in direct], ""
    rates = {p.size: p.median for p in reading.series("throughput_Bps")}
    packets = {p.size: p.median for p in reading.series("packet_intensity_pps")}
    return [(x, rates[x] / packets[x]) for x in rates if packets.get(x)], " (throughput / packet intensity)"


@rule
def packet_size(reading: Reading) -> Iterator[Finding]:
    """Mean packet size, which says whether headers and latency or volume rule the wire."""
    mean_sizes, how = packet_sizes(reading)
    if not mean_sizes:
        return
    yield Finding(
        "packet_size",
        "traffic",
        f"Mean packet size is {spread_words([v for _, v in mean_sizes], 'B')}{how}.",
        reading.strength(),
        tuple(
            Evidence("Mean packet size", v, "B", "packet_size_mean_bytes" if not how else "", x) for x, v in mean_sizes
        ),
        "throughput",
        "Compare with the largest possible, 1514 bytes on plain Ethernet: much below it, packets carry small messages or acknowledgements.",
    )


@rule
def small_packets(reading: Reading) -> Iterator[Finding]:
    """A large share of packets below 100 bytes."""
    places = reading.series("small_packet_share")
    if not places or max(p.median for p in places) < _SMALL:
        return
    acknowledgements = reading.series("pure_ack_share")
    yield Finding(
        "small_packets",
        "traffic",
        f"{spread_words([p.median for p in places], SHARE)} of the packets are below 100 bytes.",
        reading.strength(),
        (
            *(Evidence("Small packets", p.median, "share", "small_packet_share", p.size) for p in places),
            *(Evidence("Pure acknowledgements", p.median, "share", "pure_ack_share", p.size) for p in acknowledgements),
        ),
        "packets",
        "Where they are not acknowledgements, combine small messages: fewer, larger ones cost fewer round trips.",
    )


@rule
def arrivals(reading: Reading) -> Iterator[Finding]:
    """Bursts against a Poisson stream."""
    places = reading.series("interarrival_cv")
    if not places or min(p.median for p in places) < _BURSTY:
        return
    variation = spread_words([p.median for p in places], "")
    yield Finding(
        "arrivals",
        "traffic",
        f"Packets come in bursts: the variation of inter-arrival times is {variation}, where a Poisson stream has 1.",
        reading.strength(),
        tuple(Evidence("Inter-arrival variation", p.median, "1", "interarrival_cv", p.size) for p in places),
        "interarrival",
        "Judge the link by its peak rate in 10 ms and not by its mean; models with exponential arrivals do not hold.",
    )


@rule
def iteration(reading: Reading) -> Iterator[Finding]:
    """The period in which the traffic repeats."""
    places = reading.series("iteration_period_s")
    if not places:
        return
    shown = places[-1]
    yield Finding(
        "iteration",
        "traffic",
        f"The traffic repeats every {amount(shown.median, 's')}{reading.at(shown.point)}.",
        reading.strength(doubtful=True),
        tuple(Evidence("Iteration period", p.median, "s", "iteration_period_s", p.size) for p in places),
        "interarrival",
        "Compare with the program's time step: where they agree, every step waits for the network once per period.",
        "A period is the strongest significant peak of an autocorrelation; its multiples are possible too.",
    )


@rule
def matrix_skew(reading: Reading) -> Iterator[Finding]:
    """Traffic concentrated on one pair, or on one host's link."""
    if not reading.study.ranks_alike:
        return
    for kind, name in (("host_matrix", "host"), ("rank_matrix", "rank")):
        worst: tuple[float, Finding] | None = None
        for place in reading.times:
            skew = _skew(reading, place, getattr(place.point, kind), name)
            if skew is not None and (worst is None or skew[0] > worst[0]):
                worst = skew
        if worst is not None:
            yield worst[1]
            return


def _skew(reading: Reading, place: Place, matrix: Mapping[str, Any] | None, name: str) -> tuple[float, Finding] | None:
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
        what = f"{percent(share)} of the bytes go between {name} {labels[b]} and {name} {labels[a]}; even shares would be {percent(even)}"
        return share / even, _skewed(reading, place, what, share, name)
    # in a star every pair with the centre is equal, so no pair stands out, but the centre's link carries all
    link, even = busiest_link_share(matrix) or 0.0, 1 / count
    if link > 1.6 * even and link > 0.45:
        involved = [sum(table[i]) + sum(row[i] for row in table) for i in range(count)]
        centre = labels[involved.index(max(involved))]
        what = f"{name} {centre} sends or receives {percent(max(involved) / total)} of all bytes"
        return link / even, _skewed(reading, place, what, link, name)
    return None


def _skewed(reading: Reading, place: Place, what: str, share: float, name: str) -> Finding:
    statement = f"Traffic is concentrated{reading.at(place.point)}: {what}."
    return Finding(
        "matrix_skew",
        "traffic",
        statement,
        reading.strength(),
        (
            Evidence(
                "Share of the bytes", share, "share", "host_matrix" if name == "host" else "rank_matrix", place.size
            ),
        ),
        "matrix",
        "Place ranks that talk most on the same host, or spread the one that all wait for.",
    )
