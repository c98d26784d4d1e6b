"""From the outermost header to the innermost IP packet: tags, labels, tunnels and virtual networks.

Sources: IEEE 802.1Q, 802.1ah, 802.1BR, 802.2; RFC 2003, 2473 (IP in IP), 2516 (PPPoE), 2784 and 2890 (GRE), 3032, 4023, 7510 (MPLS),
3378 (EtherIP), 4302 (AH), 7348 (VXLAN), 8926 (GENEVE). What carries no IP packet stays what it was.
"""

from __future__ import annotations

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import u8, u16, u32
from analysis.packets import GENEVE, GRE, PBB, PPPOE, VXLAN

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
UNKNOWN = -1
HIDDEN = -2
"""In place of an EtherType: something is inside that only another decoder, or nobody, can look into."""

DEPTH = 8
"""Headers that may be wrapped around each other; deeper is an attack, not a network."""
_MOST_LABELS = 16

_KIND_SHIFT = np.uint64(32)
_NETWORK_MASK = np.uint64((1 << 56) - 1)
_NEST = np.uint64(1_000_003)

_TCP, _UDP = 6, 17
_VXLAN_PORT, _LINUX_VXLAN_PORT, _GENEVE_PORT, _MPLS_PORT = 4789, 8472, 6081, 6635


@jit
def nested(network: np.uint64, kind: int, number: int) -> np.uint64:
    """The word for virtual network ``number`` of ``kind`` inside of ``network`` (0: none): kind << 32 | number where not nested."""
    return (network * _NEST ^ (np.uint64(kind) << _KIND_SHIFT | np.uint64(number))) & _NETWORK_MASK


@jit
def behind_labels(at: int, end: int) -> tuple[int, int]:
    """(address, EtherType) of what an MPLS label stack carries: IP by its version, anything else is hidden."""
    for _ in range(_MOST_LABELS):
        if at + 5 > end:
            return at, UNKNOWN
        bottom = u32(at, end) & 0x100
        at += 4
        if bottom:
            version = u8(at, end) >> 4
            return at, ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6 if version == 6 else HIDDEN
    return at, HIDDEN


@jit
def behind_llc(at: int, end: int) -> tuple[int, int]:
    """(address, EtherType) behind an 802.2 header: SNAP of Ethernet types, or IP by its own service access point."""
    if at + 3 <= end and u16(at, end) == 0x0606 and u8(at + 2, end) == 3:
        return at + 3, ETHERTYPE_IPV4
    if (
        at + 8 <= end
        and u16(at, end) == 0xAAAA
        and u8(at + 2, end) == 3
        and u16(at + 3, end) == 0
        and u8(at + 5, end) in (0, 0xF8)
    ):
        return at + 8, u16(at + 6, end)
    return at, UNKNOWN


@jit
def behind_tags(at: int, end: int, ethertype: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """(address, EtherType, network) of the IP packet behind link-layer tags; ``at`` is the byte behind ``ethertype``.

    The EtherType is HIDDEN or UNKNOWN where there is no IP packet, or where it was not captured.
    """
    for _ in range(DEPTH):
        if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6) or ethertype < 0:
            return at, ethertype, network
        if ethertype == 0x8847 or ethertype == 0x8848:
            at, ethertype = behind_labels(at, end)
            return at, ethertype, network
        if ethertype <= 1500:
            at, ethertype = behind_llc(at, end)
            if ethertype <= 1500:
                return at, UNKNOWN, network
        elif ethertype in (0x8100, 0x88A8, 0x9100, 0x9200) and at + 4 <= end:
            ethertype = u16(at + 2, end)
            at += 4
        elif ethertype == 0x893F and at + 8 <= end:  # E-Tag: differs by direction, names no network
            ethertype = u16(at + 6, end)
            at += 8
        elif ethertype == 0x8926 and at + 6 <= end:  # VN-Tag, likewise
            ethertype = u16(at + 4, end)
            at += 6
        elif ethertype == 0x6558 and at + 14 <= end:
            ethertype = u16(at + 12, end)
            at += 14
        elif ethertype == 0x88E7 and at + 18 <= end:
            network = nested(network, PBB, u32(at, end) & 0xFFFFFF)
            ethertype = u16(at + 16, end)
            at += 18
        elif ethertype == 0x8864 and at + 8 <= end:
            network = nested(network, PPPOE, u16(at + 2, end))
            protocol = u16(at + 6, end)
            ethertype = 0x8847 if protocol == 0x0281 else ETHERTYPE_IPV4 if protocol == 0x0021 else UNKNOWN
            ethertype = ETHERTYPE_IPV6 if protocol == 0x0057 else ethertype
            at += 8
        elif ethertype in (0x88E5, 0x894F, 0x22F3, 0x8915):  # MACsec, NSH, TRILL, RoCE of the first version
            return at, HIDDEN, network
        else:
            return at, UNKNOWN, network
    return at, HIDDEN, network


@jit
def behind_authentication(at: int, end: int, protocol: int) -> tuple[int, int]:
    """(address, protocol) behind IPv4 authentication headers."""
    for _ in range(DEPTH):
        if protocol != 51 or at + 8 > end:
            break
        protocol = u8(at, end)
        at += (u8(at + 1, end) + 2) * 4
    return at, protocol


@jit
def begins_fragments(ip: int, end: int, ethertype: int) -> bool:
    """Whether later fragments go on with what the packet carries, whose transport header tells the length of all of them."""
    return bool(u16(ip + 6, end) & 0x2000 if ethertype == ETHERTYPE_IPV4 else u8(ip + 6, end) == 44)


@jit
def behind_udp(at: int, end: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """(address, EtherType, network) of what a UDP datagram to the port of a tunnel carries; ``at`` is its header."""
    if at + 16 > end:
        return at, UNKNOWN, network
    port = u16(at + 2, end)
    if port in (_VXLAN_PORT, _LINUX_VXLAN_PORT) and u8(at + 8, end) == 0x08:
        return behind_tags(at + 16, end, 0x6558, nested(network, VXLAN, u32(at + 12, end) >> 8))
    if port == _GENEVE_PORT and u8(at + 8, end) >> 6 == 0:
        inside = at + 16 + (u8(at + 8, end) & 63) * 4
        return behind_tags(inside, end, u16(at + 10, end), nested(network, GENEVE, u32(at + 12, end) >> 8))
    if port == _MPLS_PORT:
        inside, ethertype = behind_labels(at + 8, end)
        return inside, ethertype, network
    if port in (4790, 2152, 1701, 4500, 51820):  # VXLAN-GPE, GTP-U, L2TP, IPsec, WireGuard
        return at, HIDDEN, network
    if port in (3544, 5247) or u16(at, end) in (
        3544,
        5247,
    ):  # Teredo, data of CAPWAP: answers go to ports of the asker's own
        return at, HIDDEN, network
    return at, UNKNOWN, network


@jit
def behind_gre(at: int, end: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """(address, EtherType, network) of what GRE carries."""
    if at + 4 > end:
        return at, UNKNOWN, network
    flags, ethertype = u16(at, end), u16(at + 2, end)
    if flags & 0x4007:  # routing, or another version
        return at, HIDDEN, network
    inside = at + 4 + (4 if flags & 0x8000 else 0)
    if flags & 0x2000:
        if inside + 4 > end:
            return at, UNKNOWN, network
        network = nested(network, GRE, u32(inside, end))
        inside += 4
    inside += 4 if flags & 0x1000 else 0
    if ethertype == 0x88BE or ethertype == 0x22EB:  # ERSPAN
        return at, HIDDEN, network
    return behind_tags(inside, end, ethertype, network)


@jit
def behind_protocol(at: int, end: int, protocol: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """(address, EtherType, network) of the packet that IP ``protocol`` carries at ``at``."""
    if protocol == _UDP:
        return behind_udp(at, end, network)
    if protocol == 4:
        return at, ETHERTYPE_IPV4, network
    if protocol == 41:
        return at, ETHERTYPE_IPV6, network
    if protocol == 47:
        return behind_gre(at, end, network)
    if protocol == 137:
        inside, ethertype = behind_labels(at, end)
        return inside, ethertype, network
    if protocol == 97:
        return behind_tags(at + 2, end, 0x6558, network)
    if protocol == 103 and at + 1 <= end and u8(at, end) & 15 == 1:  # a PIM register carries a packet
        return at, HIDDEN, network
    return at, HIDDEN if protocol in (50, 115) else UNKNOWN, network
