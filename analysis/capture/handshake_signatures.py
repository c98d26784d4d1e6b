"""Greetings that count only when they are answered: the eight bytes of Open MPI 1.8 to 2 name no library (kernels.greetings)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.packets import NO_FLOW, ONE_SIDED, OTHER_SIDE, REVERSE

MOST_WAITING: Final = 4096
"""Flows whose answer is waited for; of more the first ones are forgotten, and counted."""


class Greetings:
    """Over successive tables whose ``flow`` numbers mean the same."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int, int]] = {}
        self.forgotten = 0
        """Flows whose answer would no longer be known for one."""

    def confirmed(
        self, heard: npt.NDArray[np.int64], flow: npt.NDArray[np.uint32], kind: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.int64]:
        """``heard`` (H, 3): row, jobid, rank; without those that nobody has answered alike, with both where somebody has."""
        one_sided = (heard[:, 1] > 0) & (heard[:, 1] & ONE_SIDED > 0)
        if not one_sided.any():
            return heard
        told: list[Any] = []
        for (row, jobid, rank), doubtful in zip(heard.tolist(), one_sided.tolist(), strict=True):
            if not doubtful:
                told.append((row, jobid, rank))
            elif flow[row] != NO_FLOW:
                told += self._answered(int(flow[row]), row, bool(kind[row] & REVERSE), jobid, rank)
        return np.array(told, np.int64).reshape(-1, 3)

    def _answered(self, flow: int, row: int, side: bool, jobid: int, rank: int) -> list[tuple[int, int, int]]:
        first_side, first_jobid, first_rank = self._waiting.get(flow, (side, jobid, rank))
        if first_side != side and first_jobid == jobid and first_rank != rank:
            del self._waiting[flow]
            job = jobid & ~ONE_SIDED
            return [(row, job | OTHER_SIDE, first_rank), (row, job, rank)]
        if flow not in self._waiting and len(self._waiting) >= MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
            self.forgotten += 1
        self._waiting[flow] = (side, jobid, rank)
        return []
