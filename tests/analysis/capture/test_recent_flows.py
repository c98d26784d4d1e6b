"""The cache of recent flows finds the same flows as the tables.

This holds however many connections share a slot of the cache.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import analysis
from analysis.kernels.endpoints import RECENT_ROOM
from analysis.packets import IPV4, REVERSE, TCP
from tests.analysis.capture import hostile

CONNECTIONS = 3 * RECENT_ROOM


def test_it_finds_every_connection_again_in_both_directions(tmp_path: Path) -> None:
    path = tmp_path / "answered.pcap"
    path.write_bytes(hostile.answered_twice(CONNECTIONS))
    table = analysis.read_capture(path)
    assert len(table.flow_endpoints) == CONNECTIONS
    np.testing.assert_array_equal(table.flow, np.tile(np.arange(CONNECTIONS), 4))
    turns = np.repeat([0, REVERSE, 0, REVERSE], CONNECTIONS)
    np.testing.assert_array_equal(table.kind, turns + (IPV4 | TCP))
    np.testing.assert_array_equal(table.sport[: 2 * CONNECTIONS], table.sport[2 * CONNECTIONS :])
    np.testing.assert_array_equal(table.src[:CONNECTIONS], table.dst[CONNECTIONS : 2 * CONNECTIONS])
    np.testing.assert_array_equal(table.dport[:CONNECTIONS], table.sport[CONNECTIONS : 2 * CONNECTIONS])
