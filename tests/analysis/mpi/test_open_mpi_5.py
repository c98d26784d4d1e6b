"""Open MPI 5's handshake and headers on TCP, as long as those of 4.1."""

from pathlib import Path

from analysis.capture.tables import tables_of
from analysis.mpi.pairs import HEADER_BYTES
from analysis.mpi.streams import StreamAccumulator

RECORDED = Path(__file__).parent.parent / "data" / "open-mpi-5.pcap"
"""Version 5.0.11: two ranks that send each other four messages of 700 bytes."""
GREETING_BYTES = 24


def test_its_ranks_and_messages_are_found_in_its_connections():
    packets = StreamAccumulator()
    for table in tables_of(RECORDED, "native"):
        packets.update(table)
    streams = packets.result().streams
    assert set(streams) == {(0, 1), (1, 0)}
    message_bytes = 700 + HEADER_BYTES
    for stream in streams.values():
        starts = [0] + [GREETING_BYTES + number * message_bytes for number in range(4)]
        assert stream.start[:5].tolist() == starts
        assert stream.end[4] == starts[4] + message_bytes
