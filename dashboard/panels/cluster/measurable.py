"""Measurable sources of a cluster: packets, MPI calls and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from experiments.models import ClusterTest
from experiments.models.cluster_check import OK, SKIPPED

_NOT_KNOWN: Final = "Not known yet: check this cluster."
_COUNTERS: Final = "CPU time, memory and frames of every host, and counters of its devices, once a second."


@dataclass(frozen=True, slots=True)
class Source:
    """One of the three sources: its state, a sentence, and the suggested fix."""

    name: str
    term: str
    state: str
    value: str
    sentence: str
    remedy: str = ""
    commands: tuple[str, ...] = ()

    @classmethod
    def of_step(cls, name: str, term: str, step: Mapping[str, Any] | None) -> Source:
        """Return what a step of the last check found."""
        if step is None:
            return cls(name, term, SKIPPED, "Not known", _NOT_KNOWN)
        return cls(name, term, step["state"], step["value"], step["seen"], step["remedy"], tuple(step["commands"]))


def measurable(test: ClusterTest | None) -> list[Source]:
    """Return the three sources as the last check found them."""
    steps = {step["name"]: step for step in test.steps} if test else {}
    started = steps.get("Start")
    is_read = started is not None and started["state"] == OK
    counters = Source("Counters", "host-counters", OK, "Every host", _COUNTERS)
    return [
        Source.of_step("Packets", "packets-source", steps.get("Capture permission")),
        Source.of_step("Calls", "calls-source", steps.get("MPI calls")),
        counters if is_read else Source.of_step("Counters", "host-counters", started),
    ]
