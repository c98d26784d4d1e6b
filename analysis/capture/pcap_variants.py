"""What the first bytes of a pcap file say about all its records: byte order, unit of time, and which of its kinds it is.

The classic savefile has relatives that tell themselves apart by their magic number, by their version and link type (AIX), or by nothing
but where the second record begins (Red Hat 6.1, Nokia). Sources: draft-ietf-opsawg-pcap; what capinfos makes of files of every kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from analysis.errors import UnreadableCapture
from analysis.kernels.frames import framing

HEADER_BYTES: Final = 24
USUAL_LONGEST_RECORD: Final = 262_144
"""libpcap's own limit for files that do not announce a larger snap length."""
LONGEST_ON_WIRE: Final = 1 << 27
MOST_TRIED: Final = 3
"""Records that are looked at to tell one kind from another."""

_MAGICS: Final[dict[int, tuple[int, str, int, tuple[int, ...]]]] = {
    0xA1B2C3D4: (1000, "us", 24, (16, 24, 20)),
    0xA1B23C4D: (1, "ns", 24, (16,)),
    0xA1B2CD34: (1000, "us", 24, (24, 28)),
    0x1C0001AB: (1000, "us", 28, (16,)),
    0x1C0001AC: (1, "ns", 28, (16,)),
}
"""Nanoseconds of a fraction and their name; bytes of the file's header and of a record's, the usual first.

Records of 24 bytes hold an interface, protocol and kind of packet besides (patches of libpcap of 1999, also in Red Hat 6.1 under the usual
number); 28 in SuSE 6.3; 20 in Nokia's firewalls. IXIA puts the bytes of all records behind the file's header, and its hardware counts ns.
"""
_AIX_LINKS: Final = {6: 1, 9: 6, 15: 10, 24: 0}
"""AIX writes version 2.2, nanoseconds, and types of interfaces in place of link types: Ethernet, token ring, FDDI, loopback."""
_AIX_FDDI: Final = 15


@dataclass(frozen=True, slots=True)
class Variant:
    """How records are to be read: ``header_bytes`` begin the file, ``record_bytes`` a record, of which ``padding`` count as captured."""

    big_endian: bool
    ns_per_fraction: int
    time_unit: str
    header_bytes: int
    record_bytes: int
    padding: int
    lengths: int
    snap_length: int
    link: int


def is_pcap(head: bytes) -> bool:
    """Whether a file with these first bytes (at least 4) is a savefile of any kind."""
    return any(int.from_bytes(head[:4], order) in _MAGICS for order in ("little", "big"))


def variant_of(data: memoryview) -> Variant:
    """What kind of savefile begins so; ``data`` is as much of it as is there, and where that does not tell it is the usual kind.

    Raises UnreadableCapture.
    """
    header = bytes(data[:HEADER_BYTES])
    if len(header) < HEADER_BYTES:
        raise UnreadableCapture("the file ends inside its pcap header")
    order: Any = "big" if int.from_bytes(header[:4], "big") in _MAGICS else "little"
    per_fraction, unit, header_bytes, record_bytes = _MAGICS[int.from_bytes(header[:4], order)]
    version = int.from_bytes(header[4:6], order), int.from_bytes(header[6:8], order)
    link = int.from_bytes(header[20:24], order)
    first = Variant(
        order == "big", per_fraction, unit, header_bytes, record_bytes[0], 0, _order_of_lengths(*version),
        int.from_bytes(header[16:20], order), link & 0xFFFF,  # flags lie above bit 16
    )  # fmt: skip
    if version == (2, 2) and link in _AIX_LINKS and header_bytes == HEADER_BYTES:
        padding = 3 if link == _AIX_FDDI else 0
        return replace(
            first, ns_per_fraction=1, time_unit="ns", record_bytes=16 + padding, padding=padding, link=_AIX_LINKS[link]
        )
    if len(record_bytes) == 1 or _is_flawless(first, data, to_the_end=False):
        return first
    others = [replace(first, record_bytes=size) for size in record_bytes[1:]]
    return next((other for other in others if _is_flawless(other, data, to_the_end=True)), first)


def _is_flawless(variant: Variant, data: memoryview, *, to_the_end: bool) -> bool:
    """Whether the first records make sense, read so; ``to_the_end``: and none of them is cut where ``data`` ends."""
    order: Any = "big" if variant.big_endian else "little"
    longest = min(USUAL_LONGEST_RECORD, variant.snap_length or USUAL_LONGEST_RECORD)
    at = variant.header_bytes
    for _ in range(MOST_TRIED):
        head = bytes(data[at : at + variant.record_bytes])
        if len(head) < variant.record_bytes:
            return not (to_the_end and head)
        fraction, captured, original = (int.from_bytes(head[place : place + 4], order) for place in (4, 8, 12))
        if variant.lengths != framing.LENGTHS_IN_ORDER and captured > original:
            captured, original = original, captured
        if (
            fraction >= 10**9 // variant.ns_per_fraction
            or captured > min(longest, original)
            or original > LONGEST_ON_WIRE
        ):
            return False
        at += variant.record_bytes + captured
        if at > len(data):
            return not to_the_end
    return True


def _order_of_lengths(major: int, minor: int) -> int:
    """Which of the lengths of a pcap record comes first, as libpcap has it. Raises UnreadableCapture for unknown versions."""
    if (major, minor) == (543, 0) or (major == 2 and minor < 3):
        return framing.LENGTHS_SWAPPED
    if major != 2 or minor > 4:
        raise UnreadableCapture(f"pcap files of version {major}.{minor} are not known")
    return framing.LENGTHS_PERHAPS_SWAPPED if minor == 3 else framing.LENGTHS_IN_ORDER
