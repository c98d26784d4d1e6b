"""Result of one step of a cluster check. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from experiments.models.cluster_check import OK, PROBLEM, SKIPPED, WARNING

MOST_WORDS: Final = 10_000
"""Characters of each text: a host chooses a part of them, and all users see them."""


@dataclass(frozen=True, slots=True)
class Step:
    """Result of a step: a short ``value``, sentences and commands.

    ``seen`` is the observation, ``remedy`` the suggested fix, ``commands`` are for copying; ``facts``: of the cluster, by their
    names in `experiments.cluster_kinds.facts`.
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
            "value": self.value[:MOST_WORDS],
            "seen": self.seen[:MOST_WORDS],
            "remedy": self.remedy[:MOST_WORDS],
            "commands": list(self.commands),
        }


def ok(name: str, value: str, seen: str = "") -> Step:
    return Step(name, OK, value, seen)


def warning(name: str, value: str, seen: str, remedy: str = "", *commands: str, at: str = "") -> Step:
    """Return a warning; ``at`` states the machine and account of its commands."""
    return Step(name, WARNING, value, seen, _with_place(remedy, commands, at), commands)


def problem(name: str, value: str, seen: str, remedy: str = "", *commands: str, at: str = "") -> Step:
    """Return a problem; ``at`` states the machine and account of its commands."""
    return Step(name, PROBLEM, value, seen, _with_place(remedy, commands, at), commands)


def with_sudo(hosts: Iterable[str]) -> str:
    """Return 'on n1, n2, as an account with sudo'."""
    return f"on {', '.join(hosts)}, as an account with sudo"


def _with_place(remedy: str, commands: Sequence[str], at: str) -> str:
    which = "this command" if len(commands) == 1 else "these commands"
    return f"{remedy} Run {which} {at}.".strip() if commands and at else remedy


def skipped(name: str, because: str) -> Step:
    return Step(name, SKIPPED, "", because)


def as_text(step: Mapping[str, Any]) -> str:
    """Return a stored step as lines of text."""
    lines = [f"{step['state']:<8} {step['name']}" + (f": {step['value']}" if step["value"] else "")]
    lines += [" " * 9 + step[part] for part in ("seen", "remedy") if step[part]]
    return "\n".join([*lines, *(" " * 11 + command for command in step["commands"])])
