"""Which flows carry MPI."""

from __future__ import annotations

from analysis.packets import NO_FLOW
from analysis.traffic.scopes import MpiFlows
from tests.analysis.segments import ACK, Segment, table_of


def test_a_greeting_of_a_flow_that_had_no_room_marks_none() -> None:
    """The table of flows is bounded; packets beyond it belong to no flow."""
    segments = [Segment(10 * flow, 0, 1, 1, ACK, 24, flow=flow) for flow in range(2)]
    greetings = [(0, 5, 0), (1, 5, 1)]
    table = table_of(segments, endpoints=((0, 4000, 1, 20000), (2, 4001, 0, 20000)), handshakes=greetings)
    table.flow[1] = NO_FLOW
    assert MpiFlows(None).update(table)[:2].tolist() == [True, False]
