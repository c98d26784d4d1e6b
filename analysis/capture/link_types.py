"""Link types by who reads them: the native decoder, tshark, or nobody, where packets, bytes and times alone are counted.

The numbers are those of tcpdump.org. What cannot carry IP, and what no capture of a cluster has, is not worth half a minute of tshark.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from analysis.kernels.frames import link_layers as layers
from analysis.kernels.frames import pseudo_headers as pseudo
from analysis.kernels.frames import wireless

HEADERS_KNOWN: Final = frozenset(
    {
        layers.NULL, layers.ETHERNET, layers.RAW_IP, layers.RAW_IP_101, layers.LOOP, layers.LINUX_SLL, layers.IPV4_ONLY,
        layers.IPV6_ONLY, layers.LINUX_SLL2,
    }
)  # fmt: skip
"""Those whose addresses are known by place, so that they can be replaced."""
WITHOUT_ADDRESSES: Final = frozenset(
    {
        layers.RAW_IP_BSD, layers.CLASSICAL_IP, layers.CLASSICAL_IP_106, layers.PPP, layers.PPP_SERIAL, layers.PPP_ETHER,
        layers.PPP_OF_DAEMON, layers.CISCO_HDLC, layers.ENC, layers.ENC_BSD,
    }
)  # fmt: skip
"""Those whose headers have none."""
NATIVE: Final = HEADERS_KNOWN | {
    layers.RAW_IP_BSD, layers.CLASSICAL_IP, layers.CLASSICAL_IP_106, layers.PPP, layers.PPP_SERIAL, layers.PPP_ETHER,
    layers.PPP_OF_DAEMON, layers.CISCO_HDLC, layers.FRAME_RELAY, layers.TOKEN_RING, layers.FDDI, layers.ATM_LLC, layers.ATM_LLC_BSD,
    layers.FIBRE_CHANNEL, layers.FIREWIRE, layers.INFINIBAND_IP, layers.ENC, layers.ENC_BSD, layers.PFLOG, layers.NFLOG, layers.IPNET,
    layers.PKTAP, layers.PKTAP_USER, layers.PPI, layers.BROADCOM_TAG, layers.BROADCOM_TAG_BEFORE, layers.MARVELL_TAG,
    layers.MARVELL_TAG_TYPED, wireless.WIRELESS, wireless.PRISM, wireless.RADIOTAP, wireless.AVS, pseudo.ERF, pseudo.PPP_DIRECTED,
    pseudo.HDLC_DIRECTED, pseudo.FRAME_RELAY_DIRECTED,
}  # fmt: skip
ONLY_TSHARK: Final = frozenset(
    {
        3, 202, 7, 129, 123, 128, 182, 193, 203,  # AX.25, ARCNET, ATM of Sun, TZSP, multilink frame relay, WiMAX, LAPD
        130, 131, 132, 133, 134, 135, 136, 137, 164, 167, 178, 179, 180, 181, 183, 184, 194, 200, 238,  # Juniper
        143, 259, 273, 169, 170, 171,  # DOCSIS, EPON, XRA, GPRS, generic framing
        191, 195, 215, 230, 283,  # IEEE 802.15.4
        240, 241, 252, 274, 280,  # netANALYZER, PDUs of Wireshark, FD.io and others
    }
)  # fmt: skip
"""Those that carry IP in a way that only tshark takes apart."""
_COUNTED: Final = {
    147: "of the reader's own", 177: "LAPD", 187: "Bluetooth", 201: "Bluetooth", 189: "USB", 220: "USB", 249: "USB", 227: "CAN bus",
    231: "D-Bus", 247: "InfiniBand", 251: "Bluetooth", 253: "netlink",
}  # fmt: skip
PSEUDO_HEADER: Final = np.zeros(256, np.int64)
"""Bytes by link type that capinfos and tshark do not count either: they were written by a driver or a card."""
for _links, _bytes in (
    ((pseudo.PPP_DIRECTED, pseudo.HDLC_DIRECTED, pseudo.FRAME_RELAY_DIRECTED), 1),
    ((245,), 2),
    ((139, 201, 254), 4),
    ((196, 209), 5),
    ((144, 177), 16),
    ((pseudo.ERF,), 16),
):
    PSEUDO_HEADER[list(_links)] = _bytes
WITH_PSEUDO_HEADER: Final = frozenset(np.flatnonzero(PSEUDO_HEADER).tolist())
USUAL: Final = NATIVE - WITH_PSEUDO_HEADER
"""What is decoded as it lies in the file."""


def named(link: int) -> str:
    """For readers."""
    if link == pseudo.OTHER:
        return "records of a capture card that are no frames of Ethernet or IP"
    return f"link type {link} ({_COUNTED[link]})" if link in _COUNTED else f"link type {link}"
