"""The charts of a running trial have few points, however long it takes, and keep what its ranks used."""

from itertools import pairwise

from workers.hosts.sampling import HostSample
from workers.trial.live_history import MOST, LiveHistory


def host(name: str, **ranks: float) -> HostSample:
    return HostSample(name, 0.0, 0.0, 0, 0, ranks={rank.removeprefix("r"): cpu_s for rank, cpu_s in ranks.items()})


def test_it_keeps_every_look_of_a_short_run() -> None:
    history = LiveHistory()
    for second in (1, 2, 3):
        history.add(second, {"Bps": 1000.0 * second, "pps": None}, [])
    assert history.shown()["history"] == {"t_s": [1, 2, 3], "Bps": [1000, 2000, 3000], "pps": [0, 0, 0]}


def test_a_long_run_has_means_over_equal_times_to_its_end() -> None:
    history = LiveHistory()
    looks = 10 * MOST
    for second in range(1, looks + 1):
        history.add(second, {"Bps": 500.0, "pps": float(second)}, [])
    shown = history.shown()["history"]
    times = shown["t_s"]
    assert MOST / 4 <= len(times) < MOST
    steps = {later - earlier for earlier, later in pairwise(times)}
    assert steps == {times[0]}
    assert looks - times[-1] < times[0]
    assert set(shown["Bps"]) == {500}
    assert shown["pps"][0] == sum(range(1, int(times[0]) + 1)) / times[0]


def test_what_an_ended_rank_used_stays() -> None:
    history = LiveHistory()
    history.add(1, {}, [host("n02", r10=0.5), host("n01", r2=0.25)])
    history.add(2, {}, [host("n02", r10=1.5), host("n01")])
    assert history.shown()["ranks"] == [[2, "n01", 0.25], [10, "n02", 1.5]]
