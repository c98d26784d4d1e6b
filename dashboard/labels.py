"""Names and commands for pages and reports. Pure functions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic.fields import FieldInfo

from analysis import numbers
from experiments import workloads
from experiments.common.facts import leaves, text_of
from experiments.specification.parameters import Link, display_value, unit_of

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
STUDY_KINDS: Final = {
    "strong": "Strong scaling: same problem",
    "weak": "Weak scaling: problem grows",
    "throughput": "Throughput",
}
SAME_WORK: Final = "Weak scaling: same work on each rank"
_ACRONYMS = {name: name.upper() for name in ("cpu", "gro", "gso", "mpi", "mtu", "tcp")} | {"sha256": "SHA-256"}
_FACT_UNITS = {"_bytes": "B", "_bps": "bit/s", "_s": "s"}
_BYTES = "_bytes"
_BUFFERS = ("link.queue", "link.tcp_buffer")
_SENTENCES = re.compile(r"(?<=\.)\s+(?=[A-Z0-9])")
_CLAUSES = re.compile(r";\s|\.\s")
_INTERVALS = re.compile(r"\s\([^()]*\)")
_LONGEST_UNQUOTED: Final = 10_000


def parameter_label(name: str, workload: str = "") -> str:
    """Return a parameter's name for a heading: its title in a user's own workload.

    'link.mtu' -> 'MTU', 'block_size' -> 'Block size', 'page_bytes' -> 'Page size'.
    """
    field = _own_field(name, workload)
    if field is not None and field.title:
        return field.title
    if name.endswith(_BYTES):
        name = f"{name.removesuffix(_BYTES)}_size"  # the values have the unit
    return _LABELS.get(name) or name.replace("_", " ").replace(".", " ").capitalize()


def axis_label(name: str, workload: str = "") -> str:
    """Return a parameter's name with its own unit, for the axis of a chart."""
    unit = own_unit(name, workload)
    return f"{parameter_label(name, workload)} ({unit})" if unit else parameter_label(name, workload)


def own_unit(name: str, workload: str = "") -> str:
    """Return the unit of a parameter of a user's own workload; '' if it has none."""
    field = _own_field(name, workload)
    return "" if field is None else unit_of(field)


def _own_field(name: str, workload: str) -> FieldInfo | None:
    """Return the parameter of a workload that does not come with Rankwire.

    Without a ``workload``, all that have the parameter must give it the same title and unit.
    """
    definition = workloads.find(workload) if workload else None
    owners = [definition] if definition else workloads.registry()
    owners = [owner for owner in owners if name in owner.parameters_type.model_fields]
    fields = [owner.parameters_type.model_fields[name] for owner in owners]
    is_own = not any(owner in workloads.built_in() for owner in owners)
    return fields[0] if is_own and len({(field.title, unit_of(field)) for field in fields}) == 1 else None


def names_with_values(parameters: Mapping[str, Any]) -> list[str]:
    """Return the parameters with a value; a text may be empty."""
    return [name for name, value in parameters.items() if value != ""]


def telling(parameters: Mapping[str, Any]) -> list[str]:
    """Return the parameters that identify a configuration, hosts first."""
    as_always = {f"link.{name}": field.default for name, field in Link.model_fields.items() if name != "bandwidth"}
    names = [
        name for name in names_with_values(parameters) if name not in as_always or parameters[name] != as_always[name]
    ]
    return sorted(names, key=lambda name: name != "hosts")


def parameters_sentence(parameters: Mapping[str, Any], names: Sequence[str], workload: str = "") -> str:
    """Return the values of `names`: '4 hosts, delay 2 ms'."""
    parts = []
    for name in names:
        if parameters.get(name) in (None, [], {}):
            continue
        value, label = value_words(name, parameters[name], workload), parameter_label(name, workload)
        if name == "hosts":
            is_number = isinstance(parameters[name], int)
            parts.append(numbers.plural(parameters[name], "host") if is_number else f"{value} hosts")
        else:
            parts.append(f"{label if name == 'link.mtu' else label.lower()} {value}")
    return ", ".join(parts)


_ROLES = {
    "measured": "repetition",
    "warmup": "warm-up",
    "control": "control run",
    "ideal": "ideal-network run",
    "search": "search trial",
}


def trial_role(kind: str, repetition: int, attempt: int = 1) -> str:
    """Return the role of a trial: 'repetition 2, attempt 3', 'warm-up 1'."""
    return f"{_ROLES.get(kind, kind)} {repetition}{f', attempt {attempt}' if attempt > 1 else ''}"


def study_kind(workload: str, specification: Mapping[str, Any]) -> str:
    """Return how an experiment scales: "Strong scaling: same problem"."""
    definition = workloads.find(workload, specification.get("parameters"))
    if definition is not None and definition.work_grows:
        return SAME_WORK
    return STUDY_KINDS[workloads.scaling_of(workload, specification)]


def workload_title(slug: str) -> str:
    """Return the title of a workload, or its slug if it is not registered."""
    workload = workloads.find(slug)
    return slug if workload is None else workload.title


def command_text(words: Sequence[str]) -> str:
    """Return a command as typed: quotes only around words that need them here."""
    return " ".join(word if _is_one_word(word) else shlex.quote(word) for word in words)


def _is_one_word(text: str) -> bool:
    if len(text) > _LONGEST_UNQUOTED:  # shlex takes the square of the length
        return False
    try:
        return shlex.split(text) == [text]
    except ValueError:  # an open quote
        return False


def command_lines(argv: Sequence[str], width: int = 76) -> str:
    """Format an argv list for a shell, broken before options at `width`."""
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


def sentence_and_rest(text: str) -> tuple[str, str]:
    """Return the first sentence of a text, and the following ones."""
    first, *rest = _SENTENCES.split(text, maxsplit=1)
    return first, "".join(rest)


def first_clause(text: str) -> str:
    """Return the beginning of an answer, without intervals and further clauses.

    Verdicts of several groups ("pull: ...; push: ...") are one beginning.
    """
    sentence = sentence_and_rest(_INTERVALS.sub("", text))[0].rstrip(".")
    first, *others = _CLAUSES.split(sentence)
    return sentence if ": " in first and others and ": " in others[0] else first


def value_words(name: str, value: Any, workload: str = "") -> str:
    """Format a parameter's value for people: '10 000', '1 Gbit/s', '4 MiB'."""
    if value is None:
        return numbers.NOTHING
    if isinstance(value, str):
        return value or numbers.NOTHING  # as the user wrote it: 4 ms
    if isinstance(value, int | float) and not isinstance(value, bool) and (unit := own_unit(name, workload)):
        number = numbers.grouped(value) if isinstance(value, int) else numbers.significant(value)
        return numbers.size(value) if unit == "B" and isinstance(value, int) else numbers.with_unit(number, unit)
    if isinstance(value, int) and not isinstance(value, bool) and (name.endswith(_BYTES) or name in _BUFFERS):
        return numbers.size(value)
    if isinstance(value, int) and name == "link.mtu":
        return f"{numbers.grouped(value)} B"  # familiar by its digits: 9 216 B instead of 9 KiB
    if isinstance(value, int) and not isinstance(value, bool) and not name.startswith("link."):
        return numbers.grouped(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and (name == "link.loss_burst" or not name.startswith("link.")):
        return numbers.significant(value)
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return command_text(value) if value else numbers.NOTHING
    if value == 0 and name in ("link.delay", "link.jitter"):
        return "0 ms"
    return display_value(name, value).replace(" us", " µs")  # specifications may omit it


def fact_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return nested facts as (name, value) pairs in their order, without unknown ones."""
    for path, value in leaves(facts):
        name, unit = path[-1], ""
        if isinstance(value, int | float) and not isinstance(value, bool):
            suffix = next((unit for unit in _FACT_UNITS if name.endswith(unit)), "")
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
    """Return an identifier as words, except for names of the system.

    'memory_total' -> 'memory total'; net.ipv4.tcp_rmem and OMP_NUM_THREADS are unchanged.
    """
    if "." in name or name != name.lower():
        return name
    return " ".join(_ACRONYMS.get(word, word) for word in name.split("_"))
