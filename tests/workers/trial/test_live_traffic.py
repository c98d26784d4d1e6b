"""What a running trial shows of its traffic."""

from pathlib import Path

import pytest

from tests.analysis.capture_files import Frame, enhanced, interface, section
from tests.analysis.frames import ethernet, ipv4, tcp
from workers.trial.live_traffic import LiveTraffic

HOSTS = [{"tx_pps": 10.0, "tx_Bps": 700.0}, {"tx_pps": 5.0, "tx_Bps": 300.0}]


def packets(count: int) -> bytes:
    frames = (Frame.whole(1_700_000_000_000_000_000 + i, ethernet(ipv4(tcp(seq=i)))) for i in range(count))
    return b"".join(enhanced(frame) for frame in frames)


def test_it_decodes_a_growing_capture_as_it_comes(tmp_path: Path) -> None:
    file = tmp_path / "growing.pcapng"
    file.write_bytes(section() + interface())
    with LiveTraffic(file) as traffic, file.open("ab") as growing:
        whole = packets(50)
        growing.write(whole[:-7])  # the last packet is half written
        growing.flush()
        seen = traffic.progress(HOSTS)
        assert (seen["packets"], seen["from"]) == (49, "capture")
        growing.write(whole[-7:])
        growing.flush()
        seen = traffic.progress(HOSTS)
        assert seen["packets"] == 50
        assert seen["pps"] > 0
        assert seen["Bps"] / seen["pps"] == pytest.approx(60)  # Ethernet's shortest frame


def test_it_asks_a_recorder_that_tallies_for_its_totals() -> None:
    totals = iter([(100, 9000), (300, 29_000)])
    with LiveTraffic(tally=lambda: next(totals)) as traffic:
        assert traffic.progress(HOSTS)["packets"] == 100
        seen = traffic.progress(HOSTS)
    assert (seen["packets"], seen["from"]) == (300, "capture")
    assert seen["Bps"] / seen["pps"] == pytest.approx(100)


def test_it_shows_the_counters_of_the_interfaces_without_a_capture() -> None:
    with LiveTraffic(None) as traffic:
        assert traffic.progress(HOSTS) == {"packets": None, "pps": 15.0, "Bps": 1000.0, "from": "interfaces"}


def test_it_leaves_a_capture_that_cannot_be_followed_for_the_counters(tmp_path: Path) -> None:
    file = tmp_path / "odd.pcapng"
    file.write_bytes(b"no capture at all, whatever its name says")
    with LiveTraffic(file) as traffic:
        assert traffic.progress(HOSTS)["from"] == "interfaces"
