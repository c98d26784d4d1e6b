"""Slow, obvious analysis of captures in plain Python: the truth for tests."""

from __future__ import annotations

import ipaddress
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path


@dataclass
class Record:
    time_ns: int
    orig_len: int
    data: bytes


@dataclass
class Packet:
    """Fields of one Ethernet frame; None if the frame lacks the field."""

    time_ns: int
    orig_len: int
    source: str | None = None
    destination: str | None = None
    protocol: int | None = None
    sport: int = 0
    dport: int = 0
    payload: int = 0
    seq: int = 0
    ack: int = 0
    window: int = 0
    flags: int = 0
    mss: int = 0
    tcp: bool = False
    identity: bytes = b""
    """IP and TCP headers without time to live and checksums."""


def records(path: Path) -> Iterator[Record]:
    """Whole records of a little-endian pcap file, micro- or nanoseconds."""
    data = path.read_bytes()
    scale = {0xA1B2C3D4: 1000, 0xA1B23C4D: 1}[struct.unpack_from("<I", data)[0]]
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", data, at)
        if at + 16 + captured > len(data):
            return
        yield Record(seconds * 10**9 + fraction * scale, original, data[at + 16 : at + 16 + captured])
        at += 16 + captured


def packet(record: Record) -> Packet:
    """Ethernet, any VLAN tags, IPv4 without options or IPv6 without extension headers."""
    data, decoded = record.data, Packet(record.time_ns, record.orig_len)
    layer2 = 12
    while data[layer2 : layer2 + 2] in (b"\x81\x00", b"\x88\xa8"):
        layer2 += 4
    kind, ip = data[layer2 : layer2 + 2], data[layer2 + 2 :]
    if kind == b"\x08\x00" and len(ip) >= 20:
        header, length, decoded.protocol = (ip[0] & 15) * 4, struct.unpack_from("!H", ip, 2)[0], ip[9]
        decoded.source, decoded.destination = (str(ipaddress.IPv4Address(ip[k : k + 4])) for k in (12, 16))
        length = length or record.orig_len - layer2 - 2
        mark = ip[2:8]
    elif kind == b"\x86\xdd" and len(ip) >= 40:
        header, length, decoded.protocol = 40, struct.unpack_from("!H", ip, 4)[0] + 40, ip[6]
        decoded.source, decoded.destination = (str(ipaddress.IPv6Address(ip[k : k + 16])) for k in (8, 24))
        length = length if length > 40 else record.orig_len - layer2 - 2
        mark = ip[:6]
    else:
        return decoded
    transport = ip[header:]
    if decoded.protocol == 17 and len(transport) >= 8:
        decoded.sport, decoded.dport = struct.unpack_from("!HH", transport)
        decoded.payload = max(length - header - 8, 0)
    if decoded.protocol == 6 and len(transport) >= 20 and transport[12] >> 4 >= 5:
        decoded.tcp = True
        decoded.sport, decoded.dport, decoded.seq, decoded.ack = struct.unpack_from("!HHII", transport)
        decoded.flags, decoded.window = transport[13], struct.unpack_from("!H", transport, 14)[0]
        size = (transport[12] >> 4) * 4
        decoded.payload = max(length - header - size, 0)
        decoded.identity = mark + transport[:16] + transport[20:size]
        options = transport[20:size] if decoded.flags & 2 else b""
        while options and options[0] != 0:
            if options[0] == 2:
                decoded.mss = struct.unpack_from("!H", options, 2)[0]
            options = options[1:] if options[0] == 1 else options[options[1] :]
    return decoded


def quantile(values: Sequence[int], share: float) -> float:
    """Hyndman-Fan type 7, straight from the definition."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def peak_bytes(packets: Sequence[Packet], width_ns: int) -> int:
    """Return the largest sum of lengths in any window (t - width, t]."""
    best = 0
    for last, newest in enumerate(packets):
        first = last
        while first > 0 and newest.time_ns - packets[first - 1].time_ns < width_ns:
            first -= 1
        best = max(best, sum(p.orig_len for p in packets[first : last + 1]))
    return best


def duplicates(packets: Sequence[Packet]) -> int:
    """Return TCP frames equal to an original within 1 ms before.

    SYNs and RSTs alone are none.
    """
    count, others = 0, False
    originals: list[tuple[int, object]] = []
    for p in packets:
        if not p.tcp:
            continue
        key = (p.identity, p.source, p.destination, p.payload)
        originals = [old for old in originals if abs(p.time_ns - old[0]) <= 1_000_000]
        if any(old[1] == key for old in originals):
            count, others = count + 1, others or not p.flags & 6
        else:
            originals.append((p.time_ns, key))
    return count if others else 0


def volume(packets: Sequence[Packet]) -> dict[str, float]:
    """Return volume and rate metrics without flows, and quantiles of gaps."""
    sizes = [p.orig_len for p in packets]
    tcp = [p for p in packets if p.tcp]
    gaps = [b.time_ns - a.time_ns for a, b in pairwise(packets)]
    seconds = Fraction(packets[-1].time_ns - packets[0].time_ns, 10**9)
    mean_gap = Fraction(sum(gaps), len(gaps))
    variance = sum((gap - mean_gap) ** 2 for gap in gaps) / len(gaps)
    managing = [p for p in tcp if p.flags & 7]
    pure = [p for p in tcp if p.flags & 16 and not p.flags & 7 and p.payload == 0]
    metrics: dict[str, float] = {
        "packets": len(packets),
        "wire_bytes": sum(sizes),
        "payload_bytes": sum(p.payload for p in packets),
        "duration_s": float(seconds),
        "packet_intensity_pps": float((len(packets) - 1) / seconds),
        "throughput_Bps": float(sum(sizes) / seconds),
        "throughput_bps": float(8 * sum(sizes) / seconds),
        "line_rate_bps": float(8 * sum(max(size, 60) + 24 for size in sizes) / seconds),
        "packet_size_mean_bytes": sum(sizes) / len(sizes),
        "packet_size_p50_bytes": quantile(sizes, 0.5),
        "packet_size_p95_bytes": quantile(sizes, 0.95),
        "small_packet_share": sum(size < 100 for size in sizes) / len(sizes),
        "interarrival_mean_s": float(mean_gap) / 1e9,
        "interarrival_median_s": quantile(gaps, 0.5) / 1e9,
        "interarrival_p95_s": quantile(gaps, 0.95) / 1e9,
        "interarrival_p99_s": quantile(gaps, 0.99) / 1e9,
        "interarrival_cv": math.sqrt(variance) / float(mean_gap),
        "duplicated_packets": duplicates(packets),
    }
    if tcp:
        metrics["pure_ack_share"] = len(pure) / len(tcp)
        metrics["management_share"] = len(managing) / len(tcp)
    for name, width_ns in (("1ms", 10**6), ("10ms", 10**7), ("100ms", 10**8)):
        if width_ns <= packets[-1].time_ns - packets[0].time_ns:
            metrics[f"peak_{name}_bps"] = 8 * peak_bytes(packets, width_ns) / (width_ns / 1e9)
    return metrics
