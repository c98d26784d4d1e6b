"""The exact commands that build the test-bed's network, as pure functions of the plan; tests pin them."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field

BRIDGE = "br0"
HUB = "hub"
HOST_INTERFACE = "eth0"
DEFAULT_MTU = 1500
HOST_LIMIT = 250  # the third octet of the addresses

# A host on a wire that nobody configured for IPv6 would still send router solicitations into the capture. Without
# tcp_no_metrics_save a fabric that lives on would hand one trial's slow-start threshold to the next.
HUB_SYSCTLS = {
    "net.ipv6.conf.all.disable_ipv6": "1",
    "net.ipv6.conf.default.disable_ipv6": "1",
}
HOST_SYSCTLS = {**HUB_SYSCTLS, "net.ipv4.tcp_no_metrics_save": "1"}

BURST_S = 125e-6  # shorter, and the kernel's timers cannot hold a gigabit (measured: 96 % at 50 us, 99 % at 125 us)
BURST_FRAMES = 2  # tbf drops what is longer than its bucket
QUEUE_BYTES = 32 << 20  # a host's own queue holds TCP back, it does not drop; the socket buffers end before it
ETHERNET_BYTES = 14


@dataclass(frozen=True)
class Plan:
    """What to build: host names in order and what the link of each should be."""

    hosts: tuple[str, ...]
    mtu: int = DEFAULT_MTU
    bandwidth_bps: float | None = None
    addresses: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """JSON hands over a list; addresses follow from the order."""
        object.__setattr__(self, "hosts", tuple(self.hosts))
        if not self.addresses:
            object.__setattr__(self, "addresses", {host: address(k) for k, host in enumerate(self.hosts, start=1)})


def host_names(count: int) -> tuple[str, ...]:
    """n1 ... nN."""
    return tuple(f"n{number}" for number in range(1, count + 1))


def address(number: int) -> str:
    """The address of host nK."""
    return f"10.77.0.{number}"


def hosts_file(plan: Plan) -> str:
    """/etc/hosts of the test-bed."""
    lines = ["127.0.0.1 localhost", *(f"{plan.addresses[host]} {host}" for host in plan.hosts)]
    return "\n".join(lines) + "\n"


def bridge(plan: Plan) -> list[str]:
    """`ip -batch` lines: a learning switch that sends nothing of its own."""
    return [
        "link set dev lo up",
        f"link add name {BRIDGE} mtu {plan.mtu} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"link set dev {BRIDGE} up",
    ]


def host_interfaces(plan: Plan, number: int, merging_limited: bool) -> list[str]:
    """`ip -batch` lines run inside host `number`; its port comes out in the hub."""
    host = plan.hosts[number - 1]
    return [
        "link set dev lo up",
        f"link add name {HOST_INTERFACE} mtu {plan.mtu} address 02:00:00:00:00:{number:02x} "
        f"type veth peer name {host} mtu {plan.mtu} netns {HUB}",
        *_receive_limit(HOST_INTERFACE, merging_limited),
        f"addr add {plan.addresses[host]}/24 dev {HOST_INTERFACE}",
        f"link set dev {HOST_INTERFACE} up",
        f"route add 224.0.0.0/4 dev {HOST_INTERFACE}",
    ]


def ports(plan: Plan, merging_limited: bool) -> list[str]:
    """`ip -batch` lines run in the hub: plug every host in."""
    lines = []
    for host in plan.hosts:
        lines += [*_receive_limit(host, merging_limited), f"link set dev {host} master {BRIDGE} up"]
    return lines


def _receive_limit(interface: str, limited: bool) -> list[str]:
    return [f"link set dev {interface} gro_max_size 1"] if limited else []


def shaping(plan: Plan) -> list[str]:
    """`tc -batch` lines run inside a host: its sending rate, counted in Ethernet frames as captures count them."""
    if plan.bandwidth_bps is None:
        return []
    burst = max(int(plan.bandwidth_bps / 8 * BURST_S), BURST_FRAMES * (plan.mtu + ETHERNET_BYTES))
    rate = f"rate {round(plan.bandwidth_bps)}bit burst {burst}b"
    return [f"qdisc add dev {HOST_INTERFACE} root tbf {rate} limit {QUEUE_BYTES}b"]


def offloads_off(interface: str, merging_limited: bool) -> list[str]:
    """One frame on the wire is one frame in the capture.

    Receive offload (GRO) stays switched on where its size limit can be 1 byte: it then merges nothing, but the veth
    driver polls each interface in order on one CPU (NAPI). Without it frames of one connection pass through the
    queues of several CPUs and overtake each other: 100-300 false retransmissions in two seconds at 1 Gb/s, measured
    with a link that dropped nothing; with it none.
    """
    receive = "on" if merging_limited else "off"
    return ["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", receive]


def supports_receive_limit() -> bool:
    """gro_max_size holds for IPv4 from Linux 5.19 on."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()) or 0)) >= (5, 19)
