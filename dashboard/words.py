"""Names and commands as readers see them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from experiments import workloads
from experiments.parameters import shown

_LABELS = {
    "hosts": "Hosts",
    "ranks_per_host": "Ranks per host",
    "link.bandwidth": "Bandwidth",
    "link.delay": "Delay",
    "link.jitter": "Jitter",
    "link.loss": "Loss",
    "link.mtu": "MTU",
}


def parameter_label(name: str) -> str:
    """A parameter's name for a heading: 'link.mtu' -> 'MTU', 'block_size' -> 'Block size'."""
    return _LABELS.get(name) or name.replace("_", " ").capitalize()


def parameters_sentence(parameters: Mapping[str, Any], names: Sequence[str]) -> str:
    """The values of `names`: '4 hosts, delay 2 ms'."""
    parts = []
    for name in names:
        value = shown(name, parameters.get(name))
        if name == "hosts":
            parts.append(f"{value} host{'' if value == '1' else 's'}")
        else:
            parts.append(f"{parameter_label(name) if name == 'link.mtu' else parameter_label(name).lower()} {value}")
    return ", ".join(parts)


def workload_title(slug: str) -> str:
    """A workload's title, or its slug where the registry no longer knows it (published results)."""
    try:
        return workloads.get(slug).title
    except KeyError:
        return slug


def command_lines(argv: Sequence[str]) -> str:
    """An argv list as a shell would take it, one option group per line."""
    lines: list[str] = []
    for word in map(shlex.quote, argv):
        if lines and not (word.startswith("--") or _begins_program(argv, word)):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n  ".join(lines)


def _begins_program(argv: Sequence[str], word: str) -> bool:
    return word == shlex.quote(argv[0])
