"""Phases in which two hosts measure the path between them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from workers.testbed.plan import Plan

FIRST_PORT: Final = 7000
ETHERNET_BYTES: Final = 14
TCP_HEADERS: Final = 52  # IPv4 and TCP with time stamps
PROBE_BYTES: Final = 64
GAP_S: Final = 0.04

DELAY_PROBES: Final = 100
LONGEST_POLLING_S: Final = 1.0  # polling takes both cores; on longer links some microseconds are no part of the delay
MTU_COPIES: Final = 4
TRAIN_FRAMES: Final = 44  # 64 KB at an MTU of 1500: the burst of a shaper exceeds its rate (decision 7)
TRAINS: Final = 8
LONGEST_TRAIN_S: Final = 0.05
UDP_RATE_S: Final = 0.25
LEAST_UDP_FRAMES: Final = 24
MOST_UDP_FRAMES: Final = 12_000  # capacity of the probers' socket buffers
LOSS_S: Final = 1.0
CLEAN_LOSS_S: Final = 0.4
LOSS_FRAMES_PER_S: Final = 8000
LOSS_LOAD: Final = 0.3  # of the rate: probes for loss must not fill the queue
TCP_S: Final = 0.5
TCP_SKIP_TRIPS: Final = 8  # slow start doubles every round trip


@dataclass(frozen=True)
class RequestedPath:
    """Requested properties of the path between two hosts, in one direction."""

    rate_bps: float | None
    mtu: int
    delay_s: float = 0.0
    jitter_s: float = 0.0
    distribution: str = "uniform"
    loss: float = 0.0
    loss_burst: float = 1.0

    @classmethod
    def of(cls, plan: Plan, source: int, target: int) -> RequestedPath:
        """Return the path between hosts number `source` and `target` of a plan."""
        rate_bps = plan.path_rate_bps(source, target)
        if not plan.path_impaired(source, target):
            return cls(rate_bps, plan.mtu)
        return cls(rate_bps, plan.mtu, plan.delay_s, plan.jitter_s, plan.distribution, plan.loss, plan.loss_burst)

    @property
    def frame_bytes(self) -> int:
        """The longest frame, as the rate counts it."""
        return self.mtu + ETHERNET_BYTES


@dataclass(frozen=True)
class ProbePhase:
    """ProbePhase of a measurement: `sender` is 0 or 1; `settings` go to the prober."""

    name: str
    sender: int
    begin_s: float
    end_s: float
    settings: dict[str, Any]


def phases(ways: tuple[RequestedPath, RequestedPath]) -> list[ProbePhase]:
    """Return the phases of a path in both directions; `ways[k]` is what host k sends."""
    trip_s = sum(way.delay_s + 3 * way.jitter_s for way in ways)
    planned: list[ProbePhase] = []
    now_s = 0.0

    def add(name: str, sender: int, length_s: float, settings: dict[str, Any], drain_s: float) -> None:
        nonlocal now_s
        end_s = now_s + length_s + drain_s
        planned.append(ProbePhase(name, sender, now_s, end_s, settings))
        now_s = end_s + GAP_S

    interval_s = max(0.003, 2.5 * max(way.jitter_s for way in ways))
    probes = max(30, min(DELAY_PROBES, int(0.8 / interval_s)))
    add("delay", 0, probes * interval_s, _datagrams(probes, interval_s, [PROBE_BYTES], echo=True), trip_s + GAP_S)
    for sender, requested in enumerate(ways):
        sizes = mtu_sizes(requested.mtu)
        add("mtu", sender, 0.0, _datagrams(MTU_COPIES * len(sizes), 0.0, sizes), trip_s + GAP_S)
    for sender, requested in enumerate(ways):
        if requested.rate_bps is not None:
            frames, interval_s = train(requested)
            trains = _datagrams(TRAINS * frames, interval_s, [requested.mtu], frames)
            add("train", sender, TRAINS * interval_s, trains, trip_s)
    for sender, requested in enumerate(ways):
        count, length_s = stream(requested)
        add("udp", sender, length_s, _datagrams(count, 0.0, [requested.mtu]), trip_s + 2 * GAP_S)
    for sender, requested in enumerate(ways):
        count, interval_s, burst = loss_probes(requested)
        bursts = _datagrams(count, interval_s, [PROBE_BYTES], burst)
        add("loss", sender, count / burst * interval_s, bursts, trip_s + GAP_S)
    skip_s = 0.1 + TCP_SKIP_TRIPS * trip_s
    for sender in (0, 1):
        add("tcp", sender, skip_s + TCP_S, {"skip_s": skip_s}, 0.0)
    return planned


def mtu_sizes(mtu: int) -> list[int]:
    """Return IP sizes to try: the requested one, one more, then usual smaller ones."""
    return [mtu, mtu + 1, *(size for size in (9000, 4000, 1500, 1492, 1400, 1280, 576) if size < mtu)]


def train(requested: RequestedPath) -> tuple[int, float]:
    """Return the frames of a train sent after silence, and the seconds between trains."""
    if requested.rate_bps is None:
        return TRAIN_FRAMES, 0.02
    frame_s = 8 * requested.frame_bytes / requested.rate_bps
    frames = max(6, min(TRAIN_FRAMES, int(LONGEST_TRAIN_S / frame_s)))
    return frames, max(0.02, 2 * frames * frame_s)


def stream(requested: RequestedPath) -> tuple[int, float]:
    """Return the frames of a stream and its seconds at the requested rate.

    They are sent at once: the queue in front of the link is then never empty, whenever the prober gets a core.
    """
    if requested.rate_bps is None:
        return MOST_UDP_FRAMES, 0.3
    frame_s = 8 * requested.frame_bytes / requested.rate_bps
    count = max(LEAST_UDP_FRAMES, min(MOST_UDP_FRAMES, int(UDP_RATE_S / frame_s)))
    return count, 1.1 * count * frame_s


def loss_probes(requested: RequestedPath) -> tuple[int, float, int]:
    """Return count, seconds between bursts and frames per burst of small loss probes."""
    frames_per_s = float(LOSS_FRAMES_PER_S)
    if requested.rate_bps is not None:
        frames_per_s = min(frames_per_s, LOSS_LOAD * requested.rate_bps / 8 / (PROBE_BYTES + ETHERNET_BYTES))
    # Losses in bursts are correlated in frames, not in seconds: equally many frames carry less information.
    length_s = CLEAN_LOSS_S if not requested.loss else LOSS_S * (2 if requested.loss_burst > 1 else 1)
    burst = max(1, int(frames_per_s / 1000))
    return max(20, int(length_s * frames_per_s)), burst / frames_per_s, burst


def _datagrams(
    count: int, interval_s: float, sizes: list[int], burst: int = 1, *, echo: bool = False
) -> dict[str, Any]:
    return {"count": count, "interval_s": interval_s, "sizes": sizes, "burst": burst, "echo": echo}


def prober_plans(planned: list[ProbePhase], addresses: tuple[str, str], start_ns: int) -> list[dict[str, Any]]:
    """Return the mirrored plans of the two ends."""
    plans = []
    for side in (0, 1):
        listed = []
        for number, phase in enumerate(planned):
            common = {
                "own": addresses[side],
                "peer": addresses[1 - side],
                "port": FIRST_PORT + number,
                "begin_s": phase.begin_s,
                "end_s": phase.end_s,
            }
            sends = phase.sender == side
            if phase.name == "tcp":
                listed.append({**common, "kind": "tcp", "sends": sends, **phase.settings})
                continue
            echo = phase.settings["echo"] and not sends
            sending = (
                {name: phase.settings[name] for name in ("count", "interval_s", "sizes", "burst")} if sends else {}
            )
            # Programs poll for their messages, so delays are measured by probers that poll.
            polls = phase.name == "delay" and phase.end_s - phase.begin_s <= LONGEST_POLLING_S
            listed.append({**common, "kind": "udp", "echo": echo, "polls": polls, **sending})
        plans.append({"start_ns": start_ns, "phases": listed})
    return plans
