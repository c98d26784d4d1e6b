"""Recordings of the same frames on three hosts, each by the host's own clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from analysis.capture.sharding import Recording
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

US, MS = 1_000, 1_000_000
START = 10**18
HOSTS = ("n1", "n2", "n3")
WAY_NS = 50 * US


@dataclass(frozen=True)
class Sent:
    """A frame as it left its sender, by the true clock."""

    time_ns: int
    source: int
    target: int
    data: bytes


def traffic(count: int = 300, seed: int = 1) -> list[Sent]:
    """Frames of every pair in both directions, none like another."""
    chance, sent, time_ns = random.Random(seed), [], 0
    for number in range(count):
        time_ns += chance.randrange(20 * US, 400 * US)
        source, target = chance.sample(range(3), 2)
        ports = (20_000, 40_000) if source < target else (40_000, 20_000)
        segment = tcp(*ports, seq=1 + 100 * number, ack=1, payload=b"d" * chance.randrange(1, 100))
        packet = ipv4(
            segment, source=f"10.0.0.{source + 1}", destination=f"10.0.0.{target + 1}", identity=number % 65_536
        )
        sent.append(Sent(time_ns, source, target, ethernet(packet)))
    return sent


def recordings(
    sent: list[Sent], directory: Path, clocks: list[Callable[[int], float]], hosts: tuple[int, ...] = (0, 1, 2)
) -> list[Recording]:
    """Write what the tool of each host would record, by the host's own clock.

    A frame is recorded on its sender when it is sent, and on its receiver after the latency of the path.
    """
    made = []
    for host in hosts:
        seen = [(s.time_ns + (WAY_NS if s.target == host else 0), s) for s in sent if host in (s.source, s.target)]
        frames = [Frame.whole(START + round(t + clocks[host](t)), s.data) for t, s in sorted(seen, key=lambda x: x[0])]
        path = directory / f"{HOSTS[host]}.pcapng"
        path.write_bytes(files.pcapng(frames))
        made.append(Recording(HOSTS[host], path, frozenset({f"10.0.0.{host + 1}", "127.0.0.1"})))
    return made


def exact(_time_ns: int) -> float:
    return 0.0
