"""A disturbed trial says so in its trust; its instruments do not count."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from experiments.models import Project, State, Trial
from tests.workers.clusters.trials import PlainLink, run
from tests.workers.trial.pinned_loops import PINNED, run_beside_a_loop
from workers import launchers
from workers.hosts.sampling import HostSample, MachineSample, Sample
from workers.launchers import Job, Session
from workers.trial.disturbances import disturbances, missing_cores
from workers.trial.rank_usage import RankUsage, read_rank_usage

STILL = MachineSample(0.0, 0.0, 0.0, 1 << 30, 1, 0.0, cpus=2, cores=2)
BUSY = "while True: pass"


def after(second: float, **changes: Any) -> Sample:
    """A sample of the machine n1 with these counters."""
    return Sample(int(second * 1e9), replace(STILL, **changes), (HostSample("n1", 0.0, 0.0, 0, 0),))


def rank(number: int, host: str, cpu_s: float) -> RankUsage:
    return RankUsage(number, host, cpu_s, 0.0, 1000, 10, 1, 0, None, 0, 1, 0.0)


def reported(*samples: Sample, ranks: tuple[RankUsage, ...] = (), own_machines: bool = False) -> str:
    return "; ".join(disturbances(samples, ranks, foreign_share=0.1, own_machines=own_machines))


def test_it_reports_what_others_took_while_no_core_was_free() -> None:
    busy = after(10, cpu_user_s=20.0, cpu_ours_s=11.2)
    assert reported(after(0), busy) == "other programs took 44\u202f% of this trial's cores while none was free"
    stolen = after(10, cpu_user_s=11.2, cpu_stolen_s=8.8, cpu_ours_s=11.2)
    assert "other programs took 44" in reported(after(0), stolen)


@pytest.mark.parametrize(
    "course",
    [
        pytest.param((after(10, cpu_user_s=14.4, cpu_idle_s=5.6, cpu_ours_s=10.0),), id="free cores"),
        pytest.param((after(10, cpu_user_s=20.0, cpu_ours_s=18.5),), id="little"),
        pytest.param((), id="one sample"),
        pytest.param(
            (after(10, cpu_user_s=12.0, cpu_system_s=8.0, cpu_interrupts_s=6.0, cpu_ours_s=13.5),), id="interrupts"
        ),
        pytest.param(
            (after(1, cpu_user_s=2.0, cpu_ours_s=1.0), after(10, cpu_user_s=11.0, cpu_idle_s=9.0, cpu_ours_s=6.0)),
            id="one loaded second, 1 of 20 core-seconds",
        ),
        pytest.param(
            (after(5, cpu_user_s=3.0, cpu_idle_s=7.0), after(10, cpu_user_s=13.0, cpu_idle_s=7.0, cpu_ours_s=10.0)),
            id="load beside a free core, then the ranks alone",
        ),
    ],
)
def test_disturbances_ignores_load_that_costs_the_trial_nothing(course: tuple[Sample, ...]) -> None:
    assert reported(after(0), *course) == ""


def test_ranks_and_other_programs_never_take_more_than_the_machine() -> None:
    """The agent's total lacks ranks that have ended; their own reports do not."""
    course = after(0), after(10, cpu_user_s=20.0, cpu_ours_s=0.5)
    ranks = rank(0, "n1", 8.2), rank(1, "n2", 8.2)
    assert reported(*course, ranks=ranks).startswith("other programs took 18")
    assert reported(*course, ranks=(*ranks, rank(2, "n1", 2.0))) == ""


def test_ranks_that_a_daemon_started_on_another_host_are_no_foreign_load() -> None:
    whole = MachineSample(16.0, 0.0, 0.0, 1 << 30, 1, 0.0, cpu_ours_s=15.5, cpus=2)
    first, last = after(0), replace(after(8), machine=whole, further={"n2": replace(whole, cpu_ours_s=0.2)})
    begun = replace(first, further={"n2": STILL})
    ranks = rank(0, "n1", 15.4), rank(1, "n2", 15.0)
    assert reported(begun, last, ranks=ranks, own_machines=True) == ""
    assert reported(begun, last, ranks=ranks[:1], own_machines=True).endswith(
        "of this trial's cores on n2 while none was free"
    )


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({"swapped_in_bytes": 20_000_000}, "20\u202fMB were read back from swap"),
        ({"throttle_events": 3}, "the processor slowed down 3 times because of heat"),
        ({"throttled_s": 0.5}, "the limit of the control group held programs for 500\u202fms"),
        ({"realtime_offset_ns": 70_000_000}, "the clock was set while the trial ran, by 70\u202fms"),
        ({"realtime_offset_ns": -3_600_000_000_000}, "the clock was set while the trial ran, by 3"),
        ({"realtime_offset_ns": 5_000_000}, ""),
        ({"swapped_in_bytes": 4096}, ""),
    ],
)
def test_it_reports_swapping_throttling_and_a_clock_that_was_set(counters: dict[str, float], words: str) -> None:
    said = reported(after(0), after(1, cpu_idle_s=2.0, **counters))
    assert said.startswith(words) if words else said == ""


def test_disturbances_judges_the_cores_of_the_ranks() -> None:
    """The machine's other cores are idle, or taken by others."""
    idle = {"cpu_user_s": 20.0, "cpu_idle_s": 60.0, "cpu_ours_s": 10.0, "cpus": 8}
    seen = reported(after(0, cpus=8), after(10, **idle, rank_cores_s=20.0, rank_cores_taken_s=9.0))
    assert seen == "other programs took 45\u202f% of this trial's cores while none was free"
    taken = {"cpu_user_s": 80.0, "cpu_ours_s": 10.0, "cpus": 8}
    assert reported(after(0, cpus=8), after(10, **taken, rank_cores_s=20.0, rank_cores_taken_s=0.5)) == ""


def test_disturbances_of_unseen_ranks_count_no_core_that_the_trial_may_not_use() -> None:
    pinned = [
        after(second, cpu_user_s=2.0 * second, cpu_idle_s=6.0 * second, cpu_ours_s=second) for second in range(11)
    ]
    assert reported(*pinned) == "other programs took 50\u202f% of this trial's cores while none was free"


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"cpu_idle_s": -3.0}, id="idle time goes back"),
        pytest.param({"cpu_user_s": 20.0}, id="more than the cores can do"),
        pytest.param({"cpu_user_s": -20.0}, id="user time goes back"),
    ],
)
def test_disturbances_takes_no_odd_counter_for_a_program(odd: dict[str, float]) -> None:
    course = []
    for second in range(11):
        counters = {"cpu_user_s": 30.0 + second, "cpu_idle_s": 30.0 + second, "cpu_ours_s": float(second)}
        course.append(after(second, **{k: v + (odd.get(k, 0.0) if second >= 5 else 0.0) for k, v in counters.items()}))
    assert reported(*course) == ""


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ({"cpus": 4}, {"cpus": 2}, "from 4 CPUs to 2 CPUs"),
        ({"cpus": 2}, {"cpus": 4}, "from 2 CPUs to 4 CPUs"),
        (
            {"cpus": 3, "cpu_numbers": "0-1, 5"},
            {"cpus": 3, "cpu_numbers": "2-3, 5"},
            "from 3 CPUs (0-1, 5) to 3 CPUs (2-3, 5)",
        ),
    ],
)
def test_disturbances_reports_cores_that_changed(first: dict[str, Any], last: dict[str, Any], words: str) -> None:
    idle = {"cpu_idle_s": 8.0}
    assert (
        reported(after(0, **first), after(1, **first), after(2, **last, **idle))
        == f"the CPUs changed during the trial, {words}"
    )
    back = (after(0, **first), after(1, **last), after(2, **first, **idle))
    assert reported(*back) == f"the CPUs changed during the trial, {words}"
    assert reported(after(0, **first), after(2, **first, **idle)) == ""


def test_it_reports_machines_with_fewer_cores_than_threads() -> None:
    ranks = [rank(number, "n1", 1.0) for number in range(2)]
    assert missing_cores([after(0)], ranks, threads=1) == ()
    assert missing_cores([after(0)], ranks, threads=2) == ("2 ranks with 2 threads each share 2 cores of n1",)
    threads_of_one_core = after(0, cpus=4, cores=2)
    assert missing_cores([threads_of_one_core], [*ranks, *ranks], threads=1) != ()
    assert missing_cores([threads_of_one_core], ranks, threads=1) == ()
    assert missing_cores([threads_of_one_core], [*ranks, *ranks], threads=1, by_hardware_threads=True) == ()
    # One machine has one name, whatever its ranks call it.
    assert missing_cores([after(0)], [rank(0, "localhost.localdomain", 1.0)], threads=4) != ()


@pytest.fixture
def foreign_load() -> Iterator[None]:
    """Three programs that never pause, on two cores."""
    programs = [subprocess.Popen(["/usr/bin/python3", "-c", BUSY]) for _ in range(os.cpu_count() or 2)]
    yield
    for program in programs:
        program.kill()
        program.wait()


SERIAL = {"program": ["/usr/bin/python3", "-c", "sum(i for i in range(20_000_000))"], "extract": []}


def test_trial_under_foreign_load_is_not_trusted(
    run_all: Callable[..., list[Trial]], foreign_load: None, settings: Any
) -> None:
    settings.FOREIGN_CPU_PERCENT = 10
    (trial,) = run_all(workload="command", parameters=SERIAL, sweep={"hosts": [1]}, disturbed="keep")
    assert trial.state == State.FINISHED, trial.message
    assert trial.trust == "degraded"
    assert "other programs took" in " ".join(trial.trust_reasons)


def test_trial_under_foreign_load_is_repeated_once(
    run_all: Callable[..., list[Trial]], foreign_load: None, settings: Any
) -> None:
    settings.FOREIGN_CPU_PERCENT = 10
    trial, repeat = run_all(workload="command", parameters=SERIAL, sweep={"hosts": [1]})
    assert (trial.state, trial.attempt, bool(Trial.repeats_among([trial]))) == (State.FINISHED, 1, False)
    assert (repeat.state, repeat.attempt, bool(Trial.repeats_among([repeat]))) == (State.FINISHED, 2, True)
    assert all(item.conditions["disturbances"] for item in (trial, repeat))


def test_a_project_without_quota_for_waiting_trials_gets_no_repeat(
    run_all: Callable[..., list[Trial]], foreign_load: None, settings: Any
) -> None:
    settings.FOREIGN_CPU_PERCENT = 10

    def use_up() -> None:
        Project.objects.update(most_queued_trials=1)

    first, second, repeat = run_all(
        workload="command", parameters=SERIAL, sweep={"hosts": [1]}, repetitions=2, meanwhile=use_up
    )
    # The first ends while the second waits: no more trials may wait then.
    assert [item.attempt for item in (first, second, repeat)] == [1, 1, 2]
    assert repeat.repetition == second.repetition


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_program_on_the_core_of_a_rank_is_seen_whatever_other_cores_do(
    is_shared: bool, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    """Bounds that hold beside any load: what the loop used, what the rank left."""
    core, other = sorted(os.sched_getaffinity(0))[:2]
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        job = make_job(session, "/usr/bin/python3", "-c", PINNED.format(core=core, seconds=4))
        first, last, used_s, elapsed_s = run_beside_a_loop(session, job, core if is_shared else other, eventually)
    (usage,) = read_rank_usage(job.report_dir)
    cores_s, taken_s = last.rank_cores_s - first.rank_cores_s, last.rank_cores_taken_s - first.rank_cores_taken_s
    assert 3.0 < cores_s < 1.75 * elapsed_s, "the rank's core alone, but for its start, when it was not pinned"
    assert taken_s <= cores_s - usage.cpu_s + 0.05 * cores_s + 0.5  # of its start, when it was not pinned
    if is_shared:
        assert taken_s >= used_s - (elapsed_s - 4) - 0.05 * cores_s


def test_the_trial_and_its_instruments_are_not_foreign(testbed: Session, make_job: Callable[..., Job]) -> None:
    """Programs that end between two samples count as the trial's."""
    talk = "from mpi4py import MPI\nw = MPI.COMM_WORLD\nfor _ in range(500): w.allgather(bytes(20_000))"
    job = make_job(testbed, "/usr/bin/python3", "-c", talk)
    before = testbed.sample().machine
    with testbed.capture() as capture:
        status, _, stderr = run(testbed, job)
        capture.stop()
    assert status == 0, stderr
    after = testbed.sample().machine
    of_ranks_s = sum(usage.cpu_s for usage in read_rank_usage(job.report_dir))
    assert after.cpu_ours_s - before.cpu_ours_s > of_ranks_s > 0.2


@pytest.fixture
def one_cpu() -> Iterator[int]:
    """A worker that may use one CPU of this machine."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(every)})
    yield max(every)
    os.sched_setaffinity(0, every)


def test_the_machine_of_a_worker_is_its_own_cpus(one_cpu: int, eventually: Callable[..., object]) -> None:
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        (machine,) = session.machines()
        assert (session.facts["cores"], machine.allowed) == (1, {one_cpu})
        samples = [session.sample()]
        eventually(lambda: samples.append(session.sample()) or samples[-1].monotonic_ns - samples[0].monotonic_ns > 2e9)
    first, last = samples[0].machine, samples[-1].machine
    assert (last.cpus, last.cores, last.cpu_numbers) == (1, 1, str(one_cpu))
    length_s = (samples[-1].monotonic_ns - samples[0].monotonic_ns) / 1e9
    names = ("cpu_user_s", "cpu_system_s", "cpu_idle_s", "cpu_stolen_s")
    assert sum(getattr(last, name) - getattr(first, name) for name in names) == pytest.approx(length_s, rel=0.2)
