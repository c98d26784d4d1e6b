"""Slots of the kernel's ring as packet blocks."""

from __future__ import annotations

import numpy as np

from workers.capture.packet_slots import packet_blocks
from workers.testbed.recorder import DATA_OFFSET, slot_bytes

SNAP_LENGTH = 96


def test_a_frame_that_claims_more_than_its_slot_is_cut():
    size = slot_bytes(SNAP_LENGTH)
    slots = np.zeros((3, size // 4), np.uint32)
    slots[:, 2] = 4, (1 << 32) - 1, 4  # captured
    slots[:, DATA_OFFSET // 4] = 0x01020304
    blocks = packet_blocks(slots.tobytes(), size).view(np.uint32)
    assert len(blocks) == 2 * (8 + 1) + 8 + (size - DATA_OFFSET) // 4
    assert blocks[-2] == 0x01020304
