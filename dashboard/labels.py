"""Names and commands as readers see them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis import numbers
from experiments import workloads
from experiments.common.facts import leaves, text_of
from experiments.specification.parameters import Link, shown

_LABELS = {
    "hosts": "Hosts",
    "ranks_per_host": "Ranks per host",
    "link.bandwidth": "Bandwidth",
    "link.delay": "Delay",
    "link.jitter": "Jitter",
    "link.loss": "Loss",
    "link.mtu": "MTU",
    "link.distribution": "Jitter distribution",
    "link.loss_burst": "Loss burst",
    "link.queue": "Queue",
    "link.topology": "Topology",
    "link.rates": "Port rates",
    "link.congestion_control": "Congestion control",
    "link.tcp_buffer": "TCP buffer",
    "link.emulator": "Emulator",
}
_ACRONYMS = {name: name.upper() for name in ("cpu", "gro", "gso", "mpi", "mtu", "tcp")} | {"sha256": "SHA-256"}
_FACT_UNITS = {"_bytes": "B", "_bps": "bit/s", "_s": "s"}
_BYTES = "_bytes"
_BUFFERS = ("link.queue", "link.tcp_buffer")


def parameter_label(name: str) -> str:
    """A parameter's name for a heading: 'link.mtu' -> 'MTU', 'block_size' -> 'Block size', 'page_bytes' -> 'Page size'."""
    if name.endswith(_BYTES):
        name = f"{name.removesuffix(_BYTES)}_size"  # the unit stands with the values
    return _LABELS.get(name) or name.replace("_", " ").capitalize()


def names_with_values(parameters: Mapping[str, Any]) -> list[str]:
    """The parameters of which something can be said: a text may be empty, such as the rates of ports where all are alike."""
    return [name for name, value in parameters.items() if value != ""]


def telling(parameters: Mapping[str, Any]) -> list[str]:
    """The parameters that tell a configuration from others in a few words: hosts first, and of the link what is not as always."""
    as_always = {f"link.{name}": field.default for name, field in Link.model_fields.items() if name != "bandwidth"}
    names = [
        name for name in names_with_values(parameters) if name not in as_always or parameters[name] != as_always[name]
    ]
    return sorted(names, key=lambda name: name != "hosts")


def parameters_sentence(parameters: Mapping[str, Any], names: Sequence[str]) -> str:
    """The values of `names`: '4 hosts, delay 2 ms'."""
    parts = []
    for name in names:
        if parameters.get(name) in (None, [], {}):
            continue
        value, label = value_words(name, parameters[name]), parameter_label(name)
        if name == "hosts":
            is_number = isinstance(parameters[name], int)
            parts.append(numbers.plural(parameters[name], "host") if is_number else f"{value} hosts")
        else:
            parts.append(f"{label if name == 'link.mtu' else label.lower()} {value}")
    return ", ".join(parts)


_ROLES = {
    "measured": "repetition",
    "warmup": "warm-up",
    "control": "control without capture",
    "ideal": "twin on an ideal network",
}


def trial_role(kind: str, repetition: int) -> str:
    """What a trial is for: 'repetition 2', 'warm-up 1'."""
    return f"{_ROLES.get(kind, kind)} {repetition}"


def workload_title(slug: str) -> str:
    """A workload's title, or its slug where the registry no longer knows it (published results)."""
    workload = workloads.find(slug)
    return slug if workload is None else workload.title


def command_lines(argv: Sequence[str], width: int = 76) -> str:
    """An argv list as a shell would take it, broken before options where a line would grow over `width`."""
    groups: list[str] = []
    for word in map(shlex.quote, argv):
        if groups and not word.startswith("-"):
            groups[-1] += f" {word}"
        else:
            groups.append(word)
    lines: list[str] = []
    for group in groups:
        if lines and len(lines[-1]) + len(group) < width:
            lines[-1] += f" {group}"
        else:
            lines.append(group)
    return " \\\n  ".join(lines)


def value_words(name: str, value: Any) -> str:
    """A parameter's value as people write it, thousands set apart: '10 000', '1 Gbit/s', '4 MiB'."""
    if value is None:
        return numbers.NOTHING
    if isinstance(value, str):
        return value or numbers.NOTHING  # as somebody wrote it: 4 ms
    if isinstance(value, int) and not isinstance(value, bool) and (name.endswith(_BYTES) or name in _BUFFERS):
        return numbers.size(value)
    if isinstance(value, int) and name == "link.mtu":
        return f"{numbers.grouped(value)} B"  # known by its digits: 9 216 B and not 9 KiB
    if isinstance(value, int) and not isinstance(value, bool) and not name.startswith("link."):
        return numbers.grouped(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and (name == "link.loss_burst" or not name.startswith("link.")):
        return numbers.significant(value)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return shlex.join(value) if value else numbers.NOTHING
    if value == 0 and name in ("link.delay", "link.jitter"):
        return "0 ms"
    return shown(name, value).replace(" us", " µs")  # which a specification may be written without


def fact_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Nested facts as (name, value) pairs in their order; nothing for what is not known."""
    for path, value in leaves(facts):
        name, unit = path[-1], ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            suffix = next((each for each in _FACT_UNITS if name.endswith(each)), "")
            name, unit = name.removesuffix(suffix), _FACT_UNITS.get(suffix, "")
        label = " · ".join(map(_fact_name, (*path[:-1], name)))
        if unit:
            yield label, numbers.amount(value, unit)
        elif name in ("mtu", "gso_max_size", "gro_max_size") and isinstance(value, int):
            yield label, f"{numbers.grouped(value)} B"
        elif isinstance(value, float) and value.is_integer():
            yield label, numbers.grouped(value)
        elif value is not None and value != "":
            yield label, text_of(value)


def _fact_name(name: str) -> str:
    """'memory_total' -> 'memory total'; what the system itself calls so keeps its name: net.ipv4.tcp_rmem, OMP_NUM_THREADS."""
    if "." in name or name != name.lower():
        return name
    return " ".join(_ACRONYMS.get(word, word) for word in name.split("_"))
