"""From behind the link layer (kernels.frames.link_layers) to the innermost IP packet: tags, labels, tunnels and virtual networks.

Sources: IEEE 802.1Q, 802.2; RFC 2003, 2473 (IP in IP), 2784, 2890 (GRE), 3032, 4023, 7510 (MPLS), 4302 (AH), 7348 (VXLAN), 8086
(GRE in UDP), 8926 (GENEVE). Encapsulations of other kinds are counted as hidden, not analysed.
"""

from __future__ import annotations

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import u8, u16, u32
from analysis.packets import GENEVE, GRE, VXLAN

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
UNKNOWN = -1
HIDDEN = -2
"""In place of an EtherType: an unsupported encapsulation, or encrypted data."""
CUT_OFF = -3
"""The captured bytes end inside of a header that would tell what follows."""

DEPTH = 8
"""Headers that may be wrapped around each other; deeper is an attack, not a network."""
_MOST_LABELS = 16

_KIND_SHIFT = np.uint64(32)
_NETWORK_MASK = np.uint64((1 << 56) - 1)
_NEST = np.uint64(1_000_003)

_TAGS_MASK = np.uint64((1 << 31) - 1)
_FIRST_LABEL = 4096
"""Behind the numbers of VLANs."""

Around = tuple[np.uint64, np.uint64]
NOWHERE = (np.uint64(0), np.uint64(0))
"""What lies around a packet: the word of its virtual networks, which belong to a flow, and that of its VLANs and labels, which only
tell whether packets of one direction took the same way: labels differ by direction, and a router sees both sides of a VLAN."""

_TCP, _UDP = 6, 17
_UNSUPPORTED_TYPES = (
    0x0641, 0x0643, 0x0644, 0x0645, 0x22E5, 0x22EB, 0x22F3, 0x2452, 0x6400, 0x6559, 0x880B, 0x883E, 0x8864, 0x88BE, 0x88DE, 0x88E5, 0x88E7,
    0x8903, 0x8909, 0x8915, 0x8926, 0x892F, 0x893F, 0x894F, 0x8988, 0xD28B, 0xF1C1,
)  # fmt: skip
"""EtherTypes that may carry IP packets, by the tables of Wireshark: PPPoE, backbone and switch tags, HSR, MACsec, ERSPAN, TRILL, NSH ..."""
_UNSUPPORTED_PORTS = (
    1194, 1701, 2152, 2268, 3343, 3544, 4305, 4341, 4500, 4789, 4790, 5072, 5247, 6080, 12220, 12222, 30030, 37008, 51820,
)  # fmt: skip
"""UDP: OpenVPN, L2TP, GTP-U, LISP, IPsec, VXLAN without a network, VXLAN-GPE, Teredo, CAPWAP, GUE, WireGuard and others."""
_UNSUPPORTED_SOURCE_PORTS = (3544, 5247)
"""Teredo and CAPWAP data: their answers go to the ports that the clients chose."""
_UNSUPPORTED_PROTOCOLS = (50, 51, 97, 115, 143)
"""IP: ESP, encrypted AH, EtherIP, L2TP, Ethernet."""
_GRE_PORT = 4754
_VXLAN_PORT, _LINUX_VXLAN_PORT, _GENEVE_PORT, _MPLS_PORT = 4789, 8472, 6081, 6635


@jit
def nested(network: np.uint64, kind: int, number: int) -> np.uint64:
    """The word for virtual network ``number`` of ``kind`` inside of ``network`` (0: none): kind << 32 | number where not nested."""
    return (network * _NEST ^ (np.uint64(kind) << _KIND_SHIFT | np.uint64(number))) & _NETWORK_MASK


@jit
def within(around: Around, kind: int, number: int) -> Around:
    """``around`` with one more virtual network."""
    return nested(around[0], kind, number), around[1]


@jit
def under_vlan(around: Around, tag: int) -> Around:
    """``around`` with one more VLAN; priorities are none, and tags of VLAN 0 have nothing else."""
    number = np.uint64(tag & 0xFFF)
    return around[0], (around[1] * _NEST + number) & _TAGS_MASK if number > 0 else around[1]


@jit
def under_label(around: Around, label: int) -> Around:
    """``around`` with one more MPLS label; the explicit nulls, 0 and 2, name nothing."""
    number = np.uint64(label + _FIRST_LABEL)
    return around[0], around[1] if label == 0 or label == 2 else (around[1] * _NEST + number) & _TAGS_MASK


@jit
def under_outer_vlans(first: int, behind: int, end: int) -> Around:
    """What the tags between two addresses put around a packet."""
    around = NOWHERE
    for at in range(first, behind, 4):
        around = under_vlan(around, u16(at, end))
    return around


@jit
def behind_labels(at: int, end: int, around: Around) -> tuple[int, int, Around]:
    """(address, EtherType, around) of what an MPLS label stack carries: IP by its version, anything else is hidden."""
    for _ in range(_MOST_LABELS):
        if at + 5 > end:
            return at, CUT_OFF, around
        bottom = u32(at, end) & 0x100
        around = under_label(around, u32(at, end) >> 12)
        at += 4
        if bottom:
            version = u8(at, end) >> 4
            return at, ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6 if version == 6 else HIDDEN, around
    return at, HIDDEN, around


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
    return at, CUT_OFF if at + 3 > end or (u16(at, end) == 0xAAAA and at + 8 > end) else UNKNOWN


@jit
def tag_bytes(ethertype: int) -> int:
    """Bytes of a header of the link layer up to the end of the EtherType in it; 0 where that header is none of these."""
    if ethertype in (0x8100, 0x88A8, 0x9100, 0x9200):
        return 4
    return 14 if ethertype == 0x6558 else 0


@jit
def behind_tags(at: int, end: int, ethertype: int, around: Around) -> tuple[int, int, Around]:
    """(address, EtherType, around) of the IP packet behind link-layer tags; ``at`` is the byte behind ``ethertype``.

    The EtherType is HIDDEN or UNKNOWN where there is no IP packet, CUT_OFF where it was not captured whether there is one.
    """
    for _ in range(DEPTH):
        if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6) or ethertype < 0:
            return at, ethertype, around
        if ethertype == 0x8847 or ethertype == 0x8848:
            return behind_labels(at, end, around)
        if at + tag_bytes(ethertype) > end:
            return at, CUT_OFF, around
        if ethertype <= 1500:
            at, ethertype = behind_llc(at, end)
            if ethertype <= 1500:
                return at, min(ethertype, UNKNOWN), around
        elif ethertype in (0x8100, 0x88A8, 0x9100, 0x9200):
            around = under_vlan(around, u16(at, end))
            ethertype = u16(at + 2, end)
            at += 4
        elif ethertype == 0x6558:
            ethertype = u16(at + 12, end)
            at += 14
        elif ethertype in _UNSUPPORTED_TYPES:
            return at, HIDDEN, around
        else:
            return at, UNKNOWN, around
    return at, HIDDEN, around


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
def behind_gre(at: int, end: int, around: Around) -> tuple[int, int, Around]:
    """(address, EtherType, around) of what GRE carries."""
    if at + 4 > end:
        return at, CUT_OFF, around
    flags, ethertype = u16(at, end), u16(at + 2, end)
    if flags & 0x4007:  # routing, or another version
        return at, HIDDEN, around
    inside = at + 4 + (4 if flags & 0x8000 else 0)
    if flags & 0x2000:
        if inside + 4 > end:
            return at, CUT_OFF, around
        around = within(around, GRE, u32(inside, end))
        inside += 4
    inside += 4 if flags & 0x1000 else 0
    if 0x8200 <= ethertype <= 0x83FF:  # frames of wireless networks
        return at, HIDDEN, around
    return behind_tags(inside, end, ethertype, around)


@jit
def behind_udp(at: int, end: int, around: Around) -> tuple[int, int, Around]:
    """(address, EtherType, around) of what a UDP datagram to the port of a tunnel carries; ``at`` is its header."""
    if at + 4 > end:
        return at, UNKNOWN, around
    port = u16(at + 2, end)
    if port in (_VXLAN_PORT, _LINUX_VXLAN_PORT, _GENEVE_PORT, _MPLS_PORT) and at + 16 > end:
        return at, CUT_OFF, around
    if (
        port in (_VXLAN_PORT, _LINUX_VXLAN_PORT) and u8(at + 8, end) & 0x08
    ):  # other flags tell of group policies and the like
        return behind_tags(at + 16, end, 0x6558, within(around, VXLAN, u32(at + 12, end) >> 8))
    if port == _GENEVE_PORT and u8(at + 8, end) >> 6 == 0:
        inside = at + 16 + (u8(at + 8, end) & 63) * 4
        return behind_tags(inside, end, u16(at + 10, end), within(around, GENEVE, u32(at + 12, end) >> 8))
    if port == _MPLS_PORT:
        return behind_labels(at + 8, end, around)
    if port == _GRE_PORT:
        return behind_gre(at + 8, end, around)
    if port in _UNSUPPORTED_PORTS or u16(at, end) in _UNSUPPORTED_SOURCE_PORTS:
        return at, HIDDEN, around
    return at, UNKNOWN, around


@jit
def behind_protocol(at: int, end: int, protocol: int, around: Around) -> tuple[int, int, Around]:
    """(address, EtherType, around) of the packet that IP ``protocol`` carries at ``at``."""
    if protocol == _UDP:
        return behind_udp(at, end, around)
    if protocol == 4:
        return at, ETHERTYPE_IPV4, around
    if protocol == 41:
        return at, ETHERTYPE_IPV6, around
    if protocol == 47:
        return behind_gre(at, end, around)
    if protocol == 137:
        return behind_labels(at, end, around)
    if protocol == 103 and at + 1 <= end and u8(at, end) & 15 == 1:  # a PIM register carries a packet
        return at, HIDDEN, around
    if protocol == 51 and at + 8 > end:
        return at, CUT_OFF, around
    return at, HIDDEN if protocol in _UNSUPPORTED_PROTOCOLS else UNKNOWN, around
