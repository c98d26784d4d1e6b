"""Commands that build the virtual network, and the rate limit."""

from __future__ import annotations

import pytest

from workers.testbed import commands
from workers.testbed.plan import Plan

PLAN = Plan(hosts=("n1", "n2"), mtu=9000, bandwidth_bps=1e9)


def test_a_host_gets_one_shaped_interface_and_a_port_on_the_bridge() -> None:
    assert commands.bridges(PLAN) == [
        "link set dev lo up",
        "link add name br0 mtu 9000 type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        "link set dev br0 up",
    ]
    assert commands.host_wire(PLAN, 2) == [
        "link add name n2 mtu 9000 txqueuelen 1000 type veth peer name eth0 mtu 9000 address 02:00:00:00:00:02 netns n2"
    ]
    assert commands.host_interface(PLAN, 2, merging_limited=True) == [
        "link set dev lo up",
        "link set dev eth0 gro_max_size 1",
        "addr add 10.77.0.2/24 dev eth0",
        "link set dev eth0 up",
        "route add 224.0.0.0/4 dev eth0",
    ]
    assert commands.neighbours(PLAN, 2) == [
        "ntable change name arp_cache dev eth0 mcast_probes 0",
        "neigh add 10.77.0.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
    ]
    assert commands.ports(PLAN, merging_limited=False) == [
        "link set dev n1 master br0 up",
        "link set dev n2 master br0 up",
    ]
    assert commands.hub_shaping(PLAN) == []


@pytest.mark.parametrize(
    ("bandwidth_bps", "mtu", "burst_bytes"),
    [
        (1e9, 1500, 7764),
        (1e9, 9000, 15264),
        (1e7, 1500, 1576),
    ],
)
def test_the_burst_is_one_frame_and_50_us_of_the_rate(bandwidth_bps: float, mtu: int, burst_bytes: int) -> None:
    plan = Plan(hosts=("n1",), mtu=mtu, bandwidth_bps=bandwidth_bps)
    rate = f"rate {bandwidth_bps:.0f}bit burst {burst_bytes}b"
    assert commands.host_shaping(plan, 1) == [f"qdisc add dev eth0 root tbf {rate} limit 33554432b"]


def test_an_unlimited_link_is_not_shaped() -> None:
    assert commands.host_shaping(Plan(hosts=("n1",), bandwidth_bps=None), 1) == []


def test_receive_offload_stays_on_only_where_it_can_be_kept_from_merging() -> None:
    assert commands.offloads_off("n1", merging_limited=True)[-1] == "on"
    assert commands.offloads_off("n1", merging_limited=False)[-1] == "off"


def test_every_host_is_known_by_name() -> None:
    assert commands.hosts_file(PLAN) == "127.0.0.1 localhost\n10.77.0.1 n1\n10.77.0.2 n2\n"
