"""Detection of flows that carry MPI."""

from __future__ import annotations

from analysis.packets import NO_FLOW
from analysis.traffic.scopes import MpiFlows
from tests.analysis.segments import ACK, Segment, table_of


def test_signature_of_a_flow_without_room_marks_no_flow() -> None:
    """The table of flows is bounded; packets beyond it belong to no flow."""
    segments = [Segment(10 * flow, 0, 1, 1, ACK, 24, flow=flow) for flow in range(2)]
    signatures = [(0, 5, 0), (1, 5, 1)]
    table = table_of(segments, endpoints=((0, 4000, 1, 20000), (2, 4001, 0, 20000)), handshakes=signatures)
    table.flow[1] = NO_FLOW
    assert MpiFlows(None).update(table)[:2].tolist() == [True, False]
