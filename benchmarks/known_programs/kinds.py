"""The kinds of programs: sizes, link and the parts that explain the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

COMPUTING: Final = "computing"
IMBALANCE: Final = "imbalance"
DESCHEDULED: Final = "descheduled"
BLOCKED: Final = "blocked"
COMMUNICATION: Final = "communication"
LAUNCH: Final = "launch"
"""The parts of a time, as `analysis.conclusions.observations.parts` names them."""

Form = Literal["loss", "gain", "none"]
"""Loss: the largest size is slower than the best. Gain: it is the best, but not ideal. None: the size has no effect."""

FIGURES: Final = (
    "loop_s", "computing_s", "busiest_computing_s", "busiest_run_delay_s", "busiest_blocked_s", "busiest_outside_s", "mpi_s",
    "meeting_s", "messages",
)  # fmt: skip
"""Figures that each program prints: its own measurement of itself."""


@dataclass(frozen=True)
class Kind:
    """One program of known truth."""

    name: str
    values: Mapping[str, float]
    """Arguments of known.c, which explains them."""
    causes: frozenset[str]
    """Parts that are the true cause by construction; empty if the size has no effect."""
    sizes: tuple[int, ...] = (1, 2)
    scale: Literal["hosts", "ranks_per_host"] = "ranks_per_host"
    link: Mapping[str, str] = field(default_factory=lambda: {"bandwidth": "1 Gbit/s"})
    form: Form = "loss"
    deciding: str = "command.loop_s"


def _kind(name: str, *causes: str, rounds: int = 20, **options: Any) -> Kind:
    fields = {key: options.pop(key) for key in ("sizes", "scale", "link", "form", "deciding") if key in options}
    return Kind(name, {"rounds": rounds, **options}, frozenset(causes), **fields)


def _link(bandwidth: str, delay: str = "0 ms") -> dict[str, Any]:
    return {"scale": "hosts", "link": {"bandwidth": bandwidth, "delay": delay}}


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        _kind("imbalance", IMBALANCE, work=30, skew=2, meet=1, scale="hosts"),
        _kind("imbalance-gain", IMBALANCE, total=60, skew=2, meet=1, form="gain"),
        _kind("polling", COMMUNICATION, total=30, laps=3, **_link("1 Gbit/s", "10 ms")),
        _kind("latency", COMMUNICATION, rounds=100, work=2, laps=2, meet=1, **_link("1 Gbit/s", "1 ms")),
        _kind("bandwidth", COMMUNICATION, rounds=8, total=50, bytes=1_000_000, meet=1, **_link("100 Mbit/s")),
        _kind("sleeping", BLOCKED, nap=15, nap_more=8, meet=1, sizes=(1, 2, 4)),
        _kind("oversubscribed", DESCHEDULED, work=30, meet=1, sizes=(1, 2, 4)),
        _kind("files", BLOCKED, pipe=15, pipe_more=15, work=5, meet=1),
        _kind("fsync", BLOCKED, work=5, writes=10, writes_more=30, meet=1),
        _kind("launch", LAUNCH, work=0.5, meet=1, sizes=(1, 2, 4), scale="hosts", deciding="elapsed_s"),
        _kind("repeated-work", COMPUTING, work=25, work_more=15, meet=1, scale="hosts"),
        _kind("memory", COMPUTING, touch=40, touch_more=40, meet=1),
        _kind("serialised", COMMUNICATION, work=25, serial=1, meet=1),
        _kind("late-sender", IMBALANCE, BLOCKED, work=10, late=20, meet=1),
        _kind("flat", work=5, nap=25, meet=1, form="none"),  # more work would lack a core whenever anything else runs
    )
}


def specification(kind: Kind, program: Path, *, repetitions: int = 3) -> dict[str, Any]:
    """Return the experiment of a kind as ``script/run`` reads it."""
    words = [f"{name}={value:g}" for name, value in kind.values.items()]
    figures: list[dict[str, str]] = [{"name": name, "regex": rf"^{name} (\S+)"} for name in FIGURES]
    figures[0] |= {"unit": "s"} if kind.deciding == "elapsed_s" else {"unit": "s", "direction": "lower"}
    return {
        "name": f"Known program: {kind.name}",
        "workload": "command",
        "parameters": {"program": [str(program), *words], "extract": figures},
        "sweep": {kind.scale: list(kind.sizes)},
        "cluster": "testbed",
        "link": dict(kind.link),
        "repetitions": repetitions,
        "deciding": kind.deciding,
        "time_limit_s": 60,
    }
