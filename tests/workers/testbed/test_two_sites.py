"""Every frame of two sites is recorded once."""

from __future__ import annotations

from pathlib import Path

from tests.workers.clusters.trials import PlainLink, capinfos, output_of
from workers import launchers

FAR_SITE = "site-2"


def test_what_stays_within_the_second_site_is_recorded_there_and_nothing_twice(tmp_path: Path) -> None:
    link = PlainLink(topology="two sites", bandwidth_bps=1e8)
    with launchers.get("testbed").open(host_count=4, link=link) as session:
        assert session.recorded_hosts == (None, FAR_SITE)
        for source, target in (("n1", "n2"), ("n3", "n4"), ("n1", "n3")):  # now all addresses are known
            assert "1 received" in output_of(session, "ping", "-c", "1", "-W", "5", target, host=source)
        with session.capture() as near, session.capture(FAR_SITE) as far:
            before = session.sample()
            for source, target, count in (("n1", "n2", 3), ("n3", "n4", 5), ("n1", "n3", 7)):
                output_of(session, "ping", "-c", str(count), "-i", "0.01", "-W", "5", target, host=source)
            counted = (near.stop().captured, far.stop().captured)
            after = session.sample()
            paths = [capture.save(tmp_path / f"{k}.pcapng.zst") for k, capture in enumerate((near, far))]
        # Conservation: every frame crosses the interfaces of two hosts and is in exactly one recording.
        ports = sum(
            a.rx_packets + a.tx_packets - b.rx_packets - b.tx_packets
            for a, b in zip(after.hosts, before.hosts, strict=True)
        )
    assert counted == (2 * (3 + 7), 2 * 5)
    assert [capinfos(path)[0] for path in paths] == list(counted)
    assert ports / 2 == sum(counted)


def test_two_hosts_need_one_recording() -> None:
    with launchers.get("testbed").open(host_count=2, link=PlainLink(topology="two sites")) as session:
        assert session.recorded_hosts == (None,)
        assert session.blind_spot == ""
