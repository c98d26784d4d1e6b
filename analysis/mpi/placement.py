"""Placement of ranks on cores, and findings about it. Pure.

A CPU is a hardware thread. Findings follow from the CPUs that each rank was allowed, and from those that it was seen on.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from analysis.mpi.transports import numbers_of
from analysis.numbers import plural

MOST_NAMES: Final = 4
"""Hosts and ranks that a sentence names."""


class Core(NamedTuple):
    """One core with its CPUs."""

    socket: int
    numa: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores of one machine; the job may use the CPUs of ``allowed``.

    ``hosts`` are its names: virtual hosts share one machine.
    """

    hosts: tuple[str, ...]
    cores: tuple[Core, ...]
    allowed: frozenset[int]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Machine:
        cores = tuple(Core(socket, numa, tuple(cpus)) for socket, numa, cpus in data["cores"])
        return cls(tuple(data["hosts"]), cores, frozenset(data["allowed"]))

    @property
    def name(self) -> str:
        return self.hosts[0] if len(self.hosts) == 1 else "this machine"

    @property
    def core_of(self) -> dict[int, int]:
        """Return the place of each CPU's core in ``cores``."""
        return {cpu: number for number, core in enumerate(self.cores) for cpu in core.cpus}

    @property
    def sockets(self) -> frozenset[int]:
        """Return the sockets with CPUs of the job."""
        return frozenset(core.socket for core in self.cores if not self.allowed.isdisjoint(core.cpus))


def stored(machines: Sequence[Machine]) -> list[dict[str, Any]]:
    """Return machines for a file, equal ones once: ``hosts`` has a list of each."""
    alike: dict[tuple[tuple[Core, ...], frozenset[int]], list[list[str]]] = defaultdict(list)
    for machine in machines:
        alike[machine.cores, machine.allowed].append(list(machine.hosts))
    return [
        {"hosts": hosts, "cores": [list(core) for core in cores], "allowed": sorted(allowed)}
        for (cores, allowed), hosts in alike.items()
    ]


def machines_of(rows: Sequence[Mapping[str, Any]]) -> list[Machine]:
    """Return the machines of ``stored`` rows."""
    return [Machine.from_dict({**row, "hosts": hosts}) for row in rows for hosts in row["hosts"]]


Row = Mapping[str, Any]
"""A rank of a profile: ``rank``, ``host``, and `analysis.mpi.transports.place_of`, if known."""


def by_machine(rows: Sequence[Row], machines: Sequence[Machine]) -> list[tuple[Machine, list[Row]]]:
    """Return each machine that has ranks, with those whose place is known.

    The only machine has all ranks, whatever they call it.
    """
    placed = [row for row in rows if row.get("allowed")]
    if len(machines) == 1:
        return [(machines[0], placed)] if placed else []
    on_host = defaultdict(list)
    for row in placed:
        on_host[row["host"]].append(row)
    every = [(machine, [row for host in machine.hosts for row in on_host[host]]) for machine in machines]
    return [(machine, ranks) for machine, ranks in every if ranks]


def findings(rows: Sequence[Row], machines: Sequence[Machine], threads: int = 1) -> dict[str, str]:
    """Return what is wrong with the placement of ranks, by the name of its finding.

    Parameters
    ----------
    rows
        The ranks of a profile.
    machines
        The machines of the trial.
    threads
        Threads of each rank.

    Returns
    -------
    dict
        ``shared_core``, ``threads_as_cores``, ``idle_socket`` and ``migrated_rank``, each with a sentence that
        names the first machine and the number of others.
    """
    found: dict[str, list[str]] = defaultdict(list)
    if not all(row.get("allowed") for row in rows):
        return {}  # the others may be anywhere
    for machine, ranks in by_machine(rows, machines):
        if machine.cores:
            for name, sentence in _of_machine(machine, ranks, threads):
                found[name].append(sentence)
    return {name: _first(sentences) for name, sentences in found.items()}


def sharing_ranks(rows: Sequence[Row], machines: Sequence[Machine]) -> frozenset[int]:
    """Return the ranks that were on a core of another rank when they were last seen."""
    shared: set[int] = set()
    for machine, ranks in by_machine(rows, machines):
        shared.update(row["rank"] for those in _at(machine, ranks).values() if len(those) > 1 for row in those)
    return frozenset(shared)


def _at(machine: Machine, ranks: Sequence[Row]) -> dict[int, list[Row]]:
    """Return the ranks of a machine by the core where they were last seen."""
    core_of = machine.core_of
    at: dict[int, list[Row]] = defaultdict(list)
    for row in ranks:
        if row.get("cpu") in core_of:
            at[core_of[row["cpu"]]].append(row)
    return at


def _first(sentences: Sequence[str]) -> str:
    others = len(sentences) - 1
    return sentences[0] + (f", and {plural(others, 'other host')} likewise" if others else "")


def _of_machine(machine: Machine, ranks: Sequence[Row], threads: int) -> Iterator[tuple[str, str]]:
    yield from _crowded(machine, ranks, threads)
    if idle := _idle_sockets(machine, ranks, threads):
        used = machine.sockets - idle
        yield (
            "idle_socket",
            f"{ranks_in_words(ranks)} of {machine.name} ran on {_sockets(used)}, and {_sockets(idle)} had none",
        )
    socket_of = {cpu: core.socket for core in machine.cores for cpu in core.cpus}
    seen_on = {row["rank"]: {socket_of[cpu] for cpu in row["cpus"] if cpu in socket_of} for row in ranks}
    migrated = [row for row in ranks if len(seen_on[row["rank"]]) > 1]
    if migrated:
        yield "migrated_rank", f"{ranks_in_words(migrated)} of {machine.name} moved between sockets"


def _crowded(machine: Machine, ranks: Sequence[Row], threads: int) -> Iterator[tuple[str, str]]:
    """Yield the smallest set of cores that has fewer cores than ranks bound to it.

    If all cores of the job are too few, only hardware threads that were taken for cores are a finding: the number of
    ranks was chosen.
    """
    core_of = machine.core_of
    allowed, bound = dict[int, int](), dict[int, int]()
    for row in ranks:
        cpus = [cpu for cpu in numbers_of(row["allowed"]) if cpu in core_of]
        allowed[row["rank"]], bound[row["rank"]] = _bits(cpus), _bits(core_of[cpu] for cpu in cpus)
    whole = _bits(core_of[cpu] for cpu in machine.allowed if cpu in core_of)
    for cores in sorted(set(bound.values()) - {0}, key=lambda cores: (cores.bit_count(), cores & -cores)):
        inside = [row for row in ranks if 0 < (bits := bound[row["rank"]]) == bits & cores]
        if len(inside) * threads <= cores.bit_count():
            continue
        threads_there = _union(allowed[row["rank"]] for row in inside).bit_count()
        share = f"{ranks_in_words(inside)} of {machine.name} share {plural(cores.bit_count(), 'core')}"
        if len(inside) * threads <= threads_there:
            yield "threads_as_cores", f"{share} with {plural(threads_there, 'hardware thread')}"
            return
        if cores != whole and cores & whole == cores:
            unused = (whole & ~_union(bound.values())).bit_count()
            yield "shared_core", share + (f", and {plural(unused, 'core')} had no rank" if unused else "")
            return


def _bits(numbers: Iterable[int]) -> int:
    """Return a set of numbers as bits: hostile ranks may use thousands of cores."""
    content = bytearray(1 << 14)
    for number in numbers:
        content[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(content, "little")


def _union(sets: Iterable[int]) -> int:
    return functools.reduce(operator.or_, sets, 0)


def _idle_sockets(machine: Machine, ranks: Sequence[Row], threads: int) -> frozenset[int]:
    """Return the sockets of the job that no rank used, if its ranks could use several."""
    if len(ranks) * threads < 2:
        return frozenset()
    # threads beside the main one may be on any CPU that is allowed
    seen = {cpu for row in ranks for cpu in (row["cpus"] if threads == 1 else numbers_of(row["allowed"]))}
    used = frozenset(core.socket for core in machine.cores if not seen.isdisjoint(core.cpus))
    return machine.sockets - used if used else frozenset()


def ranks_in_words(rows: Sequence[Row]) -> str:
    """Return "rank 3", "ranks 0-3", or "12 ranks"."""
    numbers = sorted(row["rank"] for row in rows)
    named = _listed(numbers)
    if named.count(",") >= MOST_NAMES:
        return plural(len(numbers), "rank")
    return f"{'rank' if len(numbers) == 1 else 'ranks'} {named}"


def _listed(numbers: Sequence[int]) -> str:
    """Return ascending numbers as "0-3, 8"."""
    groups = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _sockets(sockets: frozenset[int]) -> str:
    return f"{'socket' if len(sockets) == 1 else 'sockets'} {_listed(sorted(sockets))}"


@dataclass(frozen=True, slots=True)
class Picture:
    """Machines with equal processors whose ranks are placed equally.

    ``ranks`` are those of the first machine, by core: the place in its ``cores``.
    """

    machine: Machine
    names: tuple[str, ...]
    """Of all machines."""
    ranks: Mapping[int, Sequence[Row]]


def pictures(rows: Sequence[Row], machines: Sequence[Machine]) -> list[Picture]:
    """Return one picture of all machines that look the same, in the order of hosts."""
    alike: dict[tuple[Any, ...], list[tuple[Machine, dict[int, list[Row]]]]] = defaultdict(list)
    for machine, ranks in by_machine(rows, machines):
        at = _at(machine, ranks)
        counts = tuple(sorted((core, len(those)) for core, those in at.items()))
        alike[machine.cores, machine.allowed, counts].append((machine, at))
    return [
        Picture(first, tuple(machine.name for machine, _ in those), at)
        for those in alike.values()
        for first, at in [those[0]]
        if first.cores
    ]
