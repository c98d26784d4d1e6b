"""Lengths of frames' headers, addresses in them, and records of a new file.

Bytes that are not a recognised header count as content, so that no unchecked byte is written. Sources: those of
``kernels.decode`` and ``kernels.frames.encapsulation``; draft-ietf-opsawg-pcap and -pcapng.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.decode import ROCE_PORT
from analysis.kernels.frames.encapsulation import (
    DEPTH,
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    NO_NETWORK,
    behind_protocol,
    behind_tags,
)
from analysis.kernels.frames.link_layers import ETHERNET, LINUX_SLL, LINUX_SLL2, link_layer
from analysis.kernels.handshake_signatures import signature_bytes
from analysis.kernels.raw import signed, u8, u16

IPV4, IPV6, MAC = 0, 1, 2
"""Rows of the positions of addresses."""
MOST_ADDRESSES = 4 * (DEPTH + 1)
"""Most addresses of one kind in one frame."""
_ROCE_HEADER = 12
_BRIDGED = 0x6558
_TCP, _UDP, _GRE, _ICMP, _ICMP6 = 6, 17, 47, 1, 58
_HOP, _ROUTING, _FRAGMENT, _DESTINATION, _MOBILITY = 0, 43, 44, 60, 135
_MPTCP = 30

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt8 = npt.NDArray[np.uint8]


@jit
def note(places: Int64, counts: Int64, kind: int, at: int) -> None:
    """Record an address of this kind, ``at`` bytes into the buffer."""
    places[kind, counts[kind]] = at
    counts[kind] += 1


@jit
def clear(buffer: UInt8, first: int, last: int) -> None:
    """Overwrite the bytes between two positions of the buffer."""
    for at in range(first, last):
        buffer[at] = 0


@jit
def note_frames(data: int, at: int, end: int, ethertype: int, places: Int64, counts: Int64) -> None:
    """Record the MAC addresses of bridged frames behind tags and tunnels."""
    for _ in range(DEPTH):
        if ethertype == _BRIDGED and at + 14 <= end:
            note(places, counts, MAC, at - data)
            note(places, counts, MAC, at + 6 - data)
            ethertype = u16(at + 12, end)
            at += 14
        elif ethertype in (0x8100, 0x88A8, 0x9100, 0x9200) and at + 4 <= end:
            ethertype = u16(at + 2, end)
            at += 4
        else:
            return


@jit
def note_tunnelled(data: int, at: int, end: int, protocol: int, places: Int64, counts: Int64) -> None:
    """Record the MAC addresses of a frame inside of IP ``protocol`` at ``at``."""
    if protocol == _UDP and at + 16 <= end:
        port = u16(at + 2, end)
        if port in (4789, 8472):  # VXLAN
            note_frames(data, at + 16, end, _BRIDGED, places, counts)
        elif port == 6081:  # GENEVE
            note_frames(data, at + 16 + (u8(at + 8, end) & 63) * 4, end, u16(at + 10, end), places, counts)
    elif protocol == _GRE and at + 4 <= end:
        flags = u16(at, end)
        inside = at + 4 + (4 if flags & 0x8000 else 0) + (4 if flags & 0x2000 else 0) + (4 if flags & 0x1000 else 0)
        note_frames(data, inside, end, u16(at + 2, end), places, counts)


@jit
def hide_tcp_options(buffer: UInt8, data: int, at: int, end: int) -> None:
    """Overwrite options of Multipath TCP, which may contain addresses."""
    while at < end:
        kind = u8(at, end)
        if kind == 1:
            at += 1
            continue
        if kind == 0 or at + 2 > end:
            return
        length = u8(at + 1, end)
        if length < 2 or at + length > end:
            clear(buffer, at - data, end - data)
            return
        if kind == _MPTCP:
            clear(buffer, at + 2 - data, at + length - data)
        at += length


@jit
def transport_bytes(buffer: UInt8, data: int, at: int, end: int, protocol: int, hide: bool) -> int:
    """Return the bytes to keep of a transport header and an MPI signature."""
    if protocol == _TCP:
        if at + 16 > end:
            return end - at
        header = max((u8(at + 12, end) >> 4) * 4, 20)
        if hide:
            clear(buffer, at + 16 - data, min(at + 18, end) - data)
            hide_tcp_options(buffer, data, at + 20, min(at + header, end))
        return int(header + signature_bytes(at + header, end))
    if protocol == _UDP:
        if hide:
            clear(buffer, min(at + 6, end) - data, min(at + 8, end) - data)
        roce = at + 4 <= end and u16(at + 2, end) == ROCE_PORT
        return 8 + (_ROCE_HEADER if roce else 0)
    if protocol in (_ICMP, _ICMP6):
        if hide:
            clear(buffer, min(at + 2, end) - data, min(at + 4, end) - data)
        return 4  # addresses and quoted packets follow
    return 0


@jit
def behind_ipv4(
    buffer: UInt8, data: int, ip: int, end: int, places: Int64, counts: Int64, hide: bool
) -> tuple[int, int]:
    """Return the address behind an IPv4 header, and the protocol or -1."""
    note(places, counts, IPV4, ip + 12 - data)
    note(places, counts, IPV4, ip + 16 - data)
    at = ip + (u8(ip, end) & 15) * 4
    if hide:  # the checksum depends on the addresses, options such as a recorded route contain some
        clear(buffer, ip + 10 - data, ip + 12 - data)
        clear(buffer, ip + 20 - data, min(at, end) - data)
    if u16(ip + 6, end) & 0x1FFF:
        return at, -1
    return at, u8(ip + 9, end)


@jit
def behind_ipv6(
    buffer: UInt8, data: int, ip: int, end: int, places: Int64, counts: Int64, hide: bool
) -> tuple[int, int]:
    """Return the same for an IPv6 header with its extensions."""
    note(places, counts, IPV6, ip + 8 - data)
    note(places, counts, IPV6, ip + 24 - data)
    protocol, at = u8(ip + 6, end), ip + 40
    while protocol in (_HOP, _ROUTING, _FRAGMENT, _DESTINATION, _MOBILITY):
        if at + 8 > end:
            return min(at, end), -1
        following = u8(at, end)
        if protocol == _FRAGMENT:
            if u16(at + 2, end) & 0xFFF8:
                return at + 8, -1
            length = 8
        else:
            length = (u8(at + 1, end) + 1) * 8
            if hide:  # a route, or a home address
                clear(buffer, at + 2 - data, min(at + length, end) - data)
        at += length
        protocol = following
    return at, protocol


@jit
def note_link(data: int, frame: int, end: int, link: int, places: Int64, counts: Int64) -> None:
    """Record the MAC addresses of the outermost frame."""
    if link == ETHERNET and frame + 12 <= end:
        note(places, counts, MAC, frame - data)
        note(places, counts, MAC, frame + 6 - data)
        if frame + 14 <= end:
            note_frames(data, frame + 14, end, u16(frame + 12, end), places, counts)
    elif link == LINUX_SLL and frame + 12 <= end:
        note(places, counts, MAC, frame + 6 - data)
    elif link == LINUX_SLL2 and frame + 18 <= end:
        note(places, counts, MAC, frame + 12 - data)


@jit
def kept_bytes(
    buffer: UInt8, data: int, frame: int, end: int, link: int, places: Int64, counts: Int64, hide: bool
) -> int:
    """Return the bytes of a frame up to the end of its innermost readable header."""
    note_link(data, frame, end, link, places, counts)
    length, ethertype = link_layer(frame, end, link)
    at = min(frame + length, end)
    if ethertype not in (ETHERTYPE_IPV4, ETHERTYPE_IPV6):
        if link != ETHERNET:
            note_frames(data, at, end, ethertype, places, counts)
        at, ethertype, _ = behind_tags(at, end, ethertype, NO_NETWORK)
        at = min(at, end)
    for _ in range(DEPTH):
        if ethertype == ETHERTYPE_IPV4:
            if at + 20 > end or u8(at, end) < 0x45 or u8(at, end) > 0x4F:
                break
            at, protocol = behind_ipv4(buffer, data, at, end, places, counts, hide)
        elif ethertype == ETHERTYPE_IPV6:
            if at + 40 > end or u8(at, end) >> 4 != 6:
                break
            at, protocol = behind_ipv6(buffer, data, at, end, places, counts, hide)
        else:
            break
        if at > end or protocol < 0:
            break
        inside, following = at, -1
        if protocol != _TCP:
            inside, following, _ = behind_protocol(at, end, protocol, NO_NETWORK)
        if following < 0:
            at += transport_bytes(buffer, data, at, end, protocol, hide)
            break
        note_tunnelled(data, at, end, protocol, places, counts)
        if protocol == _UDP and hide:
            clear(buffer, at + 6 - data, at + 8 - data)
        at, ethertype = min(inside, end), following
    return int(min(at, end) - frame)


@jit
def find_headers(
    buffer: UInt8,
    data: int,
    offsets: Int64,
    links: Int64,
    cap_len: UInt32,
    header_bytes: UInt32,
    places: Int64,
    counts: Int64,
    hide: bool,
) -> int:
    """Fill ``header_bytes`` (N,); return the row where ``places`` became full.

    ``places`` has shape (3, P): positions of IPv4, IPv6 and MAC addresses in ``buffer``; ``counts`` the number of each. ``data`` is
    the address of ``buffer``. With ``hide`` checksums and options that depend on addresses are overwritten in ``buffer``.
    """
    most = places.shape[1] - MOST_ADDRESSES
    for i in range(len(offsets)):
        if counts[IPV4] > most or counts[IPV6] > most or counts[MAC] > most:
            return i
        frame = data + offsets[i]
        header_bytes[i] = kept_bytes(buffer, data, frame, frame + signed(cap_len[i]), links[i], places, counts, hide)
    return len(offsets)


@jit
def put(out: UInt8, at: int, value: int) -> int:
    """Write 32 bits, little-endian; return the next position."""
    for shift in range(4):
        out[at + shift] = (value >> (8 * shift)) & 0xFF
    return at + 4


@jit
def write_records(
    buffer: UInt8,
    offsets: Int64,
    header_bytes: UInt32,
    orig_len: UInt32,
    time_ns: Int64,
    interfaces: Int64,
    blocks: bool,
    out: UInt8,
) -> int:
    """Write frames as packet blocks or pcap records, in ns; return the size."""
    at = 0
    for i in range(len(offsets)):
        count, stamp = signed(header_bytes[i]), signed(time_ns[i])
        padding = -count & 3 if blocks else 0
        if blocks:
            at = put(out, at, 6)
            at = put(out, at, 32 + count + padding)
            at = put(out, at, signed(interfaces[i]))
            at = put(out, at, stamp >> 32)
            at = put(out, at, stamp & 0xFFFFFFFF)
        else:
            at = put(out, at, stamp // 1_000_000_000)
            at = put(out, at, stamp % 1_000_000_000)
        at = put(out, at, count)
        at = put(out, at, signed(orig_len[i]))
        for k in range(count):
            out[at + k] = buffer[offsets[i] + k]
        at += count
        if blocks:
            for k in range(padding):
                out[at + k] = 0
            at = put(out, at + padding, 32 + count + padding)
    return at
