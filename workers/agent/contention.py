"""CPU time that other programs take of the ranks' cores while none is free.

A rank runs on the cores that its affinity leaves it: cores that are idle elsewhere do not help it. Standard library and
Python 3.9 only: this runs with every agent.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from workers.agent.process_table import TICKS_PER_SECOND, Entry

Cores = frozenset[int]
Key = tuple[int, int]
FREE_CORES = 0.5
"""With less than this idle, none of many cores was free; of one or two, with less than FREE_SHARE of them."""
FREE_SHARE = 0.25
LEAST_SHARE = 0.01
"""Of a core: what a program must use, unless it waits for a core, for its affinity to count."""


class CoreTimes(NamedTuple):
    """CPU seconds of one core since boot, those of programs without interrupts."""

    programs_s: float
    interrupts_s: float
    idle_s: float
    stolen_s: float
    user_s: float


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as "0-3, 8"."""
    groups = itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def core_times(statistics: Mapping[str, Sequence[str]]) -> dict[int, CoreTimes]:
    """Return the times of usable cores by number (proc_stat(5)).

    Containers may number cores anew: without one of them the whole machine is core -1.
    """
    names = {number: f"cpu{number}" for number in os.sched_getaffinity(0)}
    if not all(name in statistics for name in names.values()):
        names = {-1: "cpu"}
    return {number: _times(statistics[name]) for number, name in names.items()}


def _times(values: Sequence[str]) -> CoreTimes:
    user, nice, system, idle, waiting, *others = (int(value) / TICKS_PER_SECOND for value in values)
    stolen_s = others[2] if len(others) > 2 else 0.0
    return CoreTimes(user + nice + system + stolen_s, sum(others[:2]), idle + waiting, stolen_s, user + nice)


class Contention:
    """Seconds so far of the ranks' cores, and of them those of other programs."""

    def __init__(self) -> None:
        self.cores_s = 0.0
        self.taken_s = 0.0
        self._groups: set[Cores] = set()
        self._used_s: dict[Key, float] = {}
        self._totals = (0.0, 0.0, 0.0)
        self._cores: Mapping[int, CoreTimes] = {}

    def look(
        self,
        now_s: float,
        cores: Mapping[int, CoreTimes],
        processes: Sequence[Entry],
        ranks: Container[Key],
        ours_s: float,
        beside_s: float,
    ) -> None:
        """Add the time since the last look.

        ``processes`` are the trial's, of which ``ranks`` are ranks; ``ours_s`` is the CPU time of all of them so far, ended
        ones included; ``beside_s`` that of instruments that run on any core.
        """
        used_s = {(entry.pid, entry.started_ticks): entry.user_s + entry.system_s for entry in processes}
        more_s = {key: value - self._used_s.get(key, 0.0) for key, value in used_s.items()}
        length_s, ours_more_s, beside_more_s = (
            now - before
            for now, before in zip((now_s, ours_s, beside_s), self._totals)  # noqa: B905 - Python 3.9
        )
        groups = {
            _affinity(entry)
            for entry in processes
            if (key := (entry.pid, entry.started_ticks)) in ranks
            and (entry.state == "R" or more_s[key] >= LEAST_SHARE * length_s)
        } - {frozenset()}
        before, there = self._cores, frozenset(cores)
        judged = {group & there for group in groups or self._groups} - {frozenset()}  # cores may vanish
        # A core that was offline, or whose counter went backwards (proc_stat(5)), is judged from the next look on.
        if judged and all(
            number in before and cores[number].programs_s >= before[number].programs_s
            for group in judged
            for number in group
        ):
            idle_s = {number: cores[number].idle_s - before[number].idle_s for number in cores if number in before}
            contended = {
                number
                for group in judged
                if sum(idle_s.get(number, 0.0) for number in group)
                < min(FREE_CORES, FREE_SHARE * len(group)) * length_s
                for number in group
            }
            of_ranks = frozenset().union(*judged)
            self.cores_s += length_s * len(of_ranks)
            if contended:
                placed = dict.fromkeys(cores, 0.0)
                for entry in processes:
                    if entry.processor in placed:
                        placed[entry.processor] += more_s[entry.pid, entry.started_ticks]
                unplaced_s = ours_more_s - sum(more_s.values())  # of processes that have ended
                ours_there_s = (
                    sum(placed[number] for number in contended)
                    + unplaced_s * len(contended) / len(of_ranks)
                    + beside_more_s * len(contended) / len(cores)
                )
                busy_s = (cores[number].programs_s - before[number].programs_s for number in contended)
                self.taken_s += sum(min(busy, length_s) for busy in busy_s) - ours_there_s
        self._groups, self._used_s, self._cores = groups, used_s, cores
        self._totals = (now_s, ours_s, beside_s)


def _affinity(entry: Entry) -> Cores:
    """Return the cores of all threads of a process."""
    try:
        threads = [entry.pid] if entry.threads == 1 else map(int, os.listdir(f"/proc/{entry.pid}/task"))  # noqa: PTH208
        return frozenset().union(*(os.sched_getaffinity(thread) for thread in threads))
    except OSError:  # ended in this moment
        return frozenset()
