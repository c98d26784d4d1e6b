"""What tshark's columns say of one packet: which layers it has, and what of them is told where tshark says it for several or for none."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from analysis.capture import virtual_networks as encapsulation

_NETWORKS: Final = {
    "vxlan": ("vxlan.vni", encapsulation.VXLAN),
    "geneve": ("geneve.vni", encapsulation.GENEVE),
    "gre": ("gre.key", encapsulation.GRE),
    "pppoes": ("pppoe.session_id", encapsulation.PPPOE),
    "ieee8021ah": ("ieee8021ah.isid", encapsulation.PBB),
    "ieee8021ad": ("ieee8021ah.isid", encapsulation.PBB),
}
"""What names a virtual network, by tshark's name of the protocol."""
_NAMING: Final = frozenset(field for field, _ in _NETWORKS.values())
ERRORS: Final = frozenset({"icmp", "icmpv6"})
_QUOTING: Final = ERRORS | {"sflow"}
"""What quotes packets that others have sent."""
_HIDING: Final = frozenset({"esp", "macsec", "wg"})
_CARRYING: Final = frozenset(
    {
        "eth", "ethertype", "vlan", "etag", "vntag", "mpls", "llc", "pppoes", "ppp", "ieee8021ad", "ieee8021ah", "ieee8021cb", "hsr",
        "gre", "vxlan", "geneve", "ah", "wlan", "wlan_radio", "radiotap", "prism", "wlancap", "ppi", "chdlc", "fr", "tr", "fddi", "ipfc",
    }
)  # fmt: skip
"""What a frame that was cut ends with where what it carries was not captured."""
_CARRYING_PORTS: Final = frozenset({"4789", "8472", "6081", "6635", "4754", "4791"})
"""UDP: of tunnels that are looked into, and of RoCEv2."""
_FRAGMENT_HEADER: Final = 8
TRUE: Final = ("1", "True")


def begins_fragments(fields: dict[str, str], protocols: list[str]) -> bool:
    """Whether later fragments go on with what the innermost IP packet carries."""
    if innermost(protocols) == "ip":
        return nth(fields["ip.flags.mf"], protocols.count("ip") - 1) in TRUE
    return last(fields["ipv6.fraghdr.more"]) in TRUE


def content_bytes(fields: dict[str, str], protocols: list[str]) -> int | None:
    """Bytes that the innermost IP packet has for TCP or UDP; None where its header does not tell or others lie between."""
    inner = innermost(protocols)
    if inner is None:
        return None
    place = len(protocols) - 1 - protocols[::-1].index(inner)
    between = protocols[place + 1 : place + 2]
    length = int(nth(fields["ip.len" if inner == "ip" else "ipv6.plen"], protocols.count(inner) - 1) or 0)
    if inner == "ipv6" and between == ["ipv6.fraghdr"]:
        between, length = protocols[place + 2 : place + 3], length - _FRAGMENT_HEADER
    if between not in (["tcp"], ["udp"]) or length <= 0:
        return None
    return length - (int(nth(fields["ip.hdr_len"], protocols.count("ip") - 1) or 0) if inner == "ip" else 0)


def innermost(protocols: list[str]) -> str | None:
    """Which IP the innermost IP packet is, by tshark's name."""
    return next((name for name in reversed(protocols) if name in ("ip", "ipv6")), None)


@lru_cache(maxsize=4096)
def layers_of(protocols: str) -> tuple[list[str], int, bool]:
    """(protocols from the outermost to the innermost, how many of them before a quoted packet, whether one hides what it carries)."""
    names = protocols.split(":")
    quoted = next((at for at, name in enumerate(names) if name in _QUOTING), len(names))
    if "tcp" in names[:quoted]:  # a byte stream: a packet in it, as of OpenFlow, is quoted too
        quoted = names.index("tcp") + 1
    return names, quoted, not _HIDING.isdisjoint(names[:quoted])


def ends_early(fields: dict[str, str], innermost_layer: str) -> bool:
    """Whether a frame that was cut ends, with ``innermost_layer``, before what its headers carry."""
    if innermost_layer == "infiniband":
        return not fields["infiniband.bth.psn"]
    return innermost_layer in _CARRYING or (innermost_layer == "udp" and last(fields["udp.dstport"]) in _CARRYING_PORTS)


def virtual_network(fields: dict[str, str], protocols: list[str]) -> int:
    """The word that the native decoder makes of the networks around the innermost IP packet (kernels.frames.encapsulation)."""
    if not any(fields[field] for field in _NAMING):
        return 0
    inner = max((at for at, name in enumerate(protocols) if name in ("ip", "ipv6")), default=0)
    waiting = {field: [value for value in fields[field].split(",") if value] for field, _ in _NETWORKS.values()}
    network = 0
    for name in protocols[:inner]:
        field, kind = _NETWORKS.get(name, ("", 0))
        if field and waiting[field]:
            network = encapsulation.nested_network(network, kind, int(waiting[field].pop(0), 0))
    return network


def named(field: str, values: str) -> str:
    """The VLANs or labels among them that name something (kernels.frames.encapsulation)."""
    nothing = (0, 2) if field == "mpls.label" else (0,)
    return ",".join(value for value in values.split(",") if value and int(value, 0) not in nothing)


def nth(values: str, place: int) -> str:
    """The value of the ``place``-th header; of the last where fewer are given."""
    parts = values.split(",")
    return parts[min(place, len(parts) - 1)]


def last(values: str) -> str:
    """The value of the innermost header."""
    return values.rpartition(",")[2]
