"""Link layers: length and EtherType of the header, by link type.

Sources: the link types of tcpdump.org; IEEE 802.1Q; RFC 4391 (IP over InfiniBand).
"""

from __future__ import annotations

from analysis.kernels import jit
from analysis.kernels.frames.encapsulation import CUT_OFF, ETHERTYPE_IPV4, ETHERTYPE_IPV6, HIDDEN, UNKNOWN
from analysis.kernels.raw import u8, u16, u32, u32_little

# LINKTYPE_ and the raw DLT_ values that savefiles are found to hold
ETHERNET, NULL, LOOP, LINUX_SLL, LINUX_SLL2 = 1, 0, 108, 113, 276
RAW_IP, RAW_IP_BSD, RAW_IP_101, IPV4_ONLY, IPV6_ONLY = 12, 14, 101, 228, 229
INFINIBAND, INFINIBAND_IP = 247, 242


@jit
def link_layer(at: int, end: int, link: int) -> tuple[int, int]:
    """Return the bytes of the link layer, and the EtherType behind them.

    The EtherType is CUT_OFF if it was not captured, UNKNOWN if there is none, HIDDEN for native InfiniBand. Of Ethernet and
    cooked captures the bytes include all VLAN tags.
    """
    if link == ETHERNET:
        return through_vlan_tags(at, end, 14, 12)
    if link == LINUX_SLL:
        return through_vlan_tags(at, end, 16, 14)
    if link == LINUX_SLL2:
        return through_vlan_tags(at, end, 20, 0)
    if link in (RAW_IP, RAW_IP_BSD, RAW_IP_101, IPV4_ONLY, IPV6_ONLY):
        return bare_ip(at, end)
    if link in (NULL, LOOP):
        return behind_family(at, end)
    if link == INFINIBAND_IP:
        return behind_infiniband(at, end)
    return 0, HIDDEN if link == INFINIBAND else UNKNOWN


@jit
def through_vlan_tags(at: int, end: int, length: int, type_offset: int) -> tuple[int, int]:
    """Skip any number of 802.1Q and 802.1ad tags."""
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
def bare_ip(at: int, end: int) -> tuple[int, int]:
    """Return the EtherType by the IP version; other versions are contradictory IPv4."""
    if at >= end:
        return 0, CUT_OFF
    return 0, ETHERTYPE_IPV6 if u8(at, end) >> 4 == 6 else ETHERTYPE_IPV4


@jit
def behind_family(at: int, end: int) -> tuple[int, int]:
    """Read the address family, in the byte order of the BSD host."""
    if at + 4 > end:
        return 4, CUT_OFF
    family = min(u32(at, end), u32_little(at, end))
    return 4, ETHERTYPE_IPV4 if family == 2 else ETHERTYPE_IPV6 if family in (10, 24, 26, 28, 30) else UNKNOWN


@jit
def behind_infiniband(at: int, end: int) -> tuple[int, int]:
    """Read the EtherType that follows the global route header."""
    if at + 44 > end:
        return 44, CUT_OFF
    kind = u16(at + 40, end)
    return 44, kind if kind > 1500 else UNKNOWN
