"""Segmentation-offload correction: wire segments of frames that a card joined.

A sending card cuts a coalesced segment into full segments and a rest, a receiving card joins them: bytes and, except for segments that
were not full, packets follow from the segment size. Times of single segments do not.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.packets import FIN, PacketTable

ERROR: Final = 0.02
"""Relative error of the number of data packets (tests/analysis/traffic/test_wire.py)."""
ERROR_IN_WORDS: Final = "data packets to 2 %, bytes of payload exactly"


def split(
    table: PacketTable, piece: npt.NDArray[np.uint32], duplicate: npt.NDArray[np.bool_] | None = None
) -> tuple[PacketTable, npt.NDArray[np.bool_]]:
    """Return the table with a row per segment on the wire, and ``duplicate``.

    ``piece`` (N,) is the payload of a segment, 0 for unchanged rows. All segments of a frame have its time.
    """
    marks = np.zeros(len(table), np.bool_) if duplicate is None else duplicate
    rows = np.flatnonzero(piece)
    if not len(rows):
        return table, marks
    counts = np.ones(len(table), np.int64)
    counts[rows] = -(-table.payload[rows].astype(np.int64) // piece[rows])
    source = np.repeat(np.arange(len(table)), counts)
    firsts = np.cumsum(counts) - counts
    number = np.arange(len(source)) - firsts[source]
    columns: dict[str, Any] = {name: getattr(table, name)[source] for name in table.columns()}
    joined = piece[source] > 0
    offset = (number * piece[source])[joined].astype(np.int64)
    whole = columns["payload"][joined].astype(np.int64)
    payload = np.minimum(piece[source][joined], whole - offset)
    headers = columns["orig_len"][joined].astype(np.int64) - whole
    columns["payload"][joined] = payload
    columns["orig_len"][joined] = headers + payload
    columns["cap_len"][joined] = np.minimum(columns["cap_len"][joined], columns["orig_len"][joined])
    columns["seq"][joined] = ((columns["seq"][joined].astype(np.int64) + offset) % (1 << 32)).astype(np.uint32)
    columns["fingerprint"][joined] ^= number[joined].astype(np.uint32)
    not_last = joined & (number < counts[source] - 1)
    columns["tcp_flags"][not_last] &= np.uint8(0xFF ^ FIN)
    handshakes = table.btl_handshakes.copy()
    handshakes[:, 0] = firsts[handshakes[:, 0]] if len(handshakes) else handshakes[:, 0]
    return dataclasses.replace(table, **columns, btl_handshakes=handshakes), marks[source]
