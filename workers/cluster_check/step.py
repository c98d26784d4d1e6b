"""What one step of a test found. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.models.cluster_check import OK, PROBLEM, SKIPPED, WARNING


@dataclass(frozen=True, slots=True)
class Step:
    """``value`` is a few words, ``seen`` what was found and ``remedy`` what to do, in sentences; ``commands`` are to be copied.

    ``facts``: what it says of the cluster, by the names of stated facts (`experiments.cluster_kinds.facts`).
    """

    name: str
    state: str
    value: str = ""
    seen: str = ""
    remedy: str = ""
    commands: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "value": self.value,
            "seen": self.seen,
            "remedy": self.remedy,
            "commands": list(self.commands),
        }


def ok(name: str, value: str, seen: str = "") -> Step:
    return Step(name, OK, value, seen)


def warning(name: str, value: str, seen: str, remedy: str = "", *commands: str) -> Step:
    return Step(name, WARNING, value, seen, remedy, commands)


def problem(name: str, value: str, seen: str, remedy: str = "", *commands: str) -> Step:
    return Step(name, PROBLEM, value, seen, remedy, commands)


def skipped(name: str, because: str) -> Step:
    return Step(name, SKIPPED, "", because)


def as_text(step: Mapping[str, Any]) -> str:
    """A stored step as lines of text, for whoever reads without a browser."""
    lines = [f"{step['state']:<8} {step['name']}" + (f": {step['value']}" if step["value"] else "")]
    lines += [" " * 9 + step[part] for part in ("seen", "remedy") if step[part]]
    return "\n".join([*lines, *(" " * 11 + command for command in step["commands"])])
