"""Live view of a running trial: its traffic now, its rates and ranks so far."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.analysis.capture_files import Frame, enhanced, interface, section
from tests.analysis.frames import ethernet, ipv4, tcp
from workers.hosts.sampling import HostSample
from workers.trial.live import MOST, LiveHistory, LiveTraffic

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


def host(name: str, **ranks: float) -> HostSample:
    return HostSample(name, 0.0, 0.0, 0, 0, ranks={rank.removeprefix("r"): cpu_s for rank, cpu_s in ranks.items()})


def test_the_charts_keep_every_look_of_a_short_run() -> None:
    history = LiveHistory()
    for second in (1, 2, 3):
        history.add(second, {"Bps": 1000.0 * second, "pps": None}, [])
    assert history.columns()["history"] == {"t_s": [1, 2, 3], "Bps": [1000, 2000, 3000], "pps": [0, 0, 0]}


def test_the_charts_of_a_long_run_have_means_over_equal_times_to_its_end() -> None:
    history = LiveHistory()
    looks = 10 * MOST
    for second in range(1, looks + 1):
        history.add(second, {"Bps": 500.0, "pps": float(second)}, [])
    view = history.columns()["history"]
    times = view["t_s"]
    assert MOST / 4 <= len(times) < MOST
    steps = {later - earlier for earlier, later in pairwise(times)}
    assert steps == {times[0]}
    assert looks - times[-1] < times[0]
    assert set(view["Bps"]) == {500}
    assert view["pps"][0] == sum(range(1, int(times[0]) + 1)) / times[0]


def test_what_an_ended_rank_used_stays() -> None:
    history = LiveHistory()
    history.add(1, {}, [host("n02", r10=0.5), host("n01", r2=0.25)])
    history.add(2, {}, [host("n02", r10=1.5), host("n01")])
    assert history.columns()["ranks"] == [[2, "n01", 0.25], [10, "n02", 1.5]]
