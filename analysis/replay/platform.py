"""Networks of a replay, as SimGrid platforms: a star, or two sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from analysis.sensitivity import Link

Topology = Literal["star", "two sites"]
_CORES: Final = 256
"""Cores of a host: the traced times already include the contention of its ranks."""
_HEAD: Final = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="network" routing="Full">"""
_WIRE: Final = '    <link id="{}" bandwidth="{:.9g}bps" latency="{:.12g}s" sharing_policy="{}"/>'
_INSIDE_BPS: Final = 80e9
_INSIDE_S: Final = 1e-6


def platform(hosts: int, link: Link, topology: Topology = "star") -> str:
    """Return a platform file.

    ``link.delay_s`` is one way from host to host; ``link.rate_bps`` is that of every host's link (star), or of the link between the
    first and the second half of the hosts (two sites).
    """
    is_two_sites = topology == "two sites"
    host_link = Link(0.0, _INSIDE_BPS) if is_two_sites else Link(link.delay_s / 2, link.rate_bps)
    lines = [_HEAD, *(f'    <host id="h{n}" speed="1Gf" core="{_CORES}"/>' for n in range(hosts))]
    lines += [_WIRE.format(f"l{n}", host_link.rate_bps, host_link.delay_s, "SPLITDUPLEX") for n in range(hosts)]
    lines.append(_WIRE.format("inside", _INSIDE_BPS, _INSIDE_S, "FATPIPE"))
    if is_two_sites:
        lines.append(_WIRE.format("between", link.rate_bps, link.delay_s, "SPLITDUPLEX"))
    for source in range(hosts):
        for target in range(hosts):
            lines.append(_route(source, target, hosts, is_two_sites=is_two_sites))
    return "\n".join([*lines, "  </zone>", "</platform>", ""])


def _route(source: int, target: int, hosts: int, *, is_two_sites: bool) -> str:
    wires = ['<link_ctn id="inside"/>']
    if source != target:
        middle: list[str] = []
        if is_two_sites and (source < hosts / 2) != (target < hosts / 2):
            middle = [f'<link_ctn id="between" direction="{"UP" if source < target else "DOWN"}"/>']
        wires = [f'<link_ctn id="l{source}" direction="UP"/>', *middle, f'<link_ctn id="l{target}" direction="DOWN"/>']
    return f'    <route src="h{source}" dst="h{target}" symmetrical="NO">{"".join(wires)}</route>'


def host_file(places: Sequence[int]) -> str:
    """Return the file with the host of each rank, from rank 0."""
    return "".join(f"h{host}\n" for host in places)
