"""Certificate: the measured link between hosts, against the requested one.

Two small probers run in the hosts' namespaces for about four seconds. Values outside of their tolerance are measured again, so
that a short load of the machine does not condemn a link; counts of lost probes add up.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workers.errors import ClusterUnavailable
from workers.hosts.processes import LocalAgent, Process
from workers.testbed import schedule, verdict
from workers.testbed.plan import Plan
from workers.testbed.schedule import ProbePhase, RequestedPath
from workers.testbed.verdict import CertificateRow, Way

PROBER: Final = Path(__file__).with_name("prober.py")
PYTHON: Final = "/usr/bin/python3"
ATTEMPTS: Final = 3
HEAD_START_S: Final = 0.25  # until both probers are ready
PATIENCE_S: Final = 10.0
OUTPUT_LIMIT_BYTES: Final = 64 << 20
MAX_PATHS: Final = 3


@dataclass(frozen=True)
class Certificate:
    """Measured link.

    `kept`: all requested values were achieved; `reasons` name the others.
    """

    kept: bool
    reasons: tuple[str, ...]
    earlier: tuple[str, ...]
    """Deviations of earlier attempts that a later one did not confirm."""
    rows: tuple[CertificateRow, ...]
    round_trips: tuple[dict[str, Any], ...]
    attempts: int
    duration_s: float
    measured_at: str = ""
    """ISO 8601, UTC."""
    made_on: str = ""
    """Hash of the network, the machine and the code (`workers.testbed.kept_certificate`)."""
    busy_share: float = 0.0
    """Share of the machine's cores that other programs used."""

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Certificate:
        """Return a stored certificate of this version."""
        rows = tuple(CertificateRow(**{**row, "interval": _pair(row["interval"])}) for row in stored["rows"])
        lists = {name: tuple(stored[name]) for name in ("reasons", "earlier", "round_trips")}
        return cls(**{**stored, **lists, "rows": rows})

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate for storing; rows are in SI base units."""
        return {
            **dataclasses.asdict(self),
            "duration_s": round(self.duration_s, 3),
            "busy_share": round(self.busy_share, 3),
        }


def _pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def certify(agent: LocalAgent, plan: Plan) -> Certificate | None:
    """Measure the paths of a built plan; None if single. Raises ClusterUnavailable."""
    if len(plan.hosts) < 2:
        return None
    began = time.monotonic()
    measured: list[CertificateRow] = []
    trips: list[dict[str, Any]] = []
    earlier: list[str] = []
    most_attempts = 1
    for source, target in paths(plan):
        rows, trip, attempts = _certify_path(agent, plan, source, target, earlier)
        measured += rows
        trips.append({"source": plan.hosts[source - 1], "target": plan.hosts[target - 1], **trip})
        most_attempts = max(most_attempts, attempts)
    reasons = tuple(verdict.sentence(row) for row in measured if row.kept is False)
    duration_s = time.monotonic() - began
    return Certificate(not reasons, reasons, tuple(earlier), tuple(measured), tuple(trips), most_attempts, duration_s)


def paths(plan: Plan) -> list[tuple[int, int]]:
    """Return pairs of hosts: across sites, or one per kind of port."""
    count = len(plan.hosts)
    if plan.topology == "two sites":
        return [(1, (count + 1) // 2 + 1)]
    different: dict[float | None, int] = {}
    for number in range(2, count + 1):
        different.setdefault(plan.port_rate_bps(number), number)
    return [(1, number) for number in list(different.values())[:MAX_PATHS]]


def _certify_path(
    agent: LocalAgent, plan: Plan, source: int, target: int, earlier: list[str]
) -> tuple[list[CertificateRow], dict[str, Any], int]:
    names = (plan.hosts[source - 1], plan.hosts[target - 1])
    requested = (RequestedPath.of(plan, source, target), RequestedPath.of(plan, target, source))
    counted = [(0, 0, 0), (0, 0, 0)]
    attempts = 0
    while attempts < ATTEMPTS:
        attempts += 1
        ways, trip = _measure(agent, plan, names, requested)
        for side, way in enumerate(ways):
            lost, probed, runs = counted[side]
            counted[side] = (lost + way.lost, probed + way.probed, runs + way.loss_runs)
            way.lost, way.probed, way.loss_runs = counted[side]
        rows = [
            *verdict.rows(names[0], names[1], requested[0], ways[0]),
            *verdict.rows(names[1], names[0], requested[1], ways[1]),
        ]
        outside = [verdict.sentence(row) for row in rows if row.kept is False]
        if not outside:
            break
        if attempts < ATTEMPTS:
            earlier += outside
    return rows, trip, attempts


def _measure(
    agent: LocalAgent, plan: Plan, names: tuple[str, str], requested: tuple[RequestedPath, RequestedPath]
) -> tuple[tuple[Way, Way], dict[str, Any]]:
    planned = schedule.phases(requested)
    start_ns = time.monotonic_ns() + int(HEAD_START_S * 1e9)
    addresses = (plan.addresses[names[0]], plan.addresses[names[1]])
    plans = schedule.prober_plans(planned, addresses, start_ns)
    limit_s = HEAD_START_S + planned[-1].end_s + PATIENCE_S
    probers = [
        _Prober(agent, host, json.dumps(plan_of_prober)) for host, plan_of_prober in zip(names, plans, strict=True)
    ]
    answers = [prober.answer(limit_s) for prober in probers]
    ways = (Way(), Way())
    trips: list[float] = []
    for number, phase in enumerate(planned):
        results = [answer[number] for answer in answers]
        _read(phase, results, requested[phase.sender], ways, trips)
    return ways, verdict.summary(trips)


def _read(
    phase: ProbePhase,
    results: list[dict[str, Any]],
    requested: RequestedPath,
    ways: tuple[Way, Way],
    trips: list[float],
) -> None:
    """Evaluate one phase: what host k sent, host 1 - k has received."""
    way, sent, received = ways[phase.sender], results[phase.sender], results[1 - phase.sender]
    if phase.name == "tcp":
        elapsed_ns = received.get("last_ns", 0) - received.get("first_ns", 0)
        way.tcp_bps = 8e9 * received["bytes"] / elapsed_ns if elapsed_ns > 0 else None
        return
    arrivals = received["arrivals"]
    if phase.name == "delay":
        for _, sent_ns, echoed_ns, returned_ns, arrived_ns in sent["arrivals"]:
            ways[0].delays_s.append((echoed_ns - sent_ns) / 1e9)
            ways[1].delays_s.append((arrived_ns - returned_ns) / 1e9)
            trips.append((arrived_ns - returned_ns + echoed_ns - sent_ns) / 1e9)
    elif phase.name == "mtu":
        way.mtu = max((arrival[4] for arrival in arrivals), default=None)
        way.longer_refused = sent["too_long"] > 0
    elif phase.name == "train":
        way.burst_bps = verdict.rate_of_trains(arrivals, schedule.train(requested)[0], requested.frame_bytes)
    elif phase.name == "udp":
        way.udp_bps = verdict.rate_of_stream(arrivals, requested.frame_bytes)
    else:
        way.lost, way.loss_runs = verdict.losses(arrivals, sent["sent"])
        way.probed = sent["sent"]
        if way.udp_bps is not None:
            # The rate is limited before frames are lost: it carried those too.
            way.udp_bps /= 1 - way.lost / way.probed if way.lost < way.probed else 1


class _Prober:
    """One running end of a path."""

    def __init__(self, agent: LocalAgent, host: str, plan: str) -> None:
        self.host = host
        self.output = os.memfd_create("prober")
        with Path(os.devnull).open("rb") as nothing:
            self.process: Process = agent.spawn(
                [PYTHON, "-I", "-S", str(PROBER), plan],
                environment={"PATH": os.defpath, "LC_ALL": "C"},
                directory=Path("/"),
                descriptors=(nothing.fileno(), self.output, self.output),
                host=host,
            )

    def answer(self, limit_s: float) -> list[dict[str, Any]]:
        """Return the results of its phases. Raises ClusterUnavailable."""
        try:
            status = self.process.wait(limit_s)
            if status is None:
                self.process.terminate(0.0)
            text = os.pread(self.output, OUTPUT_LIMIT_BYTES, 0).decode(errors="replace")
        finally:
            os.close(self.output)
        if status != 0:
            said = text.strip().splitlines()[-1:] or ["it did not end"]
            raise ClusterUnavailable(f"The link cannot be measured from {self.host}: {said[0]}.")
        results: list[dict[str, Any]] = json.loads(text)["results"]
        return results
