"""Headers of captured frames to columns: link layer, innermost IP, TCP, UDP, ICMP.

Sources: RFC 791, 8200, 9293, 768. ``end``, the address behind the captured bytes, bounds every read. Only ``decode``
accesses arrays: see kernels.raw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels.endpoints import find_flow, find_host, flow_at, mix, recent_of, tables_at
from analysis.kernels.frames.encapsulation import (
    CUT_OFF,
    DEPTH,
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    HIDDEN,
    NO_NETWORK,
    begins_fragments,
    behind_protocol,
    behind_tags,
)
from analysis.kernels.frames.link_layers import ETHERNET, link_layer
from analysis.kernels.handshake_signatures import handshake_signature
from analysis.kernels.raw import signed, u8, u16, u32, u64
from analysis.packets import (
    CUT,
    FRAGMENT,
    ICMP,
    IPV4,
    IPV6,
    NO_FLOW,
    NO_HOST,
    NO_SCALE,
    NO_SIGNATURE,
    REVERSE,
    SYN,
    TCP,
    UDP,
)

ROCE_PORT = 4791
"""InfiniBand over UDP (RoCEv2)."""

_MAPPED = np.uint64(0xFFFF00000000)
_32 = np.uint64(32)
_8 = np.uint64(8)


@jit
def ipv6_transport(at: int, end: int) -> tuple[int, int, bool, bool]:
    """Walk the extension headers: (offset, protocol, later fragment, truncated)."""
    protocol = u8(at + 6, end)
    transport = 40
    while protocol in (0, 43, 60, 135, 44):  # hop-by-hop, routing, destination, mobility, fragment
        here = at + transport
        if here + 8 > end:
            return transport, protocol, False, True
        following = u8(here, end)
        if protocol == 44:
            if u16(here + 2, end) & 0xFFF8:
                return transport + 8, following, True, False
            transport += 8
        else:
            transport += (u8(here + 1, end) + 1) * 8
        protocol = following
    return transport, protocol, False, False


@jit
def ipv4_header(ip: int, end: int, tables: int) -> tuple[int, int, int, int, int, int, np.uint64]:
    """Return kind, header size, length, protocol, source, destination, fingerprint.

    The kind has FRAGMENT for a later fragment, and is CUT for a contradictory header.
    """
    transport = (u8(ip, end) & 15) * 4
    if transport < 20 or u8(ip, end) >> 4 != 4:
        return CUT, 0, 0, 0, 0, 0, np.uint64(0)
    kind = IPV4 | FRAGMENT if u16(ip + 6, end) & 0x1FFF else IPV4
    protocol = u8(ip + 9, end)
    source = find_host(np.uint64(0), _MAPPED | np.uint64(u32(ip + 12, end)), tables)
    destination = find_host(np.uint64(0), _MAPPED | np.uint64(u32(ip + 16, end)), tables)
    mark = np.uint64(u32(ip + 4, end)) << _32
    return kind, transport, u16(ip + 2, end), protocol, source, destination, mark


@jit
def ipv6_header(ip: int, end: int, tables: int) -> tuple[int, int, int, int, int, int, np.uint64]:
    """Return the same for IPv6; IPV6 | CUT if extension headers are truncated."""
    if u8(ip, end) >> 4 != 6:
        return CUT, 0, 0, 0, 0, 0, np.uint64(0)
    length = u16(ip + 4, end)
    if length > 0:
        length += 40
    source = find_host(u64(ip + 8, end), u64(ip + 16, end), tables)
    destination = find_host(u64(ip + 24, end), u64(ip + 32, end), tables)
    transport, protocol, later_fragment, cut = ipv6_transport(ip, end)
    kind = IPV6 | FRAGMENT if later_fragment else IPV6 | CUT if cut else IPV6
    return kind, transport, length, protocol, source, destination, np.uint64(u32(ip, end)) << _32


@jit
def innermost(
    ip: int, end: int, ethertype: int, room: int, network: np.uint64, tables: int
) -> tuple[int, int, int, np.uint64]:
    """Return address, EtherType, room and network of the innermost IP packet."""
    for _ in range(DEPTH):
        if ethertype == ETHERTYPE_IPV4:
            if ip + 20 > end or u8(ip, end) < 0x45 or u8(ip, end) > 0x4F or u16(ip + 6, end) & 0x1FFF:
                return ip, ethertype, room, network
            length = u16(ip + 2, end)
            at, protocol = ip + (u8(ip, end) & 15) * 4, u8(ip + 9, end)
        else:
            if ip + 40 > end or u8(ip, end) >> 4 != 6:
                return ip, ethertype, room, network
            length = u16(ip + 4, end)
            length += 40 if length > 0 else 0
            transport, protocol, later_fragment, cut = ipv6_transport(ip, end)
            if later_fragment or cut:
                return ip, ethertype, room, network
            at = ip + transport
        if protocol == 6:
            return ip, ethertype, room, network
        inside, following, network_inside = behind_protocol(at, end, protocol, network)
        if following < 0:
            state = tables_at(tables, 1, 0)
            state.hidden += following == HIDDEN
            state.cut_off += following == CUT_OFF
            return ip, ethertype, room, network
        room = (min(room, length) if length > 0 else room) - (inside - ip)
        ip, ethertype, network = inside, following, network_inside
    tables_at(tables, 1, 0).hidden += 1
    return ip, ethertype, room, network


@jit
def syn_options(at: int, end: int) -> tuple[int, int]:
    """Return window scale (or NO_SCALE) and MSS (or 0) of TCP options."""
    scale, mss = signed(NO_SCALE), 0
    while at < end:
        kind = u8(at, end)
        if kind == 1:
            at += 1
            continue
        if kind == 0 or at + 2 > end:
            break
        length = u8(at + 1, end)
        if length < 2 or at + length > end:
            break
        if kind == 2 and length == 4:
            mss = u16(at + 2, end)
        elif kind == 3 and length == 3:
            scale = min(u8(at + 2, end), 254)
        at += length
    return scale, mss


@inlined
def tcp_fingerprint(value: np.uint64, l4: int, options_end: int, end: int) -> np.uint64:
    """Hash the TCP header and options without the checksum."""
    value = mix(value, u64(l4, end))
    value = mix(value, u64(l4 + 8, end))
    option = l4 + 20
    while option + 4 <= options_end:
        value = mix(value, np.uint64(u32(option, end)))
        option += 4
    return value


@inlined
def usual_content(frame: int, end: int, link: int, wire: int) -> int:
    """Return the IP payload of plain TCP over IPv4 over Ethernet; 0 for others."""
    ip = frame + 14
    if link != ETHERNET or ip + 40 > end or u16(frame + 12, end) != ETHERTYPE_IPV4 or u8(ip, end) != 0x45:
        return 0
    length, header = u16(ip + 2, end), (u8(ip + 32, end) >> 4) * 4
    if u8(ip + 9, end) != 6 or u16(ip + 6, end) & 0x1FFF or header < 20 or length < 20 + header or length > wire - 14:
        return 0
    return int(length - 20)


class Columns(NamedTuple):
    """Arrays (N,): offset and link type of frames, columns of a PacketTable."""

    offset: Any
    link: Any
    time_ns: Any
    orig_len: Any
    cap_len: Any
    kind: Any
    src: Any
    dst: Any
    sport: Any
    dport: Any
    flow: Any
    payload: Any
    seq: Any
    ack: Any
    window: Any
    tcp_flags: Any
    wscale: Any
    mss: Any
    fingerprint: Any


@jit
def decode(data: int, first_row: int, columns: Columns, handshakes: Any, tables: int) -> None:
    """Fill the columns after ``cap_len``, and ``handshakes``.

    Offsets count from the address ``data``, handshakes from ``first_row``. The function is long because passing columns to others
    would cost more than the decoding.
    """
    offsets, links, orig_len, cap_len, kind = (
        columns.offset,
        columns.link,
        columns.orig_len,
        columns.cap_len,
        columns.kind,
    )
    src, dst, sport, dport, flow = columns.src, columns.dst, columns.sport, columns.dport, columns.flow
    payload, seq, ack, window, tcp_flags = columns.payload, columns.seq, columns.ack, columns.window, columns.tcp_flags
    wscale, mss, fingerprint = columns.wscale, columns.mss, columns.fingerprint
    state = tables_at(tables, 1, 0)
    for i in range(len(offsets)):
        frame = data + offsets[i]
        end = frame + signed(cap_len[i])
        ip = frame + 14
        l4 = ip + 20
        usual = usual_content(frame, end, links[i], signed(orig_len[i]))
        addresses, ports = np.uint64(0), 0
        if usual > 0:
            addresses, ports = u64(ip + 12, end), u32(l4, end)
        recent = recent_of(addresses, ports, tables)
        if usual > 0 and recent.kind != 0 and recent.addresses == addresses and recent.ports == ports:
            frame_kind = signed(recent.kind)
            source, destination, index = signed(recent.source), signed(recent.destination), signed(recent.flow)
            content, ip_len, mark = usual, usual + 20, np.uint64(u32(ip + 4, end)) << _32
            src[i] = source
            dst[i] = destination
            sport[i] = ports >> 16
            dport[i] = ports
            flow[i] = index
            wscale[i] = NO_SCALE
            mss[i] = 0
        else:
            kind[i] = 0
            src[i] = NO_HOST
            dst[i] = NO_HOST
            sport[i] = 0
            dport[i] = 0
            flow[i] = NO_FLOW
            payload[i] = 0
            seq[i] = 0
            ack[i] = 0
            window[i] = 0
            tcp_flags[i] = 0
            wscale[i] = NO_SCALE
            mss[i] = 0
            fingerprint[i] = 0
            l2, ethertype = link_layer(frame, end, links[i])
            ip = frame + l2
            network = NO_NETWORK
            if ethertype != ETHERTYPE_IPV4 and ethertype != ETHERTYPE_IPV6:
                ip, ethertype, network = behind_tags(ip, end, ethertype, network)
                if ethertype < 0:
                    state.hidden += ethertype == HIDDEN
                    if ethertype == CUT_OFF and cap_len[i] < orig_len[i]:
                        kind[i] = CUT
                        state.unparsed += 1
                    else:
                        state.not_ip += 1
                    continue
            room = max(signed(orig_len[i]) - (ip - frame), 0)
            cut_off = 0
            if ip + 20 <= end and u8(ip + (9 if ethertype == ETHERTYPE_IPV4 else 6), end) != 6:
                before = state.cut_off
                ip, ethertype, room, network = innermost(ip, end, ethertype, room, network, tables)
                if state.cut_off > before and cap_len[i] < orig_len[i]:
                    cut_off = CUT
            if ip + (20 if ethertype == ETHERTYPE_IPV4 else 40) > end:
                kind[i] = CUT | (IPV4 if ethertype == ETHERTYPE_IPV4 else IPV6)
                state.unparsed += 1
                continue
            if ethertype == ETHERTYPE_IPV4:
                frame_kind, transport, ip_len, protocol, source, destination, mark = ipv4_header(ip, end, tables)
            else:
                frame_kind, transport, ip_len, protocol, source, destination, mark = ipv6_header(ip, end, tables)
            kind[i] = frame_kind | cut_off
            if frame_kind == CUT:
                state.unparsed += 1
                continue
            src[i] = source
            dst[i] = destination
            if frame_kind & (FRAGMENT | CUT):
                continue
            beyond = ip_len > room
            if (
                ip_len == 0 or beyond
            ):  # 0: a coalesced segment, BIG TCP or a jumbogram: the field could not hold its length
                ip_len = room
            state.beyond_frame += beyond
            l4 = ip + transport
            content = max(ip_len - transport, 0)
            if protocol != 6 and protocol != 17:
                if protocol == 1 or protocol == 58:
                    kind[i] = frame_kind | ICMP
                continue
            if l4 + 4 > end or content < 4:
                kind[i] = frame_kind | CUT
                continue
            a = u16(l4, end)
            b = u16(l4 + 2, end)
            sport[i] = a
            dport[i] = b
            index = -1
            if source != NO_HOST and destination != NO_HOST:
                index = find_flow(source, a, destination, b, np.uint64(protocol) | network << _8, tables)
                if index >= 0:
                    flow[i] = index
                    ends = flow_at(state.flow_list, state.flow_room, index)
                    if ends.a != source or ends.a_port != a:
                        frame_kind |= REVERSE
            if protocol == 17:
                datagram = u16(l4 + 4, end)
                # 0 is the length of an IPv6 jumbogram; IPv4 has none, and hosts drop such a packet
                short = datagram < 8 and (datagram > 0 or ethertype == ETHERTYPE_IPV4)
                if l4 + 6 > end or content < 8 or short:
                    kind[i] = frame_kind | CUT
                    continue
                begins = begins_fragments(ip, end, ethertype)
                state.beyond_frame += datagram > content and not begins and not beyond
                payload[i] = (min(datagram, content) if datagram > 0 else content) - 8
                kind[i] = frame_kind | UDP | cut_off
                if b == ROCE_PORT and content >= 20 and l4 + 20 > end:
                    kind[i] = frame_kind | UDP | CUT
                elif b == ROCE_PORT and content >= 20:  # the base transport header of InfiniBand
                    window[i] = u8(l4 + 8, end)
                    ack[i] = u32(l4 + 12, end) & 0xFFFFFF
                    seq[i] = u32(l4 + 16, end) & 0xFFFFFF
                    tcp_flags[i] = u8(ip + 1, end) & 3 if ethertype == ETHERTYPE_IPV4 else u16(ip, end) >> 4 & 3
                continue
            if usual > 0 and index >= 0:
                recent.addresses, recent.ports, recent.flow = addresses, ports, index
                recent.source, recent.destination, recent.kind = source, destination, frame_kind
        header = 0
        if l4 + 16 <= end:  # fields after the window are not needed
            header = (u8(l4 + 12, end) >> 4) * 4
        if header < 20 or header > content:  # truncated or malformed: not usable as a TCP packet
            kind[i] = frame_kind | CUT
            continue
        flags = u8(l4 + 13, end)
        seq[i] = u32(l4 + 4, end)
        ack[i] = u32(l4 + 8, end)
        tcp_flags[i] = flags
        window[i] = u16(l4 + 14, end)
        length = content - header
        payload[i] = length
        options_end = min(l4 + header, end)
        kind[i] = frame_kind | TCP if l4 + header <= end else frame_kind | TCP | CUT
        if flags & SYN and header > 20:
            scale, segment = syn_options(l4 + 20, options_end)
            wscale[i] = scale
            mss[i] = segment
        mark = mix(mark | np.uint64(ip_len), np.uint64((source << 32) ^ (destination << 8) ^ 6))
        fingerprint[i] = tcp_fingerprint(mark, l4, options_end, end) >> _32
        jobid, rank = handshake_signature(l4 + header, end, length)
        if jobid != NO_SIGNATURE:
            entry = state.handshakes
            handshakes[entry, 0] = first_row + i
            handshakes[entry, 1] = jobid
            handshakes[entry, 2] = rank
            state.handshakes = entry + 1
