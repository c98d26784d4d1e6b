"""Links built for real and measured for real: what was asked for is found, and what is wrong is found too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.workers.clusters.trials import PlainLink, output_of
from workers import launchers
from workers.launchers import testbed
from workers.testbed.certificate import Certificate, certify, paths
from workers.testbed.plan import Plan
from workers.testbed.probe import emulators

WIDE_AREA = {"topology": "two sites", "bandwidth_bps": 3e8}


def opened(hosts: int = 2, **link: object) -> testbed.TestbedSession:
    """A test-bed with this link."""
    session = launchers.get("testbed").open(host_count=hosts, link=PlainLink(**link))  # type: ignore[arg-type]
    assert isinstance(session, testbed.TestbedSession)
    return session


def achieved(certificate: Certificate, quantity: str) -> list[float]:
    """One quantity in every direction."""
    return [row.achieved for row in certificate.rows if row.quantity == quantity and row.achieved is not None]


@pytest.mark.parametrize("delay_s", [0.0, 0.004, 0.016])
def test_the_wide_area_link_is_what_was_asked_for(delay_s: float) -> None:
    with opened(**WIDE_AREA, delay_s=delay_s) as session:
        certificate = session.certify()
        assert certificate is not None
        assert certificate.reasons == ()
        assert achieved(certificate, "bandwidth") == pytest.approx([3e8, 3e8], rel=0.05)
        assert achieved(certificate, "delay") == pytest.approx([delay_s] * 2, rel=0.05, abs=0.3e-3)
        assert session.certify() is certificate


def test_wirefilter_makes_the_same_link_to_a_millisecond() -> None:
    if reason := emulators()["wirefilter"]:
        pytest.skip(reason)
    with opened(**WIDE_AREA, delay_s=0.016, loss=0.02, emulator="wirefilter") as session:
        certificate = session.certify()
        assert certificate is not None
        # On a busy machine its rate and its milliseconds slip; what it loses and lets through must not.
        assert [row for row in certificate.rows if row.quantity in ("loss", "path MTU") and not row.kept] == []
        assert achieved(certificate, "delay") == pytest.approx([0.016] * 2, abs=1.5e-3)
        assert "vde2 wirefilter" in session.facts["back_end"]


@pytest.mark.parametrize("emulator", ["netem", "relay"])
def test_these_back_ends_make_the_same_link(emulator: str) -> None:
    if reason := emulators()[emulator]:
        pytest.skip(reason)
    with opened(**WIDE_AREA, delay_s=0.008, loss=0.02, emulator=emulator) as session:
        certificate = session.certify()
        assert certificate is not None
        assert certificate.reasons == ()
        assert emulator in session.facts["back_end"]


def test_jitter_in_the_shape_asked_for_reaches_the_other_side() -> None:
    with opened(**WIDE_AREA, delay_s=0.008, jitter_s=0.001, distribution="normal") as session:
        certificate = session.certify()
        assert certificate is not None
        assert certificate.reasons == ()
        assert achieved(certificate, "jitter") == pytest.approx([0.001] * 2, abs=0.0003)


def test_a_link_that_is_not_as_asked_is_found_out() -> None:
    with opened(**WIDE_AREA, delay_s=0.002) as session:
        pretended = dataclasses.replace(session.plan, delay_s=0.004, bandwidth_bps=1e8)
        certificate = certify(session.keeper, pretended)
        assert certificate is not None
        assert not certificate.kept
        assert certificate.attempts == 3
        text = " ".join(certificate.reasons)
        assert "the delay from n1 to n2 is 2." in text
        assert "asked was 100 Mbit/s" in text


def test_one_host_has_no_link_to_certify() -> None:
    with opened(hosts=1) as session:
        assert session.certify() is None


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(("n1", "n2", "n3", "n4")), [(1, 2)]),
        (Plan(("n1", "n2", "n3", "n4", "n5"), topology="two sites"), [(1, 4)]),
        (Plan(("n1", "n2", "n3", "n4"), topology="star", rates_bps=(1e9, 1e8, 1e7)), [(1, 2), (1, 3)]),
    ],
)
def test_one_pair_stands_for_all_hosts_with_equal_ports(plan: Plan, expected: list[tuple[int, int]]) -> None:
    assert paths(plan) == expected


def test_tcp_settings_hold_inside_the_hosts_only() -> None:
    with opened(congestion_control="reno", tcp_buffer_bytes=65536) as session:
        told = output_of(session, "sysctl", "-n", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", host="n2")
        assert told.split() == ["reno", "4096", "65536", "65536"]
        assert "65536\t65536" not in output_of(session, "sysctl", "-n", "net.ipv4.tcp_rmem")


def test_a_dead_emulator_and_changed_shaping_are_noticed(eventually: Callable[..., object]) -> None:
    with opened(**WIDE_AREA, delay_s=0.002) as session:
        assert session.network_problems(thorough=True) == []
        output_of(session, "tc", "qdisc", "replace", "dev", "wan0", "root", "pfifo")
        assert session.network_problems(thorough=True) == ["The shaping of hub is not as it was built."]
        (emulator,) = [line.split()[0] for line in processes(session) if "relay.py" in line]
        output_of(session, "/bin/kill", "-9", emulator)
        eventually(session.network_problems)
        assert session.network_problems() == [
            "The network emulator relay (killed by signal 9) ended while the fabric was in use."
        ]


def processes(session: testbed.TestbedSession) -> list[str]:
    """`pid command` of everything in the fabric."""
    return output_of(session, "ps", "-e", "-o", "pid=,args=").splitlines()
