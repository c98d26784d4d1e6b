"""What a capture card or a driver writes before a frame and was never on the wire: taken off, with the link type of what is behind.

Sources: the link types of tcpdump.org; Endace's extensible record format (ERF).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.frames.link_layers import CISCO_HDLC, ETHERNET, FRAME_RELAY, IPV4_ONLY, IPV6_ONLY, PPP_SERIAL
from analysis.kernels.raw import signed, u8, u16, u32_little

ERF, PPP_DIRECTED, HDLC_DIRECTED, FRAME_RELAY_DIRECTED = 197, 204, 205, 206
OTHER = -2
"""Link type of what nobody looks into."""

_ETHERNET_RECORDS = (2, 11, 16, 20)
_HDLC_RECORDS, _CHANNEL_RECORDS = (1, 10, 15, 19), (5, 17)

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


@jit
def behind_record(frame: int, end: int) -> tuple[int, int, int]:
    """(bytes of the header of an ERF record, link type behind it, length on the wire); OTHER where it is cut or of another kind."""
    if frame + 16 > end:
        return 0, OTHER, 0
    kind, length = u8(frame + 8, end), 16
    more = kind & 0x80
    kind &= 0x7F
    while more:
        if frame + length + 8 > end:
            return 0, OTHER, 0
        more = u8(frame + length, end) & 0x80
        length += 8
    wire = u16(frame + 14, end)
    if kind in _ETHERNET_RECORDS:
        return length + 2, ETHERNET, wire
    if kind in _HDLC_RECORDS:
        return length, PPP_SERIAL, wire
    if kind in _CHANNEL_RECORDS:
        return length + 4, PPP_SERIAL, wire
    return length, IPV4_ONLY if kind == 22 else IPV6_ONLY if kind == 23 else OTHER, wire


@jit
def take_off(
    data: int, before: Int64, offsets: Int64, links: Int64, time_ns: Int64, cap_len: UInt32, orig_len: UInt32
) -> None:
    """Move the rows whose link type has a header before each frame behind it; ``before``: its bytes by link type.

    A card's own time is finer than that of the record around it.
    """
    for i in range(len(offsets)):
        link = links[i]
        if link < 0 or link >= len(before) or before[link] == 0:
            continue
        captured, original, wire = signed(cap_len[i]), signed(orig_len[i]), -1
        length = before[link]
        if link == ERF:
            frame = data + offsets[i]
            length, links[i], wire = behind_record(frame, frame + captured)
            if length > 0:
                fraction = u32_little(frame, frame + captured) * 1_000_000_000 + (1 << 31) >> 32
                time_ns[i] = u32_little(frame + 4, frame + captured) * 1_000_000_000 + fraction
        elif link == PPP_DIRECTED:
            links[i] = PPP_SERIAL
        elif link == HDLC_DIRECTED:
            links[i] = CISCO_HDLC
        elif link == FRAME_RELAY_DIRECTED:
            links[i] = FRAME_RELAY
        length = min(length, captured)
        captured -= length
        original = max(original - length, 0)
        if wire >= 0 and length > 0:  # records are padded, and tell how long the frame was
            original = wire
            captured = min(captured, wire)
        offsets[i] += length
        cap_len[i] = captured
        orig_len[i] = original
