"""The virtual network: names, addresses, and frames of wire and capture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.clusters.trials import PlainLink, capinfos, frame_lengths, output_of, run
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.launchers import Job, Session

MakeJob = Callable[..., Job]
# Rank 1 sends 4 MB to rank 0 over a plain socket: large writes, so that any offload would show.
TRANSFER = """
import os, socket, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    server = socket.create_server(("10.77.0.1", 5000))
    peer, _ = server.accept()
    while peer.recv(1 << 20):
        pass
else:
    while True:
        try:
            peer = socket.create_connection(("n1", 5000))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    peer.sendall(bytes(4_000_000))
"""

# A socket that names its interface takes every address for a neighbour. The kernel would wait 3 s for each.
STRANGERS = """
import socket, subprocess
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
for number in range(200):
    sender.sendto(b"", (f"10.99.0.{number}", 9))
subprocess.run(["ip", "neigh", "show"])
"""


def test_each_host_knows_its_own_name_and_every_other(testbed: Session) -> None:
    for number, host in enumerate(testbed.hosts, start=1):
        assert output_of(testbed, "hostname", host=host).strip() == f"n{number}"
        assert output_of(testbed, "getent", "hosts", host, host="n1").split() == [f"10.77.0.{number}", host]


def test_a_host_reaches_the_others_and_nothing_else(testbed: Session) -> None:
    routes = output_of(testbed, "ip", "route", host="n2")
    assert "default" not in routes
    assert "10.77.0.0/24 dev eth0" in routes
    assert "inet6" not in output_of(testbed, "ip", "address", host="n2")
    assert "1 received" in output_of(testbed, "ping", "-c", "1", "-W", "5", "n4", host="n2")


def test_a_host_asks_for_no_neighbour_so_that_none_occupies_the_table_of_the_machine(testbed: Session) -> None:
    words = output_of(testbed, "/usr/bin/python3", "-c", STRANGERS, host="n2").split()
    assert words.count("PERMANENT") == len(testbed.hosts) - 1
    assert "FAILED" in words
    assert "INCOMPLETE" not in words


@pytest.mark.parametrize("interface", ["eth0", "n2"])
def test_both_ends_of_every_link_are_without_segmentation_offload(testbed: Session, interface: str) -> None:
    host = "n2" if interface == "eth0" else None
    features = output_of(testbed, "ethtool", "-k", interface, host=host)
    assert "tcp-segmentation-offload: off" in features
    assert "generic-segmentation-offload: off" in features
    (link,) = json.loads(output_of(testbed, "ip", "-json", "-details", "link", "show", interface, host=host))
    assert link["gro_max_size"] == 1 or "generic-receive-offload: off" in features


def test_no_frame_is_longer_than_the_wire_allows_and_all_are_counted(
    testbed: Session, make_job: MakeJob, tmp_path: Path
) -> None:
    with testbed.capture() as capture:
        before = testbed.sample()
        status, _, stderr = run(testbed, make_job(testbed, "/usr/bin/python3", "-c", TRANSFER, hosts=2))
        report = capture.stop()
        after = testbed.sample()
        path = capture.save(tmp_path / "capture.pcapng.zst")
    assert status == 0, stderr
    lengths = frame_lengths(path)
    assert max(lengths) == 1514
    assert lengths.count(1514) > 4_000_000 // 1500
    # Conservation: a frame between two hosts crosses the bridge once and two interfaces of hosts.
    ports = [
        (a.rx_packets + a.tx_packets - b.rx_packets - b.tx_packets)
        for a, b in zip(after.hosts, before.hosts, strict=True)
    ]
    assert report.captured == len(lengths)
    arrivals_of_broadcasts = sum(ports) - 2 * report.captured  # an ARP question leaves one host and reaches three
    assert 0 <= arrivals_of_broadcasts <= 2 * 4
    assert capinfos(path) == (report.captured, sum(lengths))


def test_ports_count_the_bytes_that_the_capture_holds(testbed: Session, make_job: MakeJob, tmp_path: Path) -> None:
    run(testbed, make_job(testbed, "true"))  # now every host knows every address: no broadcast disturbs the sum
    with testbed.capture() as capture:
        before = testbed.sample()
        run(testbed, make_job(testbed, "/usr/bin/python3", "-c", TRANSFER, hosts=2))
        capture.stop()
        after = testbed.sample()
        path = capture.save(tmp_path / "capture.pcapng.zst")
    pairs = list(zip(after.hosts, before.hosts, strict=True))
    frames = sum(a.rx_packets + a.tx_packets - b.rx_packets - b.tx_packets for a, b in pairs)
    octets = sum(a.rx_bytes + a.tx_bytes - b.rx_bytes - b.tx_bytes for a, b in pairs)
    assert (frames / 2, octets / 2) == capinfos(path)


@pytest.mark.parametrize(("bandwidth_bps", "mtu"), [(1e8, 9000), (None, 1400)])
def test_mtu_and_rate_are_as_asked_on_every_interface(bandwidth_bps: float | None, mtu: int) -> None:
    link = PlainLink(bandwidth_bps=bandwidth_bps, mtu=mtu)
    with launchers.get("testbed").open(host_count=2, link=link) as session:
        for interface, host in [("eth0", "n1"), ("eth0", "n2"), ("n1", None), ("br0", None)]:
            assert f"mtu {mtu} " in output_of(session, "ip", "link", "show", interface, host=host)
        queueing = output_of(session, "tc", "qdisc", "show", "dev", "eth0", host="n2")
        assert ("tbf" in queueing and "rate 100Mbit" in queueing) == (bandwidth_bps is not None)
        reached = output_of(session, "ping", "-c", "1", "-W", "5", "-M", "do", "-s", str(mtu - 28), "n2", host="n1")
        assert "1 received" in reached
        assert session.facts["oversubscription"].startswith("2 virtual hosts on ")
        assert session.facts["link"] == {"bandwidth_bps": bandwidth_bps, "mtu": mtu}


def test_a_size_or_link_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(ClusterUnavailable, match="cannot delay"):
        launchers.get("testbed").open(host_count=2, link=PlainLink(delay_s=0.0105, emulator="nftables"))
    with pytest.raises(ClusterUnavailable, match="1 to 250 hosts, not 251"):
        launchers.get("testbed").open(host_count=251, link=PlainLink())
    with pytest.raises(ClusterUnavailable, match="one host, not 2"):
        launchers.get("local").open(host_count=2, link=PlainLink())
