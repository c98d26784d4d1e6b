"""What lies before the first EtherType of a frame, by link type: how many bytes, and which EtherType.

Sources: the link types of tcpdump.org; IEEE 802.1Q, 802.2, 802.5; ISO 9314 (FDDI); RFC 1661 and 1662 (PPP), 1547 (Cisco HDLC), 2427
(frame relay), 2625 (Fibre Channel), 2684 (ATM), 2734 (IEEE 1394), 4391 (InfiniBand). Wireless ones: kernels.frames.wireless.
"""

from __future__ import annotations

from analysis.kernels import jit
from analysis.kernels.frames.encapsulation import CUT_OFF, ETHERTYPE_IPV4, ETHERTYPE_IPV6, HIDDEN, UNKNOWN, of_ppp
from analysis.kernels.frames.wireless import AVS, PRISM, RADIOTAP, WIRELESS, wireless
from analysis.kernels.raw import u8, u16, u16_little, u32, u32_little

# LINKTYPE_ and the raw DLT_ values that savefiles are found to hold
ETHERNET, NULL, LOOP, LINUX_SLL, LINUX_SLL2 = 1, 0, 108, 113, 276
RAW_IP, RAW_IP_BSD, RAW_IP_101, IPV4_ONLY, IPV6_ONLY, CLASSICAL_IP, CLASSICAL_IP_106 = 12, 14, 101, 228, 229, 19, 106
PPP, PPP_SERIAL, PPP_ETHER, PPP_OF_DAEMON, CISCO_HDLC, FRAME_RELAY = 9, 50, 51, 166, 104, 107
TOKEN_RING, FDDI, ATM_LLC, ATM_LLC_BSD, FIBRE_CHANNEL, FIREWIRE, INFINIBAND_IP = 6, 10, 100, 11, 122, 138, 242
ENC, ENC_BSD, PFLOG, NFLOG, IPNET, PKTAP, PKTAP_USER, PPI = 109, 13, 117, 239, 226, 258, 149, 192
BROADCOM_TAG, BROADCOM_TAG_BEFORE, MARVELL_TAG, MARVELL_TAG_TYPED = 281, 282, 284, 285

_LLC = 0
"""In place of an EtherType: a header of IEEE 802.2 follows (kernels.frames.encapsulation.behind_llc)."""
_MOST_OPTIONS = 64
_PAYLOAD = 9


@jit
def through_vlan_tags(at: int, end: int, length: int, type_offset: int) -> tuple[int, int]:
    """Behind any number of 802.1Q and 802.1ad tags."""
    if at + length > end:
        return length, CUT_OFF
    kind = u16(at + type_offset, end)
    while kind == 0x8100 or kind == 0x88A8 or kind == 0x9100 or kind == 0x9200:
        if at + length + 4 > end:
            return length, CUT_OFF
        kind = u16(at + length + 2, end)
        length += 4
    return length, kind


@jit
def by_version(at: int, end: int, length: int) -> tuple[int, int]:
    """An IP packet without a word of which, ``length`` bytes behind the beginning."""
    if at + length >= end:
        return length, CUT_OFF
    version = u8(at + length, end) >> 4
    return length, ETHERTYPE_IPV4 if version == 4 else ETHERTYPE_IPV6 if version == 6 else UNKNOWN


@jit
def nothing_but_ip(at: int, end: int) -> tuple[int, int]:
    """As ``by_version`` where the link carries nothing else: what is neither version contradicts itself as IPv4."""
    length, ethertype = by_version(at, end, 0)
    return length, ETHERTYPE_IPV4 if ethertype == UNKNOWN else ethertype


@jit
def of_family(family: int) -> int:
    """The EtherType of an address family: IPv6 has a number per system."""
    return ETHERTYPE_IPV4 if family == 2 else ETHERTYPE_IPV6 if family in (10, 24, 26, 28, 30) else UNKNOWN


@jit
def link_layer(at: int, end: int, behind: int, link: int) -> tuple[int, int]:
    """(bytes of link layer, EtherType); the EtherType is CUT_OFF when it was not captured, UNKNOWN when it is not one.

    ``end`` is where the captured bytes end, ``behind`` where the frame did. Of Ethernet and cooked captures the bytes hold all VLAN
    tags (``untagged_bytes``), of others none.
    """
    if link == ETHERNET:
        return through_vlan_tags(at, end, 14, 12)
    if link == LINUX_SLL:
        return through_vlan_tags(at, end, 16, 14)
    if link == LINUX_SLL2:
        return through_vlan_tags(at, end, 20, 0)
    if link in (RAW_IP, RAW_IP_101, IPV4_ONLY, IPV6_ONLY):
        return nothing_but_ip(at, end)
    if link in (NULL, LOOP):
        return behind_family(at, end, 4)
    before = 0
    if link in (PPI, PKTAP, PKTAP_USER):  # what is around a frame of another link type
        if at + 12 > end:
            return 0, CUT_OFF
        if link == PPI:
            before, link = u16_little(at + 2, end), u32_little(at + 4, end)
        else:
            before, link = u32_little(at, end), u32_little(at + 8, end)
    length, ethertype = rarer_link_layer(at + before, end, behind, link)
    if length < 0:
        return before, HIDDEN if before > 0 else UNKNOWN
    return before + length, ethertype


@jit
def untagged_bytes(link: int, length: int) -> int:
    """Bytes of a link layer of ``length`` bytes before its first VLAN tag."""
    return 14 if link == ETHERNET else 16 if link == LINUX_SLL else 20 if link == LINUX_SLL2 else length


@jit
def behind_family(at: int, end: int, length: int) -> tuple[int, int]:
    """Behind a header of ``length`` bytes that begins with an address family."""
    if at + length > end:
        return length, CUT_OFF
    # BSD writes it in the byte order of the machine
    return length, of_family(min(u32(at, end), u32_little(at, end)))


@jit
def behind_type(at: int, end: int, length: int, type_offset: int) -> tuple[int, int]:
    """Behind a header of ``length`` bytes with an EtherType in it."""
    if at + length > end:
        return length, CUT_OFF
    kind = u16(at + type_offset, end)
    return length, kind if kind > 1500 else UNKNOWN


@jit
def rarer_link_layer(at: int, end: int, behind: int, link: int) -> tuple[int, int]:
    """As ``link_layer``, for what lies within other headers, and for rarer link types; -1 bytes for one that is not known."""
    if link in (WIRELESS, RADIOTAP, PRISM, AVS):
        return wireless(at, end, behind, link)
    if link == ETHERNET:
        return (14, u16(at + 12, end)) if at + 14 <= end else (14, CUT_OFF)
    if link in (RAW_IP, RAW_IP_BSD, RAW_IP_101, IPV4_ONLY, IPV6_ONLY, CLASSICAL_IP, CLASSICAL_IP_106):
        return nothing_but_ip(at, end)
    if link in (NULL, LOOP):
        return behind_family(at, end, 4)
    if link in (ENC, ENC_BSD):
        return behind_family(at, end, 12)
    if link in (PPP, PPP_SERIAL, PPP_OF_DAEMON):
        return point_to_point(at, end, link)
    if link == PPP_ETHER:
        return 0, 0x8864
    if link == CISCO_HDLC:
        return behind_type(at, end, 4, 2)
    if link == FRAME_RELAY:
        return frame_relay(at, end)
    if link in (TOKEN_RING, FDDI):
        return ring(at, end, link)
    if link in (ATM_LLC, ATM_LLC_BSD):
        return bridged(at, end, 0, 2)
    if link == FIBRE_CHANNEL:
        return 16, _LLC
    if link == FIREWIRE:
        return behind_type(at, end, 18, 16)
    if link == INFINIBAND_IP:
        return behind_type(at, end, 44, 40)
    if link == NFLOG:
        return netfilter_log(at, end)
    return marked(at, end, link)


@jit
def marked(at: int, end: int, link: int) -> tuple[int, int]:
    """Headers and tags that switches, firewalls and systems add for themselves."""
    if link in (PFLOG, IPNET):
        if at + 4 > end:
            return 0, CUT_OFF
        return (u8(at, end) + 3) // 4 * 4 if link == PFLOG else 24, of_family(u8(at + 1, end))
    before = 4 if link == BROADCOM_TAG_BEFORE else 0
    tag = 4 if link in (BROADCOM_TAG, MARVELL_TAG) else 8 if link == MARVELL_TAG_TYPED else 0
    if before + tag == 0:
        return -1, UNKNOWN
    length = before + 14 + tag
    return (length, u16(at + length - 2, end)) if at + length <= end else (length, CUT_OFF)


@jit
def point_to_point(at: int, end: int, link: int) -> tuple[int, int]:
    """PPP with or without the header of HDLC, or what Cisco has in its place; the protocol may be one byte long."""
    if at + 2 > end:
        return 0, CUT_OFF
    first = u8(at, end)
    if first in (0x0F, 0x8F):
        return behind_type(at, end, 4, 2)
    length = 2 if first == 0xFF or link == PPP_OF_DAEMON else 0  # the daemon writes a direction in place of the address
    if at + length + 2 > end:
        return length, CUT_OFF
    short = u8(at + length, end)
    if short & 1:
        return length + 1, of_ppp(short)
    return length + 2, of_ppp(u16(at + length, end))


@jit
def bridged(at: int, end: int, length: int, padding: int) -> tuple[int, int]:
    """Behind an LLC header that may carry frames of Ethernet, ``padding`` bytes behind it."""
    inside = at + length
    if inside + 8 <= end and u16(inside, end) == 0xAAAA and u32(inside + 2, end) == 0x030080C2:
        frame = length + 8 + padding
        if u16(inside + 6, end) not in (1, 7):
            return length, UNKNOWN
        return (frame + 14, u16(at + frame + 12, end)) if at + frame + 14 <= end else (frame, CUT_OFF)
    return length, _LLC


@jit
def frame_relay(at: int, end: int) -> tuple[int, int]:
    """Behind an address of two to four bytes: control and network protocol (RFC 2427), or an EtherType as Cisco has it."""
    length = 2
    while length < 4 and at + length <= end and not u8(at + length - 1, end) & 1:
        length += 1
    if at + length + 2 > end:
        return length, CUT_OFF
    if u8(at + length, end) & 0xEF != 3:
        return behind_type(at, end, length + 2, length)
    length += 1
    length += u8(at + length, end) == 0  # padding
    if at + length + 1 > end:
        return length, CUT_OFF
    protocol = u8(at + length, end)
    if protocol == 0x80:  # SNAP without the two bytes of LLC before it
        if at + length + 6 > end:
            return length, CUT_OFF
        owner, kind = u32(at + length, end) & 0xFFFFFF, u16(at + length + 4, end)
        length += 6
        if owner == 0x80C2 and kind in (1, 7):
            return (length + 14, u16(at + length + 12, end)) if at + length + 14 <= end else (length, CUT_OFF)
        return length, kind if owner == 0 and kind > 1500 else UNKNOWN
    if protocol in (0xB0, 0xB1, 0xCF):  # compressed, in fragments, PPP
        return length, HIDDEN
    return length + 1, ETHERTYPE_IPV4 if protocol == 0xCC else ETHERTYPE_IPV6 if protocol == 0x8E else UNKNOWN


@jit
def ring(at: int, end: int, link: int) -> tuple[int, int]:
    """Token ring and FDDI: LLC behind two addresses and, on a ring of bridges, the route."""
    length = 14 if link == TOKEN_RING else 13
    if at + length + 1 > end:
        return length, CUT_OFF
    if link == FDDI:
        return length, _LLC if u8(at, end) & 0x70 == 0x50 else UNKNOWN
    if u8(at + 1, end) & 0xC0 != 0x40:
        return length, UNKNOWN
    if u8(at + 8, end) & 0x80:
        length += u8(at + 14, end) & 31
    return length, _LLC


@jit
def netfilter_log(at: int, end: int) -> tuple[int, int]:
    """Behind values with their lengths, in the byte order of whoever wrote them: the one that is a packet."""
    if at + 8 > end:
        return 4, CUT_OFF
    first = at + 4
    little = u16_little(first, end) <= u16(first, end)  # the first value is short
    for _ in range(_MOST_OPTIONS):
        if first + 4 > end:
            return first - at, CUT_OFF
        length = u16_little(first, end) if little else u16(first, end)
        kind = (u16_little(first + 2, end) if little else u16(first + 2, end)) & 0x7FFF
        if length < 4:
            return first - at, UNKNOWN
        if kind == _PAYLOAD:
            return by_version(at, end, first + 4 - at)
        first += (length + 3) // 4 * 4
    return first - at, HIDDEN
