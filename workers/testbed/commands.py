"""Exact commands that build the test-bed's network, as pure functions of the plan."""

from __future__ import annotations

import platform
from typing import Any

from workers.testbed import emulation
from workers.testbed.plan import Plan

Wire = tuple[str, str, dict[str, Any], dict[str, Any]]  # left and right end, what is done to the right and to the left
BRIDGE = "br0"
FAR_BRIDGE = "br1"  # of the second site
WIDE_AREA = ("wan0", "wan1")  # the ends of the wire between the bridges
# The byte of a MAC address with the site, in destination and source: frames that cross are seen at br0.
SITE_BYTES = ((4, 1), (10, 1))
HUB = "hub"
HOST_INTERFACE = "eth0"

# A host without IPv6 configuration would still send router solicitations into the capture. Without
# tcp_no_metrics_save a fabric that lives on would hand one trial's slow-start threshold to the next.
HUB_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
HOST_SYSCTLS = {**HUB_SYSCTLS, "net.ipv4.tcp_no_metrics_save": "1"}

# The bucket holds one frame, which tbf needs, and what the rate carries while the kernel's timer is late. Measured share of
# a gigabit that TCP reached: 0.51 at 5 us, 0.64 at 10 us, 0.88 at 20 us, 0.95 at 40 us.
TIMER_LATENESS_S = 50e-6
QUEUE_BYTES = 32 << 20  # a host's own queue holds TCP back, it does not drop; the socket buffers end before it
# The relay spaces frames itself: the shaper in front of it keeps the mean rate, though a busy kernel runs it late.
# If a queue's length is requested, the bucket must not make it longer.
RELAYED_BURST_S = 5e-3
TAP_QUEUE_FRAMES = 10_000  # between the kernel and the emulator: bridges the time until the emulator gets a core
ETHERNET_BYTES = 14


def hosts_file(plan: Plan) -> str:
    """Return /etc/hosts of the test-bed."""
    lines = ["127.0.0.1 localhost", *(f"{plan.addresses[host]} {host}" for host in plan.hosts)]
    return "\n".join(lines) + "\n"


def host_sysctls(plan: Plan) -> dict[str, str]:
    """Return the sysctls of every host."""
    settings = dict(HOST_SYSCTLS)
    if plan.congestion_control is not None:
        settings["net.ipv4.tcp_congestion_control"] = plan.congestion_control
    if plan.tcp_buffer_bytes is not None:
        # Least, first and largest size; the kernel moves between them by itself.
        largest = plan.tcp_buffer_bytes
        settings["net.ipv4.tcp_rmem"] = f"4096 {min(131072, largest)} {largest}"
        settings["net.ipv4.tcp_wmem"] = f"4096 {min(16384, largest)} {largest}"
    return settings


def bridges(plan: Plan) -> list[str]:
    """Return `ip -batch` lines: one learning switch per site, silent by itself."""
    lines = ["link set dev lo up"]
    for name in bridge_names(plan):
        lines += [
            f"link add name {name} mtu {plan.mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            f"link set dev {name} up",
        ]
    return lines


def bridge_names(plan: Plan) -> tuple[str, ...]:
    """Return the bridges of the plan; the first one is recorded."""
    return (BRIDGE, FAR_BRIDGE) if plan.topology == "two sites" else (BRIDGE,)


def bridge_of(plan: Plan, number: int) -> str:
    """Return the bridge of host `number` (from 1)."""
    return FAR_BRIDGE if plan.second_site(number) else BRIDGE


def emulated_wires(plan: Plan) -> list[tuple[str, str]]:
    """Return pairs of TAP devices that the relay joins: wide area, or hosts."""
    if not plan.relayed:
        return []
    if plan.topology == "two sites":
        return [WIDE_AREA]
    return [(f"w{number}", host) for number, host in enumerate(plan.hosts, start=1)]


def relayed_wires(plan: Plan) -> list[Wire]:
    """Return the relay's wires with impairments and rates in both directions."""
    impaired = emulation.impairment(plan)
    if plan.topology == "two sites":
        way = {**impaired, "rate_bps": plan.bandwidth_bps}
        return [(*WIDE_AREA, way, way)]
    wires = []
    for number, (left, right) in enumerate(emulated_wires(plan), start=1):
        rate = {"rate_bps": plan.port_rate_bps(number)}
        wires.append((left, right, {**impaired, **rate}, rate if plan.topology == "star" else {}))
    return wires


def shared_out(wires: list[Wire], cores: int) -> list[list[Wire]]:
    """Divide the wires among relay processes, at most half as many as cores.

    A frame between two hosts passes two wires, and a second process would be late on its own.
    """
    processes = max(1, min(len(wires), cores // 2))
    return [wires[first::processes] for first in range(processes)]


def taps(plan: Plan) -> list[str]:
    """Return `ip -batch` lines of TAP devices, which outlive the relay: a cut wire."""
    lines = []
    for wire in emulated_wires(plan):
        for name in wire:
            lines += [
                f"tuntap add dev {name} mode tap",
                f"link set dev {name} mtu {plan.mtu} txqueuelen {TAP_QUEUE_FRAMES}",
            ]
    return lines


def host_wire(plan: Plan, number: int) -> list[str]:
    """Return `ip -batch` lines of the hub: the interface of host `number`."""
    host, mac = plan.hosts[number - 1], _mac(plan, number)
    if plan.relayed and plan.topology != "two sites":
        return [f"link set dev w{number} address {mac} netns {host} name {HOST_INTERFACE}"]
    return [
        f"link add name {host} mtu {plan.mtu} txqueuelen 1000 type veth peer name {HOST_INTERFACE} mtu {plan.mtu} "
        f"address {mac} netns {host}"
    ]


def _mac(plan: Plan, number: int) -> str:
    """Return the address of a host; the second site's recording selects by its site."""
    return f"02:00:00:00:{int(plan.second_site(number)):02x}:{number:02x}"


def host_interface(plan: Plan, number: int, merging_limited: bool) -> list[str]:
    """Return `ip -batch` lines of host `number`."""
    host = plan.hosts[number - 1]
    return [
        "link set dev lo up",
        *_receive_limit(HOST_INTERFACE, merging_limited),
        f"addr add {plan.addresses[host]}/24 dev {HOST_INTERFACE}",
        f"link set dev {HOST_INTERFACE} up",
        f"route add 224.0.0.0/4 dev {HOST_INTERFACE}",
    ]


def neighbours(plan: Plan, number: int) -> list[str]:
    """Return `ip -batch` lines of host `number`: it asks for no neighbours.

    The kernel's table of them is one for the machine: a program that asks for 1000 would cut it off from its network. Last, as
    changes of other interfaces search the whole table.
    """
    return [
        f"ntable change name arp_cache dev {HOST_INTERFACE} mcast_probes 0",
        *(
            f"neigh add {plan.addresses[other]} lladdr {_mac(plan, at)} dev {HOST_INTERFACE} nud permanent"
            for at, other in enumerate(plan.hosts, start=1)
            if at != number
        ),
    ]


def ports(plan: Plan, merging_limited: bool) -> list[str]:
    """Return `ip -batch` lines of the hub: connect the hosts and join the sites."""
    lines = []
    if plan.topology == "two sites":
        if not plan.relayed:
            near, far = WIDE_AREA
            lines.append(f"link add name {near} mtu {plan.mtu} type veth peer name {far} mtu {plan.mtu}")
        for end, bridge in zip(WIDE_AREA, bridge_names(plan), strict=True):
            lines += [*_receive_limit(end, merging_limited), f"link set dev {end} master {bridge} up"]
    for number, host in enumerate(plan.hosts, start=1):
        lines += [*_receive_limit(host, merging_limited), f"link set dev {host} master {bridge_of(plan, number)} up"]
    return lines


def hub_interfaces(plan: Plan) -> list[str]:
    """Return every interface of the hub that carries frames between hosts."""
    return [*plan.hosts, *(WIDE_AREA if plan.topology == "two sites" else ())]


def _receive_limit(interface: str, limited: bool) -> list[str]:
    return [f"link set dev {interface} gro_max_size 1"] if limited else []


def host_shaping(plan: Plan, number: int) -> list[str]:
    """Return `tc -batch` lines of host `number`: what it sends."""
    impaired = plan.topology != "two sites"
    return _shaping(
        plan, HOST_INTERFACE, plan.port_rate_bps(number), impaired=impaired, spaced=impaired and plan.relayed
    )


def hub_shaping(plan: Plan) -> list[str]:
    """Return `tc -batch` lines of the hub: wide-area link, or a star's hosts."""
    lines = []
    if plan.topology == "two sites":
        for end in WIDE_AREA:
            lines += _shaping(plan, end, plan.bandwidth_bps, impaired=True, spaced=plan.relayed)
    if plan.topology == "star":
        for number, host in enumerate(plan.hosts, start=1):
            lines += _shaping(plan, host, plan.port_rate_bps(number), impaired=False, spaced=plan.relayed)
    return lines


def _shaping(plan: Plan, interface: str, rate_bps: float | None, *, impaired: bool, spaced: bool) -> list[str]:
    """Return a rate, counted in Ethernet frames as captures do.

    With netem behind the delay. `spaced`: the relay behind it keeps the frames apart.
    """
    lines, parent = [], "root"
    if impaired and plan.impaired and plan.emulator == "netem":
        lines.append(f"qdisc add dev {interface} root handle 1: netem {emulation.netem(plan)}")
        parent = "parent 1:1 handle 2:"
    if rate_bps is not None:
        rate = f"rate {round(rate_bps)}bit burst {_burst_bytes(plan, rate_bps, spaced=spaced)}b"
        lines.append(f"qdisc add dev {interface} {parent} tbf {rate} limit {plan.queue_bytes or QUEUE_BYTES}b")
    return lines


def _burst_bytes(plan: Plan, rate_bps: float, *, spaced: bool) -> int:
    """Return bytes that may leave after a pause: a frame, and by a late timer."""
    frame_bytes = plan.mtu + ETHERNET_BYTES
    if spaced and plan.queue_bytes is None:
        return max(int(rate_bps / 8 * RELAYED_BURST_S), 2 * frame_bytes)
    return frame_bytes + int(rate_bps / 8 * TIMER_LATENESS_S)


def losing_interfaces(plan: Plan) -> list[str]:
    """Return the interfaces on which nftables drops arriving frames."""
    if plan.emulator != "nftables":
        return []
    return list(WIDE_AREA if plan.topology == "two sites" else plan.hosts)


def offloads_off(interface: str, merging_limited: bool) -> list[str]:
    """Return the command that makes one frame on the wire one frame in the capture.

    Receive offload (GRO) stays on if its size limit can be 1 byte: it then merges nothing, but the veth driver polls each
    interface in order on one CPU (NAPI). Without it frames of one connection pass through the queues of several CPUs and
    overtake each other: 100-300 false retransmissions in two seconds at 1 Gb/s, measured with a link that dropped nothing; with
    it none.
    """
    receive = "on" if merging_limited else "off"
    return ["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", receive]


def supports_receive_limit() -> bool:
    """Return whether gro_max_size holds for IPv4: from Linux 5.19 on."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()) or 0)) >= (5, 19)
