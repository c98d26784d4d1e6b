"""Link types that the native decoder reads, and the names of others. The numbers are those of tcpdump.org."""

from __future__ import annotations

from typing import Final

from analysis.kernels.frames import link_layers as layers

NATIVE: Final = frozenset(
    {
        layers.NULL, layers.ETHERNET, layers.RAW_IP, layers.RAW_IP_BSD, layers.RAW_IP_101, layers.LOOP, layers.LINUX_SLL,
        layers.IPV4_ONLY, layers.IPV6_ONLY, layers.INFINIBAND_IP, layers.INFINIBAND, layers.LINUX_SLL2,
    }
)  # fmt: skip
_NAMES: Final = {
    6: "token ring", 9: "PPP", 10: "FDDI", 50: "PPP", 51: "PPPoE", 100: "ATM", 104: "Cisco HDLC", 105: "IEEE 802.11",
    107: "frame relay", 117: "PFLOG", 119: "IEEE 802.11 with Prism header", 122: "Fibre Channel",
    127: "IEEE 802.11 with radiotap header", 138: "FireWire", 143: "DOCSIS", 163: "IEEE 802.11 with AVS header",
    187: "Bluetooth", 189: "USB", 192: "PPI", 195: "IEEE 802.15.4", 197: "ERF", 201: "Bluetooth", 220: "USB",
    227: "CAN bus", 239: "NFLOG", 242: "IP over InfiniBand", 249: "USB", 251: "Bluetooth", 253: "netlink", 258: "PKTAP",
}  # fmt: skip


def link_type_name(link: int) -> str:
    """Return the number of a link type with its name, if it is a frequent one."""
    return f"link type {link} ({_NAMES[link]})" if link in _NAMES else f"link type {link}"
