"""Headers of captured frames to columns: link layer, IPv4 and IPv6, TCP, UDP, ICMP.

Sources: RFC 791, 8200, 9293, 768; IEEE 802.1Q; the link types of tcpdump.org. ``captured`` bounds every read.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import Buffer, signed, u8, u16, u32, u32_little, u64
from analysis.packets import CUT, FRAGMENT, ICMP, IPV4, IPV6, NO_FLOW, NO_HOST, NO_SCALE, REVERSE, SYN, TCP, UDP

# Slots of the state vector
HOSTS, FLOWS, HANDSHAKES, UNPARSED, HOSTS_LOST, FLOWS_LOST, NOT_IP = 0, 1, 2, 3, 4, 5, 6
STATE_SIZE = 8

# Link types (LINKTYPE_ and the raw DLT_ values that savefiles are found to hold)
ETHERNET, NULL, LOOP, LINUX_SLL, LINUX_SLL2 = 1, 0, 108, 113, 276
RAW_IP, RAW_IP_101, IPV4_ONLY, IPV6_ONLY = 12, 101, 228, 229

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
UNKNOWN = -1

_OPAL, _TCP_, _BTL_ = 0x4F50414C, 0x2D544350, 0x2D42544C
"""'OPAL', '-TCP', '-BTL' in network byte order."""

_HASH = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: Knuth's multiplicative hashing
_32 = np.uint64(32)
_29 = np.uint64(29)

UInt64 = npt.NDArray[np.uint64]
UInt32 = npt.NDArray[np.uint32]
UInt16 = npt.NDArray[np.uint16]
UInt8 = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]


@jit
def mix(value: np.uint64, word: np.uint64) -> np.uint64:
    mixed = (value ^ word) * _HASH
    return mixed ^ (mixed >> _29)


@jit
def find_host(high: np.uint64, low: np.uint64, slots: Int32, hosts: UInt64, state: Int64) -> int:
    """Index of the address, entered when new. ``hosts`` has shape (H, 2); IPv4 is held as ::ffff:a.b.c.d."""
    mask = np.uint64(len(slots) - 1)
    slot = mix(high, low * _HASH) & mask
    while slots[slot] != 0:
        index = signed(slots[slot]) - 1
        if hosts[index, 1] == low and hosts[index, 0] == high:
            return index
        slot = (slot + np.uint64(1)) & mask
    if state[HOSTS] == len(hosts):
        state[HOSTS_LOST] += 1
        return signed(NO_HOST)
    index = signed(state[HOSTS])
    hosts[index, 0] = high
    hosts[index, 1] = low
    slots[slot] = index + 1
    state[HOSTS] = index + 1
    return index


@jit
def find_flow(
    source: int, destination: int, sport: int, dport: int, protocol: int,
    slots: Int32, keys: UInt64, endpoints: UInt16, protocols: UInt8, state: Int64,
) -> int:
    """Index of the unordered 5-tuple, entered when new; -1 when the table is full."""
    this = np.uint64((source << 16) | sport)
    that = np.uint64((destination << 16) | dport)
    key = (this << _32) | that if this <= that else (that << _32) | this
    mask = np.uint64(len(slots) - 1)
    slot = mix(key, np.uint64(protocol)) & mask
    while slots[slot] != 0:
        index = signed(slots[slot]) - 1
        if keys[index] == key and protocols[index] == protocol:
            return index
        slot = (slot + np.uint64(1)) & mask
    if state[FLOWS] == len(keys):
        state[FLOWS_LOST] += 1
        return -1
    index = signed(state[FLOWS])
    keys[index] = key
    protocols[index] = protocol
    endpoints[index, 0] = source
    endpoints[index, 1] = sport
    endpoints[index, 2] = destination
    endpoints[index, 3] = dport
    slots[slot] = index + 1
    state[FLOWS] = index + 1
    return index


@jit
def link_layer(data: Buffer, at: int, captured: int, link: int) -> tuple[int, int]:
    """(bytes of link layer, EtherType); the EtherType is UNKNOWN when it could not be read or is not one."""
    if link == ETHERNET:
        length, kind = 14, UNKNOWN
        if captured >= 14:
            kind = u16(data, at + 12)
    elif link == LINUX_SLL:
        length, kind = 16, UNKNOWN
        if captured >= 16:
            kind = u16(data, at + 14)
    elif link == LINUX_SLL2:
        length, kind = 20, UNKNOWN
        if captured >= 20:
            kind = u16(data, at)
    elif link in (RAW_IP, RAW_IP_101, IPV4_ONLY, IPV6_ONLY):
        if captured < 1:
            return 0, UNKNOWN
        version = u8(data, at) >> 4
        return 0, ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6 if version == 6 else UNKNOWN
    elif link in (NULL, LOOP):
        if captured < 4:
            return 4, UNKNOWN
        # BSD writes the address family in the byte order of the machine, and IPv6 has a number per system
        family = min(u32(data, at), u32_little(data, at))
        return 4, ETHERTYPE_IPV4 if family == 2 else ETHERTYPE_IPV6 if family in (10, 24, 28, 30) else UNKNOWN
    else:
        return 0, UNKNOWN
    while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100 or kind == 0x9200:
        if captured < length + 4:
            return length, UNKNOWN
        kind = u16(data, at + length + 2)
        length += 4
    return length, kind


@jit
def ipv6_transport(data: Buffer, at: int, captured: int, header: int) -> tuple[int, int, bool, bool]:
    """Walk the extension headers: (offset of the transport header, its protocol, later fragment, cut short)."""
    protocol = u8(data, at + header + 6)
    transport = header + 40
    while protocol in (0, 43, 60, 135, 51, 44):  # hop-by-hop, routing, destination, mobility, AH, fragment
        if captured < transport + 8:
            return transport, protocol, False, True
        following = u8(data, at + transport)
        if protocol == 44:
            if u16(data, at + transport + 2) & 0xFFF8:
                return transport + 8, following, True, False
            transport += 8
        elif protocol == 51:
            transport += (u8(data, at + transport + 1) + 2) * 4
        else:
            transport += (u8(data, at + transport + 1) + 1) * 8
        protocol = following
    return transport, protocol, False, False


@jit
def syn_options(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """(window scale or NO_SCALE, MSS or 0) from the TCP options in ``data[at:end]``."""
    scale, mss = signed(NO_SCALE), 0
    while at < end:
        kind = u8(data, at)
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 2 > end:
            break
        length = u8(data, at + 1)
        if length < 2 or at + length > end:
            break
        if kind == 2 and length == 4:
            mss = u16(data, at + 2)
        elif kind == 3 and length == 3:
            scale = min(u8(data, at + 2), 254)
        at += length
    return scale, mss


@jit
def opens_btl(data: Buffer, at: int) -> bool:
    """Open MPI's TCP BTL: uint32 jobid, uint32 vpid, "OPAL-TCP-BTL" (METRICS.md section 6)."""
    return u32(data, at + 8) == _OPAL and u32(data, at + 12) == _TCP_ and u32(data, at + 16) == _BTL_


@jit
def decode(
    data: Buffer, offsets: Int64, links: Int64, first: int,
    cap_len: UInt32, orig_len: UInt32, kind: UInt8, src: UInt16, dst: UInt16, sport: UInt16, dport: UInt16,
    flow: UInt32, payload: UInt32, seq: UInt32, ack: UInt32, window: UInt16, tcp_flags: UInt8, wscale: UInt8,
    mss: UInt16, fingerprint: UInt32,
    host_slots: Int32, hosts: UInt64, flow_slots: Int32, flow_keys: UInt64, flow_endpoints: UInt16,
    flow_protocol: UInt8, handshakes: Int64, state: Int64, room_for_flows: int,
) -> int:
    """Fill the columns from row ``first`` on; returns the row it stopped before because a table needs to grow."""
    for i in range(first, len(offsets)):
        if state[FLOWS] >= room_for_flows or state[HANDSHAKES] >= len(handshakes):
            return i
        at = signed(offsets[i])
        captured = signed(cap_len[i])
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

        l2, ethertype = link_layer(data, at, captured, signed(links[i]))
        wire_ip = max(signed(orig_len[i]) - l2, 0)
        later_fragment = False
        cut = False
        if ethertype == ETHERTYPE_IPV4:
            if captured < l2 + 20:
                kind[i] = IPV4 | CUT
                state[UNPARSED] += 1
                continue
            header = (u8(data, at + l2) & 15) * 4
            if header < 20 or u8(data, at + l2) >> 4 != 4:
                kind[i] = CUT
                state[UNPARSED] += 1
                continue
            found = IPV4
            ip_len = u16(data, at + l2 + 2)
            if ip_len == 0:  # a super-segment: the field could not hold its length
                ip_len = wire_ip
            later_fragment = (u16(data, at + l2 + 6) & 0x1FFF) != 0
            protocol = u8(data, at + l2 + 9)
            transport = l2 + header
            mapped = np.uint64(0xFFFF00000000)
            source = find_host(
                np.uint64(0), mapped | np.uint64(u32(data, at + l2 + 12)), host_slots, hosts, state)
            destination = find_host(
                np.uint64(0), mapped | np.uint64(u32(data, at + l2 + 16)), host_slots, hosts, state)
            print_ = (np.uint64(u16(data, at + l2 + 4)) << _32) | np.uint64(ip_len)
        elif ethertype == ETHERTYPE_IPV6:
            if captured < l2 + 40:
                kind[i] = IPV6 | CUT
                state[UNPARSED] += 1
                continue
            if u8(data, at + l2) >> 4 != 6:
                kind[i] = CUT
                state[UNPARSED] += 1
                continue
            found = IPV6
            declared = u16(data, at + l2 + 4)
            ip_len = declared + 40 if declared > 0 else wire_ip  # 0: jumbogram or BIG TCP
            source = find_host(u64(data, at + l2 + 8), u64(data, at + l2 + 16), host_slots, hosts, state)
            destination = find_host(u64(data, at + l2 + 24), u64(data, at + l2 + 32), host_slots, hosts, state)
            transport, protocol, later_fragment, cut = ipv6_transport(data, at, captured, l2)
            print_ = (np.uint64(u32(data, at + l2)) << _32) | np.uint64(ip_len)
        else:
            state[NOT_IP] += 1
            continue

        src[i] = source
        dst[i] = destination
        print_ = mix(print_, (np.uint64(source) << _32) | np.uint64((destination << 8) | protocol))
        if later_fragment:
            kind[i] = found | FRAGMENT
            print_ = mix(print_, np.uint64(u16(data, at + l2 + 6)))
            fingerprint[i] = print_ >> _32
            continue
        if cut:
            kind[i] = found | CUT
            continue
        l4 = at + transport
        have = captured - transport
        content = max(ip_len - (transport - l2), 0)
        if protocol == 6:
            found |= TCP
        elif protocol == 17:
            found |= UDP
        else:
            if protocol == 1 or protocol == 58:
                found |= ICMP
            if have >= 8:
                print_ = mix(print_, u64(data, l4))
            kind[i] = found
            fingerprint[i] = print_ >> _32
            continue
        if have < 4:
            kind[i] = found | CUT
            continue

        a = u16(data, l4)
        b = u16(data, l4 + 2)
        sport[i] = a
        dport[i] = b
        if source != NO_HOST and destination != NO_HOST:
            index = find_flow(
                source, destination, a, b, protocol, flow_slots, flow_keys, flow_endpoints, flow_protocol, state)
            if index >= 0:
                flow[i] = index
                if flow_endpoints[index, 0] != source or flow_endpoints[index, 1] != a:
                    found |= REVERSE
        if protocol == 17:
            if have < 8:
                kind[i] = found | CUT
                continue
            payload[i] = max(content - 8, 0)
            kind[i] = found
            fingerprint[i] = mix(print_, u64(data, l4)) >> _32
            continue

        if have >= 8:
            seq[i] = u32(data, l4 + 4)
        if have >= 12:
            ack[i] = u32(data, l4 + 8)
        flags = 0
        header = 20
        if have >= 14:
            header = (u8(data, l4 + 12) >> 4) * 4
            flags = u8(data, l4 + 13)
            tcp_flags[i] = flags
            payload[i] = max(content - header, 0) if header >= 20 else 0
        if have >= 16:
            window[i] = u16(data, l4 + 14)
        if have < 20 or header < 20:  # not a TCP packet that anybody could follow
            kind[i] = (found & ~TCP) | CUT
            continue
        options_end = min(header, have)
        if have < header:
            found |= CUT
        kind[i] = found
        if flags & SYN and header > 20:
            scale, segment = syn_options(data, l4 + 20, l4 + options_end)
            wscale[i] = scale
            mss[i] = segment
        print_ = mix(print_, (np.uint64(seq[i]) << _32) | np.uint64(ack[i]))
        print_ = mix(print_, (np.uint64(a << 16 | b) << _32) | np.uint64((header << 24) | (flags << 16) | window[i]))
        option = 20
        while option + 4 <= options_end:  # time stamps tell a true retransmission from a frame seen twice
            print_ = mix(print_, np.uint64(u32(data, l4 + option)))
            option += 4
        fingerprint[i] = print_ >> _32
        if payload[i] >= 24 and have >= header + 24 and opens_btl(data, l4 + header):
            entry = state[HANDSHAKES]
            handshakes[entry, 0] = i
            handshakes[entry, 1] = u32_little(data, l4 + header)
            handshakes[entry, 2] = u32_little(data, l4 + header + 4)
            state[HANDSHAKES] = entry + 1
    return len(offsets)


@jit
def reenter_flows(slots: Int32, keys: UInt64, protocols: UInt8, count: int) -> None:
    """Enter the first ``count`` flows into an empty, larger slot table."""
    mask = np.uint64(len(slots) - 1)
    for index in range(count):
        slot = mix(keys[index], np.uint64(protocols[index])) & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = index + 1
