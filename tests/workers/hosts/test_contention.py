"""Other programs on the cores of ranks, by given counters of the kernel."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from workers.agent import contention
from workers.agent.contention import Contention, CoreTimes, core_times
from workers.agent.process_table import Entry


def entry(pid: int, used_s: float, processor: int, *, state: str = "R") -> Entry:
    return Entry(pid, 1, pid, state, 1, 7, used_s, 0.0, 1 << 20, 0.0, processor)


def cores(*busy_and_idle: tuple[float, float]) -> dict[int, CoreTimes]:
    return {number: CoreTimes(busy, 0.0, idle, 0.0, busy) for number, (busy, idle) in enumerate(busy_and_idle)}


def judged(
    monkeypatch: pytest.MonkeyPatch,
    affinity: Mapping[int, frozenset[int]],
    now: Mapping[int, CoreTimes],
    *processes: Entry,
    ours_s: float | None = None,
    beside_s: float = 0.0,
) -> tuple[float, float]:
    """Return seconds of the ranks' cores, and those taken, after one second."""
    monkeypatch.setattr(contention, "_affinity", lambda entry: affinity[entry.pid])
    seen = Contention()
    still = {number: CoreTimes(0.0, 0.0, 0.0, 0.0, 0.0) for number in now}
    seen.look(0.0, still, [], set(), 0.0, 0.0)
    used_s = sum(process.user_s for process in processes) if ours_s is None else ours_s
    seen.look(1.0, now, processes, {(process.pid, 7) for process in processes if process.pid < 50}, used_s, beside_s)
    return seen.cores_s, pytest.approx(seen.taken_s)  # type: ignore[return-value]


ANY = frozenset({0, 1, 2, 3})


@pytest.mark.parametrize(
    ("affinity", "now", "processes", "answer"),
    [
        pytest.param({9: {0}}, [(1, 0), (0, 1), (0, 1), (0, 1)], [(9, 0.5, 0)], (1, 0.5), id="on its core"),
        pytest.param({9: {0}}, [(0.5, 0.5), (1, 0), (1, 0), (1, 0)], [(9, 0.5, 0)], (1, 0), id="on all others"),
        pytest.param({9: ANY}, [(1, 0), (0, 1), (0, 1), (0, 1)], [(9, 0.5, 0)], (4, 0), id="it can go elsewhere"),
        pytest.param({9: ANY}, [(1, 0), (1, 0), (1, 0), (0.8, 0.2)], [(9, 0.8, 0)], (4, 3), id="no core is free"),
        pytest.param(
            {8: {0}, 9: {1}},
            [(1, 0), (0.1, 0.9), (0, 1), (0, 1)],
            [(8, 0.6, 0), (9, 0.1, 1)],
            (2, 0.4),
            id="one of two",
        ),
        pytest.param({8: {0}, 9: {1}}, [(1, 0), (1, 0), (1, 0), (1, 0)], [(8, 1, 0), (9, 1, 1)], (2, 0), id="alone"),
        pytest.param({9: {0, 1}}, [(1, 0), (0.9, 0.1), (0, 1), (0, 1)], [(9, 1.2, 1)], (2, 0.7), id="threads on two"),
        pytest.param(
            {9: {0}, 50: ANY}, [(1, 0), (1, 0), (0, 1), (0, 1)], [(9, 0.7, 0), (50, 0.3, 0)], (1, 0), id="own tools"
        ),
        pytest.param({9: {0}}, [(1, 0), (0, 1), (0, 1), (0, 1)], [(9, 0.0, 0)], (1, 1), id="the rank gets nothing"),
        pytest.param({9: {0}}, [(9, -8), (0, 1), (0, 1), (0, 1)], [(9, 0.9, 0)], (1, 0.1), id="an odd counter"),
    ],
)
def test_look_adds_what_others_took_of_the_cores_of_ranks(
    affinity: dict[int, set[int]],
    now: list[tuple[float, float]],
    processes: list[tuple[int, float, int]],
    answer: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen = {pid: frozenset(numbers) for pid, numbers in affinity.items()}
    assert judged(monkeypatch, frozen, cores(*now), *(entry(*process) for process in processes)) == answer


def test_look_subtracts_processes_that_ended_and_instruments_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    now = cores((1, 0), (1, 0))
    affinity = {9: frozenset({0, 1})}
    assert judged(monkeypatch, affinity, now, entry(9, 0.5, 0), ours_s=1.2, beside_s=0.2) == (2.0, 0.6)


def test_look_counts_the_end_of_ranks_to_their_cores_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "_affinity", lambda entry: frozenset({0}))
    seen = Contention()
    seen.look(0.0, cores((0, 0), (0, 0)), [], set(), 0.0, 0.0)
    seen.look(1.0, cores((1, 0), (0, 1)), [entry(9, 0.6, 0)], {(9, 7)}, 0.6, 0.0)
    seen.look(1.5, cores((1.5, 0), (0, 1.5)), [], set(), 0.8, 0.0)
    assert (seen.cores_s, seen.taken_s) == (1.5, pytest.approx(0.7))
    seen.look(9.0, cores((9, 0), (0, 9)), [], set(), 0.8, 0.0)
    assert seen.cores_s == 1.5


def test_look_ignores_a_rank_that_sleeps_with_other_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the wrapper of a program that binds itself."""
    affinity = {8: frozenset({0, 1}), 9: frozenset({0})}
    now = cores((1, 0), (0, 1))
    assert judged(monkeypatch, affinity, now, entry(8, 0.001, 1, state="S"), entry(9, 0.5, 0)) == (1.0, 0.5)


SMT = 8
"""CPUs of a machine of four cores: CPU 4 is the second hardware thread of core 0."""


def statistics(busy_ticks: Mapping[int, int], idle_ticks: int = 100) -> dict[str, list[str]]:
    """Lines of /proc/stat; CPUs that are not busy are idle."""
    rows = {f"cpu{cpu}": busy_ticks.get(cpu, 0) for cpu in range(SMT)}
    return {name: [str(busy), "0", "0", str(idle_ticks - busy), *"000000"] for name, busy in rows.items()}


@pytest.mark.parametrize(
    ("foreign", "taken_s"),
    [
        pytest.param({0: 100, 1: 100, 6: 100, 7: 100}, 0.0, id="outside of the cpuset"),
        pytest.param({4: 100, 5: 100}, 0.0, id="hardware threads of its cores that are outside"),
        pytest.param({2: 100, 3: 100}, 0.8, id="inside"),
        pytest.param({2: 100, 4: 100}, 0.2, id="inside and outside"),
    ],
)
def test_look_judges_the_cpuset_of_a_worker_alone(
    foreign: dict[int, int], taken_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cpuset is one hardware thread of two of four cores."""
    cpuset = frozenset({2, 3})
    monkeypatch.setattr(contention.os, "sched_getaffinity", lambda pid: cpuset)
    ours_s = 1 - taken_s / 2
    busy = {**foreign, 2: 100, 3: 100}
    ours = entry(8, ours_s, 2), entry(9, ours_s, 3)
    answer = judged(monkeypatch, {8: cpuset, 9: cpuset}, core_times(statistics(busy)), *ours)
    assert answer == (2.0, taken_s)


def test_look_survives_cores_that_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contention, "_affinity", lambda entry: frozenset({0, 1}))
    seen = Contention()
    seen.look(0.0, cores((0, 0), (0, 0)), [], set(), 0.0, 0.0)
    seen.look(1.0, cores((1, 0), (1, 0)), [entry(9, 1.0, 0)], {(9, 7)}, 1.0, 0.0)
    assert (seen.cores_s, seen.taken_s) == (2.0, pytest.approx(1.0))
    seen.look(2.0, cores((2, 0)), [], set(), 1.5, 0.0)  # the rank has ended, and core 1 is offline
    assert (seen.cores_s, seen.taken_s) == (3.0, pytest.approx(1.5))
    seen.look(3.0, cores((3, 0), (1.1, 0)), [entry(10, 1.0, 0)], {(10, 7)}, 2.5, 0.0)  # it is back: known from now on
    assert seen.cores_s == 3.0
    seen.look(4.0, cores((4, 0), (2.1, 0)), [entry(10, 2.0, 0)], {(10, 7)}, 3.5, 0.0)
    assert (seen.cores_s, seen.taken_s) == (5.0, pytest.approx(2.5))


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param((-4, 0), id="programs"),
        pytest.param((1, -6), id="idle"),
    ],
)
def test_look_takes_nothing_from_counters_that_go_backwards(
    odd: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rank alone on core 0, then beside other load (proc_stat(5))."""
    monkeypatch.setattr(contention, "_affinity", lambda entry: frozenset({0}))
    seen = Contention()
    seen.look(0.0, cores((0, 0), (0, 0)), [], set(), 0.0, 0.0)
    seen.look(1.0, cores(odd, (1, 1)), [entry(9, 1.0, 0)], {(9, 7)}, 1.0, 0.0)
    assert seen.taken_s == pytest.approx(0.0)
    seen.look(2.0, cores((odd[0] + 1, odd[1]), (1, 1)), [entry(9, 1.5, 0)], {(9, 7)}, 1.5, 0.0)
    assert seen.taken_s == pytest.approx(0.5)


def test_core_times_takes_the_whole_machine_if_a_container_numbers_cores_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["100", "0", "50", "200", "10", "5", "5", "30", "0", "0"]
    monkeypatch.setattr(contention.os, "sched_getaffinity", lambda pid: {4, 5})
    assert set(core_times({"cpu": values, "cpu4": values, "cpu5": values, "cpu6": values})) == {4, 5}
    (whole,) = core_times({"cpu": values, "cpu0": values, "cpu1": values}).items()
    assert whole == (-1, pytest.approx(CoreTimes(1.8, 0.1, 2.1, 0.3, 1.0)))
