"""Counts of a run's profiles in the form of the independent count."""

from __future__ import annotations

import numpy as np

from tests.workers.profile.ranks import Ran

PAGES = 20 * 200
"""Page faults of programs/faults.c outside MPI."""
OTHERS = 120
"""Pages of the program and of libraries that are touched first outside MPI."""


def counted(ran: Ran) -> dict[tuple[int, int], tuple[int, int]]:
    """(from, to) -> messages, bytes."""
    return {
        (rank, int(to)): (int(profile.peers[to, 0]), int(profile.peers[to, 1]))
        for rank, profile in ran.profiles.items()
        for to in np.flatnonzero(profile.peers[:, 0])
    }


def sizes(ran: Ran) -> dict[int, list[int]]:
    """From -> messages by size: 0 empty, k from 2**(k-1) bytes on."""
    return {rank: profile.sizes[0].tolist() for rank, profile in ran.profiles.items()}
