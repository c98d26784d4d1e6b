"""The networks of a replay, as platform files of SimGrid: a star around one switch, or two sites with one link between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from analysis.sensitivity import Link

Topology = Literal["star", "two sites"]
_CORES: Final = 256
"""Of a host: its ranks were traced beside each other, so that what they cost each other is in their times already."""
_HEAD: Final = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="network" routing="Full">"""
_WIRE: Final = '    <link id="{}" bandwidth="{:.9g}bps" latency="{:.12g}s" sharing_policy="{}"/>'
_INSIDE_BPS: Final = 80e9
_INSIDE_S: Final = 1e-6


def platform(hosts: int, link: Link, topology: Topology = "star") -> str:
    """Return the file. ``link.delay_s`` is one way from host to host and ``link.rate_bps`` that of every host's own link (star), or of
    the link between the first and the second half of the hosts (two sites), whose own links add nothing.
    """
    apart = topology == "two sites"
    own = Link(0.0, _INSIDE_BPS) if apart else Link(link.delay_s / 2, link.rate_bps)
    lines = [_HEAD, *(f'    <host id="h{n}" speed="1Gf" core="{_CORES}"/>' for n in range(hosts))]
    lines += [_WIRE.format(f"l{n}", own.rate_bps, own.delay_s, "SPLITDUPLEX") for n in range(hosts)]
    lines.append(_WIRE.format("inside", _INSIDE_BPS, _INSIDE_S, "FATPIPE"))
    if apart:
        lines.append(_WIRE.format("between", link.rate_bps, link.delay_s, "SPLITDUPLEX"))
    for source in range(hosts):
        for target in range(hosts):
            lines.append(_route(source, target, hosts, apart=apart))
    return "\n".join([*lines, "  </zone>", "</platform>", ""])


def _route(source: int, target: int, hosts: int, *, apart: bool) -> str:
    wires = ['<link_ctn id="inside"/>']
    if source != target:
        middle: list[str] = []
        if apart and (source < hosts / 2) != (target < hosts / 2):
            middle = [f'<link_ctn id="between" direction="{"UP" if source < target else "DOWN"}"/>']
        wires = [f'<link_ctn id="l{source}" direction="UP"/>', *middle, f'<link_ctn id="l{target}" direction="DOWN"/>']
    return f'    <route src="h{source}" dst="h{target}" symmetrical="NO">{"".join(wires)}</route>'


def host_file(places: Sequence[int]) -> str:
    """Return the file that says which host each rank is on, from rank 0."""
    return "".join(f"h{host}\n" for host in places)
