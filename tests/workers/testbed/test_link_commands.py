"""Exact commands of topologies, TCP settings and every back end."""

from __future__ import annotations

import json
import sys

import pytest

from workers.testbed import commands, emulation
from workers.testbed.plan import Plan

HOSTS = ("n1", "n2", "n3")
NOTHING_WRONG = dict.fromkeys(("netem", "nftables", "relay"), "")


def test_two_sites_are_two_bridges_joined_by_one_shaped_wire() -> None:
    plan = Plan(HOSTS, topology="two sites", bandwidth_bps=3e8, rates_bps=(1e9,))
    assert [commands.bridge_of(plan, number) for number in (1, 2, 3)] == ["br0", "br0", "br1"]
    assert [line.split()[3] for line in commands.bridges(plan) if "type bridge" in line] == ["br0", "br1"]
    assert commands.ports(plan, merging_limited=False)[:3] == [
        "link add name wan0 mtu 1500 type veth peer name wan1 mtu 1500",
        "link set dev wan0 master br0 up",
        "link set dev wan1 master br1 up",
    ]
    assert commands.hub_shaping(plan) == [
        "qdisc add dev wan0 root tbf rate 300000000bit burst 3389b limit 33554432b",
        "qdisc add dev wan1 root tbf rate 300000000bit burst 3389b limit 33554432b",
    ]
    assert commands.host_shaping(plan, 1) == [
        "qdisc add dev eth0 root tbf rate 1000000000bit burst 7764b limit 33554432b"
    ]
    assert commands.host_shaping(Plan(HOSTS, topology="two sites", bandwidth_bps=3e8), 1) == []


def test_a_star_limits_every_port_in_both_directions() -> None:
    plan = Plan(HOSTS, topology="star", rates_bps=(1e9, 1e7), queue_bytes=100_000)
    assert commands.host_shaping(plan, 3) == ["qdisc add dev eth0 root tbf rate 10000000bit burst 1576b limit 100000b"]
    assert commands.hub_shaping(plan) == [
        "qdisc add dev n1 root tbf rate 1000000000bit burst 7764b limit 100000b",
        "qdisc add dev n2 root tbf rate 10000000bit burst 1576b limit 100000b",
        "qdisc add dev n3 root tbf rate 10000000bit burst 1576b limit 100000b",
    ]


def test_tcp_settings_are_set_inside_every_host() -> None:
    settings = commands.host_sysctls(Plan(HOSTS, congestion_control="reno", tcp_buffer_bytes=65536))
    assert settings["net.ipv4.tcp_congestion_control"] == "reno"
    assert settings["net.ipv4.tcp_rmem"] == "4096 65536 65536"
    assert settings["net.ipv4.tcp_wmem"] == "4096 16384 65536"
    assert "net.ipv4.tcp_rmem" not in commands.host_sysctls(Plan(HOSTS))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"delay_s": 0.0035}, "limit 1000000 delay 3500us"),
        ({"delay_s": 0.004, "jitter_s": 0.0008}, "limit 1000000 delay 4000us 800us rate 100gbit"),
        (
            {"delay_s": 0.016, "jitter_s": 0.0002, "distribution": "normal"},
            "limit 1000000 delay 16000us 200us distribution normal rate 100gbit",
        ),
        ({"loss": 0.001}, "limit 1000000 loss random 0.1%"),
        ({"loss": 0.0001, "delay_s": 0.002}, "limit 1000000 delay 2000us loss random 0.01%"),
        ({"loss": 0.01, "loss_burst": 5.0}, "limit 1000000 loss gemodel 0.2020202% 20%"),
    ],
)
def test_netem_gets_these_words(asked: dict[str, float], words: str) -> None:
    plan = Plan(HOSTS, bandwidth_bps=1e8, emulator="netem", **asked)  # type: ignore[arg-type]
    assert commands.host_shaping(plan, 1) == [
        f"qdisc add dev eth0 root handle 1: netem {words}",
        "qdisc add dev eth0 parent 1:1 handle 2: tbf rate 100000000bit burst 2139b limit 33554432b",
    ]
    assert commands.emulated_wires(plan) == []


def test_netem_impairs_the_wide_area_link_and_not_the_hosts() -> None:
    plan = Plan(HOSTS, topology="two sites", bandwidth_bps=None, delay_s=0.004, emulator="netem")
    assert commands.host_shaping(plan, 1) == []
    assert commands.hub_shaping(plan) == [
        f"qdisc add dev {end} root handle 1: netem limit 1000000 delay 4000us" for end in ("wan0", "wan1")
    ]


def test_nftables_drops_frames_as_they_come_out_of_the_wire() -> None:
    plan = Plan(HOSTS, loss=0.001, emulator="nftables")
    assert commands.losing_interfaces(plan) == ["n1", "n2", "n3"]
    far = Plan(HOSTS, topology="two sites", loss=0.001, emulator="nftables")
    assert emulation.nft_loss(commands.losing_interfaces(far), far.loss) == (
        "table netdev loss {\n"
        "  chain wan0 { type filter hook ingress device wan0 priority 0; numgen random mod 1000000 < 1000 drop; }\n"
        "  chain wan1 { type filter hook ingress device wan1 priority 0; numgen random mod 1000000 < 1000 drop; }\n"
        "}\n"
    )


def test_the_relay_joins_two_taps_and_impairs_a_host_only_where_it_sends() -> None:
    plan = Plan(("n1", "n2"), delay_s=0.004, jitter_s=0.0002, mtu=9000, emulator="relay")
    assert commands.emulated_wires(plan) == [("w1", "n1"), ("w2", "n2")]
    assert commands.taps(plan)[:2] == ["tuntap add dev w1 mode tap", "link set dev w1 mtu 9000 txqueuelen 10000"]
    assert commands.host_wire(plan, 2) == ["link set dev w2 address 02:00:00:00:00:02 netns n2 name eth0"]
    impaired = {"delay_s": 0.004, "jitter_s": 0.0002, "distribution": "uniform", "loss": 0.0, "loss_burst": 1.0}
    wires = commands.relayed_wires(plan)
    assert wires == [("w1", "n1", {**impaired, "rate_bps": None}, {}), ("w2", "n2", {**impaired, "rate_bps": None}, {})]
    *start, said = emulation.relay_argv("relay.so", wires)
    assert start == [sys.executable, "-I", "-S", str(emulation.RELAY), "relay.so"]
    assert json.loads(said) == [list(wire) for wire in wires]
    far = Plan(("n1", "n2"), topology="two sites", delay_s=0.004, jitter_s=0.0002, bandwidth_bps=3e8, emulator="relay")
    assert commands.relayed_wires(far) == [
        ("wan0", "wan1", {**impaired, "rate_bps": 3e8}, {**impaired, "rate_bps": 3e8})
    ]
    star = Plan(("n1", "n2"), topology="star", delay_s=0.004, rates_bps=(1e9, 1e8), emulator="relay")
    assert [(there["rate_bps"], back) for _, _, there, back in commands.relayed_wires(star)] == [
        (1e9, {"rate_bps": 1e9}),
        (1e8, {"rate_bps": 1e8}),
    ]


def test_one_process_relays_all_wires_unless_there_are_four_cores() -> None:
    wires = commands.relayed_wires(Plan(("n1", "n2", "n3"), delay_s=0.004, emulator="relay"))
    assert commands.shared_out(wires, 1) == commands.shared_out(wires, 3) == [wires]
    assert commands.shared_out(wires, 4) == [[wires[0], wires[2]], [wires[1]]]
    assert commands.shared_out(wires, 64) == [[wire] for wire in wires]


def test_the_bucket_is_large_where_the_relay_keeps_frames_apart_and_no_queue_is_requested() -> None:
    def bucket(**asked: object) -> list[str]:
        plan = Plan(**{"hosts": ("n1", "n2"), "bandwidth_bps": 1e9, "delay_s": 0.001, "emulator": "relay", **asked})  # type: ignore[arg-type]
        lines = commands.host_shaping(plan, 1) + commands.hub_shaping(plan)
        return [line.split("burst ")[1].split("b ")[0] for line in lines]

    assert bucket() == ["625000"]
    assert bucket(topology="two sites") == ["625000", "625000"]
    assert bucket(topology="two sites", rates_bps=(1e9,)) == ["7764", "625000", "625000"]
    assert bucket(topology="star") == ["625000"] * 3
    assert bucket(queue_bytes=100_000) == bucket(delay_s=0.0) == ["7764"]


@pytest.mark.parametrize(
    ("asked", "missing", "chosen"),
    [
        ({"delay_s": 0.004}, (), "netem"),
        ({"delay_s": 0.004}, ("netem",), "relay"),
        ({"loss": 0.01}, ("netem",), "nftables"),
        ({"loss": 0.01, "loss_burst": 4.0}, ("netem",), "relay"),
        ({"loss": 0.01}, ("netem", "nftables"), "relay"),
        ({}, ("netem", "nftables", "relay"), "none"),
    ],
)
def test_the_first_back_end_that_works_here_and_fits_is_taken(
    asked: dict[str, float], missing: tuple[str, ...], chosen: str
) -> None:
    problems = {**NOTHING_WRONG, **{name: f"There is no {name}." for name in missing}}
    assert emulation.choose(Plan(HOSTS, **asked), "auto", problems) == (chosen, "")  # type: ignore[arg-type]


def test_a_back_end_that_is_requested_is_not_replaced_by_another() -> None:
    plan = Plan(HOSTS, delay_s=0.0035)
    assert emulation.choose(plan, "nftables", NOTHING_WRONG)[0] == "none"
    assert emulation.choose(plan, "netem", {**NOTHING_WRONG, "netem": "This kernel has no netem."}) == (
        "none",
        "This kernel has no netem.",
    )
