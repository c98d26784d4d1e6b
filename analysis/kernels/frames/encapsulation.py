"""From the link layer to the innermost IP packet: tags, labels, tunnels.

The link layers are in kernels.frames.link_layers. Sources: IEEE 802.1Q; RFC 2003, 2473 (IP in IP), 2784, 2890 (GRE),
3032 (MPLS), 7348 (VXLAN), 8926 (GENEVE). Encapsulations of other kinds are counted as hidden, not analysed.
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
"""The captured bytes end inside a header that determines what follows."""

DEPTH = 8
"""Nested headers; deeper nesting is an attack."""
_MOST_LABELS = 16

_KIND_SHIFT = np.uint64(32)
_NETWORK_MASK = np.uint64((1 << 56) - 1)
_NEST = np.uint64(1_000_003)

NO_NETWORK = np.uint64(0)
_UDP = 17
_UNSUPPORTED_TYPES = (
    0x0641, 0x0643, 0x0644, 0x0645, 0x22E5, 0x22EB, 0x22F3, 0x2452, 0x6400, 0x6559, 0x880B, 0x883E, 0x8864, 0x88BE, 0x88DE, 0x88E5, 0x88E7,
    0x8903, 0x8909, 0x8915, 0x8926, 0x892F, 0x893F, 0x894F, 0x8988, 0xD28B, 0xF1C1,
)  # fmt: skip
"""EtherTypes that may carry IP packets, by the tables of Wireshark: PPPoE, backbone and switch tags, HSR, MACsec, ERSPAN, TRILL, NSH ..."""
_UNSUPPORTED_PORTS = (
    1194, 1701, 2152, 2268, 3343, 3544, 4305, 4341, 4500, 4754, 4789, 4790, 5072, 5247, 6080, 6635, 12220, 12222, 30030, 37008, 51820,
)  # fmt: skip
"""UDP: OpenVPN, L2TP, GTP-U, LISP, IPsec, GRE, VXLAN without a network, VXLAN-GPE, Teredo, CAPWAP, GUE, MPLS, WireGuard and others."""
_UNSUPPORTED_SOURCE_PORTS = (3544, 5247)
"""Teredo and CAPWAP data: their answers go to the ports that the clients chose."""
_UNSUPPORTED_PROTOCOLS = (50, 51, 97, 115, 137, 143)
"""IP: ESP, AH, EtherIP, L2TP, MPLS, Ethernet."""
_VXLAN_PORT, _LINUX_VXLAN_PORT, _GENEVE_PORT = 4789, 8472, 6081


@jit
def nested(network: np.uint64, kind: int, number: int) -> np.uint64:
    """Return the word of a virtual network inside of ``network`` (0: none)."""
    return (network * _NEST ^ (np.uint64(kind) << _KIND_SHIFT | np.uint64(number))) & _NETWORK_MASK


@jit
def behind_labels(at: int, end: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """Return address, EtherType and network behind an MPLS label stack."""
    for _ in range(_MOST_LABELS):
        if at + 5 > end:
            return at, CUT_OFF, network
        bottom = u32(at, end) & 0x100
        at += 4
        if bottom:
            version = u8(at, end) >> 4
            return at, ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6 if version == 6 else HIDDEN, network
    return at, HIDDEN, network


@jit
def behind_tags(at: int, end: int, ethertype: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """Return address, EtherType and network of the IP packet behind link-layer tags.

    ``at`` is the byte after ``ethertype``. The EtherType is HIDDEN or UNKNOWN if there is no IP packet, CUT_OFF if that part was not
    captured.
    """
    for _ in range(DEPTH):
        if ethertype in (ETHERTYPE_IPV4, ETHERTYPE_IPV6) or ethertype < 0:
            return at, ethertype, network
        if ethertype == 0x8847 or ethertype == 0x8848:
            return behind_labels(at, end, network)
        if ethertype <= 1500:
            if at + 6 > end:
                return at, CUT_OFF, network
            is_snap = u16(at, end) == 0xAAAA and u32(at + 2, end) == 0x03000000  # it may carry IP
            return at, HIDDEN if is_snap else UNKNOWN, network
        is_vlan = ethertype in (0x8100, 0x88A8, 0x9100, 0x9200)
        if not is_vlan and ethertype != 0x6558:
            return at, HIDDEN if ethertype in _UNSUPPORTED_TYPES else UNKNOWN, network
        at += 4 if is_vlan else 14
        if at > end:
            return at, CUT_OFF, network
        ethertype = u16(at - 2, end)
    return at, HIDDEN, network


@jit
def begins_fragments(ip: int, end: int, ethertype: int) -> bool:
    """Return True for a first fragment."""
    return bool(u16(ip + 6, end) & 0x2000 if ethertype == ETHERTYPE_IPV4 else u8(ip + 6, end) == 44)


@jit
def behind_gre(at: int, end: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """Return address, EtherType and network of the content of GRE."""
    if at + 4 > end:
        return at, CUT_OFF, network
    flags, ethertype = u16(at, end), u16(at + 2, end)
    if flags & 0x4007:  # routing, or another version
        return at, HIDDEN, network
    inside = at + 4 + (4 if flags & 0x8000 else 0)
    if flags & 0x2000:
        if inside + 4 > end:
            return at, CUT_OFF, network
        network = nested(network, GRE, u32(inside, end))
        inside += 4
    inside += 4 if flags & 0x1000 else 0
    if 0x8200 <= ethertype <= 0x83FF:  # frames of wireless networks
        return at, HIDDEN, network
    return behind_tags(inside, end, ethertype, network)


@jit
def behind_udp(at: int, end: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """Return address, EtherType and network of the content of a UDP tunnel."""
    if at + 4 > end:
        return at, UNKNOWN, network
    port = u16(at + 2, end)
    if port in (_VXLAN_PORT, _LINUX_VXLAN_PORT, _GENEVE_PORT) and at + 16 > end:
        return at, CUT_OFF, network
    if (
        port in (_VXLAN_PORT, _LINUX_VXLAN_PORT) and u8(at + 8, end) & 0x08
    ):  # other flags are group policies and similar
        return behind_tags(at + 16, end, 0x6558, nested(network, VXLAN, u32(at + 12, end) >> 8))
    if port == _GENEVE_PORT and u8(at + 8, end) >> 6 == 0:
        inside = at + 16 + (u8(at + 8, end) & 63) * 4
        return behind_tags(inside, end, u16(at + 10, end), nested(network, GENEVE, u32(at + 12, end) >> 8))
    if port in _UNSUPPORTED_PORTS or u16(at, end) in _UNSUPPORTED_SOURCE_PORTS:
        return at, HIDDEN, network
    return at, UNKNOWN, network


@jit
def behind_protocol(at: int, end: int, protocol: int, network: np.uint64) -> tuple[int, int, np.uint64]:
    """Return address, EtherType and network of the content of IP ``protocol``."""
    if protocol == _UDP:
        return behind_udp(at, end, network)
    if protocol == 4:
        return at, ETHERTYPE_IPV4, network
    if protocol == 41:
        return at, ETHERTYPE_IPV6, network
    if protocol == 47:
        return behind_gre(at, end, network)
    if protocol == 103 and at + 1 <= end and u8(at, end) & 15 == 1:  # a PIM register carries a packet
        return at, HIDDEN, network
    return at, HIDDEN if protocol in _UNSUPPORTED_PROTOCOLS else UNKNOWN, network
