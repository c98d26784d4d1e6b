"""Frames of wireless networks, and what their receivers write before them, up to the LLC header of what they carry.

Sources: IEEE 802.11, radiotap.org, the AVS wireless LAN monitoring header, the headers of Prism drivers. Frames that are encrypted,
in fragments, or several in one, are looked into by nobody, which is told.
"""

from __future__ import annotations

from analysis.kernels import jit
from analysis.kernels.frames.encapsulation import CUT_OFF, HIDDEN, UNKNOWN
from analysis.kernels.raw import u8, u16, u16_little, u32, u32_little

WIRELESS, PRISM, RADIOTAP, AVS = 105, 119, 127, 163

_LLC = 0
"""In place of an EtherType: a header of IEEE 802.2 follows."""
_TO_NETWORK, _FROM_NETWORK, _MORE_FRAGMENTS, _PROTECTED, _ORDER = 0x01, 0x02, 0x04, 0x40, 0x80
_PRISM_BYTES = 144
_MORE_WORDS, _STAMP, _FLAGS = 0x80000000, 0x1, 0x2
_CHECK_BEHIND, _PADDED = 0x10, 0x20


@jit
def wireless(at: int, end: int, behind: int, link: int) -> tuple[int, int]:
    """(bytes before the LLC header, 0: LLC), or one of the words of ``kernels.frames.encapsulation`` for no EtherType."""
    before, flags = 0, 0
    if link == RADIOTAP:
        if at + 8 > end:
            return 0, CUT_OFF
        before, flags = u16_little(at + 2, end), radiotap_flags(at, end)
    elif link == AVS or (link == PRISM and at + 8 <= end and u32(at, end) >> 8 == 0x802110):
        if at + 8 > end:
            return 0, CUT_OFF
        before = u32(at + 4, end)
    elif link == PRISM:
        if at + _PRISM_BYTES > end and at + _PRISM_BYTES <= behind:
            return 0, CUT_OFF
        before = _PRISM_BYTES if at + _PRISM_BYTES <= end else 0
    length, kind = data_frame(at + before, end, behind - (4 if flags & _CHECK_BEHIND else 0), flags & _PADDED > 0)
    return before + length, kind


@jit
def radiotap_flags(at: int, end: int) -> int:
    """The flags of a frame: behind the words that tell what is there, and a time stamp at a multiple of 8 bytes."""
    present, place = u32_little(at + 4, end), 8
    words = present
    while words & _MORE_WORDS and at + place + 4 <= end:
        words = u32_little(at + place, end)
        place += 4
    if present & _STAMP:
        place = (place + 7) // 8 * 8 + 8
    return u8(at + place, end) if present & _FLAGS and at + place < end else 0


@jit
def data_frame(at: int, end: int, behind: int, padded: bool) -> tuple[int, int]:
    """As ``wireless``, for the frame itself; ``behind`` is where it ended, its check sequence left out."""
    if at + 2 > end:
        return 0, CUT_OFF
    kind, flags = u8(at, end), u8(at + 1, end)
    if kind & 0x0F != 0x08 or kind & 0x40:  # management, control; without data
        return 0, UNKNOWN
    both = flags & 3 == 3
    quality = kind & 0x80 > 0
    length = 24 + 6 * both + 2 * quality
    if at + length > end:
        return length, CUT_OFF
    if flags & (_PROTECTED | _MORE_FRAGMENTS) or u8(at + 22, end) & 15:
        return length, HIDDEN
    control = u16_little(at + length - 2, end) if quality else 0
    if quality and flags & _ORDER:
        length += 4
    if padded:
        length = (length + 3) // 4 * 4
    if at + length + 2 > end:
        return length, CUT_OFF
    if control & 0x80:
        return joined_frame(at, length, end, behind)
    return inside_frame(at, length, end, flags, control & 0x100 > 0)


@jit
def inside_frame(at: int, length: int, end: int, flags: int, mesh: bool) -> tuple[int, int]:
    """LLC; behind what stations of a mesh say to each other, where there is that; or a frame of Ethernet that was put in as it was."""
    if u16(at + length, end) == 0xAAAA:
        return length, _LLC
    if at + length + 4 <= end and u32(at + length, end) == 0xAAAA:  # padding that nobody told of
        return length + 2, _LLC
    if mesh and flags & _FROM_NETWORK and u8(at + length, end) <= 2:
        return length + 6 + 6 * u8(at + length, end), _LLC
    target = at + (16 if flags & _TO_NETWORK else 4)
    source = at + (10 if not flags & _FROM_NETWORK else 24 if flags & _TO_NETWORK else 16)
    if at + length + 14 > end:
        return length, CUT_OFF
    if alike(at + length, target, end) or alike(at + length + 6, source, end):
        return length + 14, u16(at + length + 12, end)
    return length, _LLC


@jit
def alike(one: int, other: int, end: int) -> bool:
    """Whether the same six bytes are there."""
    return bool(u32(one, end) == u32(other, end) and u16(one + 4, end) == u16(other + 4, end))


@jit
def joined_frame(at: int, length: int, end: int, behind: int) -> tuple[int, int]:
    """An aggregate: read where it holds one frame alone."""
    if at + length + 14 > end:
        return length, CUT_OFF
    size = u16(at + length + 12, end)
    alone = at + length + 14 + (size + 3) // 4 * 4 + 14 > behind
    return length + 14, _LLC if alone else HIDDEN
