"""Measurable sources of a cluster: packets, MPI calls and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from analysis import numbers
from experiments.models import ClusterTest
from experiments.models.cluster_check import OK, SKIPPED, WARNING

_NOT_TRIED: Final = "Check the cluster to find out."
_UNFINISHED: Final = "Known when the check ends."
_RECORDED: Final = "These trials recorded them; the cluster was never checked."
_COUNTERS: Final = "CPU time, memory and frames of every host, once a second{}."


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
    def of_step(cls, name: str, term: str, step: Mapping[str, Any] | None, absent: str = _NOT_TRIED) -> Source:
        """Return what a step of the last check found; ``absent`` if it has no such step."""
        if step is None:
            return cls(name, term, SKIPPED, "", absent)
        return cls(name, term, step["state"], step["value"], step["seen"], step["remedy"], tuple(step["commands"]))


def measurable(test: ClusterTest | None, recorded: Mapping[str, int] = MappingProxyType({})) -> list[Source]:
    """Return the three sources as the last check found them.

    ``recorded``: trials of the cluster with each source (name in lower case), the evidence without a check.
    """
    steps = {step["name"]: step for step in test.steps} if test else {}
    absent = _NOT_TRIED if test is None or test.is_over else _UNFINISHED
    sources = [
        Source.of_step("Packets", "packets-source", steps.get("Capture permission"), absent),
        Source.of_step("Calls", "calls-source", steps.get("MPI calls"), absent),
        _counters(steps, absent),
    ]
    return [
        replace(source, state=OK, value=numbers.plural(count, "trial"), sentence=_RECORDED)
        if not steps and (count := recorded.get(source.name.lower(), 0))
        else source
        for source in sources
    ]


def _counters(steps: Mapping[str, Mapping[str, Any]], absent: str) -> Source:
    """Return the counters: those of hosts, and of devices that the check found."""
    started = steps.get("Start")
    if started is None or started["state"] != OK:
        return Source.of_step("Counters", "host-counters", started or steps.get("Counters"), absent)
    devices = {name.partition(": ")[2]: step for name, step in steps.items() if name.startswith("Counters: ")}
    ready = [name for name, step in devices.items() if step["state"] == OK]
    to_fix = [step for step in devices.values() if step["state"] != OK]
    value = f"{len(ready)} of {numbers.plural(len(devices), 'source')}" if devices else "Every host"
    remedies = dict.fromkeys(step["remedy"] for step in to_fix if step["remedy"])
    return Source(
        *("Counters", "host-counters", WARNING if to_fix else OK, value),
        sentence=_COUNTERS.format(f"; {', '.join(ready)}" if ready else ""),
        remedy=" ".join(remedies),
        commands=tuple(dict.fromkeys(command for step in to_fix for command in step["commands"])),
    )
