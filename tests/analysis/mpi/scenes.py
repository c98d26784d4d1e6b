"""Two ranks with one connection: their calls and their packets. Times in ms."""

from __future__ import annotations

import numpy as np

from analysis.mpi.calls import CALL, Calls
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.pairs import HEADER_BYTES
from analysis.mpi.streams import StreamAccumulator
from analysis.mpi.wait_sums import CAUSES
from analysis.mpi.waits import explained
from tests.analysis.segments import ACK, SYN, Segment, slices, table_of

MS = 1_000_000
EPOCH = 1_700_000_000_000_000_000
GREETING_BYTES = 24
NUMBERS = {function.name: number for number, function in enumerate(FUNCTIONS)}


ALL = -5
"""The communicator of all ranks, until it is known how many they are."""


def comm_of(number, members):
    return number << 24 | members


class Scene:
    """Ranks 0 and 1 with a handshake at 0 ms; further ranks only call.

    ``window``: bytes that each side has room for; without it nothing says how its windows are shifted.
    """

    def __init__(self, greeted: bool = True, window: int | None = None):
        self._calls = []
        self._window = window
        self._at = [0, 0]
        self._segments = []
        self._handshakes = greeted
        self.left_out = {0: 0, 1: 0}
        for side in (0, 1) if window is not None else ():
            self._segments.append(Segment(EPOCH - MS, side, 999, 0, SYN | ACK, window=window))
        for side in (0, 1):
            self.data(0, side, GREETING_BYTES - HEADER_BYTES)

    def call(self, rank, name, began, ended, peer=-1, size=0, no_core=(0, 0), comm=None, source=None):
        """Return a call.

        ``no_core``: without a processor since the call before, and within this one; ``comm``: see ``comm_of``, None is
        that of all ranks; ``source``: sender of a received message, the peer if it is not output.
        """
        times = [EPOCH + int(began * MS), EPOCH + int(ended * MS)]
        output = (
            ALL if comm is None else comm,
            peer if source is None else source,
            *(int(each * MS) for each in no_core),
        )
        self._calls.append(np.array((rank, NUMBERS[name], peer, size, *times, *output), CALL))
        self.left_out.setdefault(rank, 0)
        return self

    def data(self, at, rank, size, *, place=None, ack=None):
        """Return a packet with the bytes of a message and its header.

        ``place``: not the next bytes, but these of the stream.
        """
        payload = size + HEADER_BYTES
        start = self._at[rank] if place is None else place
        self._at[rank] = max(self._at[rank], start + payload)
        self._segments.append(
            Segment(
                EPOCH + int(at * MS),
                rank,
                1000 + start,
                1000 + (self._at[1 - rank] if ack is None else ack),
                payload=payload,
                window=1000 if self._window is None else self._window,
            )
        )
        return self

    def lose(self, rank, size):
        """Bytes that the capture never sees; returns their place."""
        place = self._at[rank]
        self._at[rank] += size + HEADER_BYTES
        return place

    def ack(self, at, rank, number, window=1000):
        seq, ack = 1000 + self._at[rank], 1000 + number
        self._segments.append(Segment(EPOCH + int(at * MS), rank, seq, ack, window=window))
        return self

    def end_of(self, rank):
        return self._at[rank]

    @property
    def calls(self):
        rows = np.array(self._calls, CALL)
        rows["comm"][rows["comm"] == ALL] = comm_of(1, len(np.unique(rows["rank"])))
        return Calls(rows[np.lexsort((rows["began_ns"], rows["rank"]))], self.left_out)

    def table(self):
        segments = sorted(self._segments, key=lambda segment: segment.time_ns)
        first = 0 if self._window is None else 2
        handshakes = [(first, 7, 0), (first + 1, 7, 1)] if self._handshakes else []
        return table_of(segments, handshakes=handshakes)

    def wire(self, **bounds):
        packets = StreamAccumulator(**bounds)
        packets.update(self.table())
        return packets.result()

    def explained(self, **asked):
        return explained(self.calls, self.wire(), **asked)

    def causes(self, **asked):
        """Milliseconds by cause of the only pair, without those that are zero."""
        (pair,) = self.explained(**asked).pairs
        return {name: round(1e3 * s, 6) for name, s in zip(CAUSES, pair.seconds, strict=True) if s}

    def wire_of_pieces(self, cuts):
        packets = StreamAccumulator()
        for piece in slices(self.table(), cuts):
            packets.update(piece)
        return packets.result()
