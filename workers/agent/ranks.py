"""Rank of a process, from its launcher's variables, for the live view."""

from __future__ import annotations

import os
from collections.abc import Container

Key = tuple[int, int]
"""Process and when it started: numbers of processes come again."""
LOOKS = 3
"""A process that has just been forked has its parent's variables still."""
MOST_RANKS = 256
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "FLUX_TASK_RANK", "PALS_RANKID")
"""Variables that identify a rank, equal to those of workers.launchers.rank, which is not sent to other hosts.

Variables of the agent itself identify no rank.
"""
_NAMES = tuple(f"{name}=".encode() for name in RANK_VARIABLES if name not in os.environ)


class Ranks:
    """Cache of the rank of every process: each costs one to three reads in its life."""

    def __init__(self) -> None:
        self._rank_of: dict[Key, str] = {}
        self._looks: dict[Key, int] = {}

    def of(self, key: Key) -> str:
        """Return the rank as its launcher writes it; '' if none or too many."""
        if key not in self._rank_of and self._looks.get(key, 0) < LOOKS and len(self._rank_of) < MOST_RANKS:
            self._looks[key] = self._looks.get(key, 0) + 1
            if rank := _rank_of(key[0]):
                self._rank_of[key] = rank
        return self._rank_of.get(key, "")

    def forget(self, living: Container[Key]) -> None:
        """Forget what has ended."""
        for table in (self._rank_of, self._looks):
            for key in [key for key in table if key not in living]:
                del table[key]


def _rank_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:  # noqa: PTH123 - a hot path
            variables = stream.read().split(b"\0")
    except OSError:
        return ""  # ended in this moment, or not ours to look at
    for name in _NAMES:
        for variable in variables:
            if variable.startswith(name) and variable[len(name) :].isdigit():
                return variable[len(name) :].decode()
    return ""
