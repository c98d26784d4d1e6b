"""The virtual network that a flow is inside of: how it is numbered, and how readers see it.

The number is part of the flow's identity: hosts of two networks may have the same addresses and ports. MPLS labels are not: they
differ by direction, and would tear a connection in two. PPPoE and backbones (PBB) are read by tshark only.
"""

from __future__ import annotations

from typing import Final

from analysis.packets import GENEVE, GRE, PBB, PPPOE, VXLAN

__all__ = ["GENEVE", "GRE", "PBB", "PPPOE", "VXLAN", "named_network", "nested_network"]

_NAMES: Final = {VXLAN: "VXLAN", GENEVE: "GENEVE", GRE: "GRE", PPPOE: "PPPoE", PBB: "PBB"}
_NEST: Final = 1_000_003
_MASK: Final = (1 << 56) - 1


def nested_network(network: int, kind: int, number: int) -> int:
    """The word of network ``number`` of ``kind`` inside of ``network`` (0: of none), as kernels.frames.encapsulation.nested."""
    return (network * _NEST ^ (kind << 32 | number)) & _MASK


def named_network(network: int) -> str | None:
    """For readers: "VXLAN 42"; None outside of any, and of nested ones only that they are."""
    if not network:
        return None
    kind, number = network >> 32, network & 0xFFFFFFFF
    return f"{_NAMES[kind]} {number}" if kind in _NAMES else f"nested {network:x}"
