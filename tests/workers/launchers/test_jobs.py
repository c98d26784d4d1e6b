"""Jobs on the test-bed: their hosts, their ends, and no leftovers."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.clusters.trials import PlainLink, output_of, run
from workers import launchers
from workers.errors import LaunchFailed
from workers.launchers import Job, Session
from workers.trial.rank_usage import read_rank_usage

MakeJob = Callable[..., Job]
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('up', 'w'); time.sleep(300)"


def sleepers(session: Session, seconds: str) -> list[str]:
    """Processes of the test-bed with this argument."""
    listing = output_of(session, "ps", "-e", "-o", "args=").splitlines()
    return [line for line in listing if line.startswith(f"sleep {seconds}")]


def test_every_rank_runs_on_its_own_host(testbed: Session, make_job: MakeJob) -> None:
    status, stdout, stderr = run(testbed, make_job(testbed, "hostname"))
    assert status == 0, stderr
    assert sorted(stdout.split()) == ["n1", "n2", "n3", "n4"]


def test_ranks_fill_the_hosts_in_order_and_report_what_they_used(testbed: Session, make_job: MakeJob) -> None:
    job = make_job(testbed, "python3", "-c", "sum(range(3_000_000))", hosts=2, ranks_per_host=2)
    status, _, stderr = run(testbed, job)
    usages = read_rank_usage(job.report_dir)
    assert status == 0, stderr
    assert [(usage.rank, usage.host) for usage in usages] == [(0, "n1"), (1, "n1"), (2, "n2"), (3, "n2")]
    assert all(usage.cpu_s > 0.01 and usage.exit_status == 0 and usage.signal is None for usage in usages)
    assert all(usage.cpu_s * 1e9 < 2 * (usage.ended_ns - usage.started_ns) for usage in usages)


def test_cpu_time_is_that_of_the_kernel_s_own_account(testbed: Session, make_job: MakeJob) -> None:
    program = (
        "import resource, json; sum(range(3_000_000)); u = resource.getrusage(resource.RUSAGE_SELF);"
        "json.dump([u.ru_utime, u.ru_stime, u.ru_maxrss], open('own.json', 'w'))"
    )
    job = make_job(testbed, "/usr/bin/python3", "-c", program, hosts=1)
    run(testbed, job)
    user_s, system_s, max_rss_kb = json.loads((job.workdir / "own.json").read_text())
    (usage,) = read_rank_usage(job.report_dir)
    assert user_s + system_s <= usage.cpu_s <= user_s + system_s + 0.05  # the interpreter's own end comes on top
    assert usage.max_rss_bytes >= max_rss_kb * 1024


def test_variables_of_the_job_reach_every_host_and_secrets_of_the_worker_none(
    testbed: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "a secret")
    job = Job(
        program=("env",),
        ranks=2,
        ranks_per_host=1,
        hosts=testbed.hosts[:2],
        workdir=tmp_path,
        report_dir=tmp_path / "ranks",
        environment={"OMP_NUM_THREADS": "1", "TITLE": "two words; $HOME"},
    )
    _, stdout, _ = run(testbed, job)
    assert stdout.count("OMP_NUM_THREADS=1\n") == stdout.count("TITLE=two words; $HOME\n") == 2
    assert "DATABASE_URL" not in stdout


def test_a_failing_rank_fails_the_launch_and_its_report_says_how(testbed: Session, make_job: MakeJob) -> None:
    job = make_job(testbed, "sh", "-c", 'test "$OMPI_COMM_WORLD_RANK" = 1 && exit 3; exec sleep 300.1')
    status, _, _ = run(testbed, job)
    assert status == 3
    assert [usage.exit_status for usage in read_rank_usage(job.report_dir) if usage.rank == 1] == [3]
    assert sleepers(testbed, "300.1") == []


def test_a_killed_rank_is_reported_with_its_signal(testbed: Session, make_job: MakeJob) -> None:
    job = make_job(testbed, "sh", "-c", "kill -SEGV $$", hosts=1)
    status, _, _ = run(testbed, job)
    (usage,) = read_rank_usage(job.report_dir)
    assert status != 0
    assert (usage.exit_status, usage.signal) == (None, signal.SIGSEGV)


def test_a_job_that_ignores_sigterm_is_killed_after_the_grace(
    testbed: Session, make_job: MakeJob, eventually: Callable[..., object]
) -> None:
    job = make_job(testbed, "/usr/bin/python3", "-c", STUBBORN, hosts=2)
    process = testbed.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
    eventually((job.workdir / "up").exists)
    assert process.wait(0.0) is None
    assert process.terminate(grace_s=0.2) != 0
    assert process.terminate(grace_s=0.2) == process.returncode
    assert "time.sleep(300)" not in output_of(testbed, "ps", "-e", "-o", "args=")


def test_what_a_rank_leaves_behind_is_gone_when_the_job_is_reported_ended(testbed: Session, make_job: MakeJob) -> None:
    job = make_job(testbed, "sh", "-c", "setsid sleep 300.2 > /dev/null 2>&1 < /dev/null & exit 0")
    status, _, _ = run(testbed, job)
    assert status == 0
    assert sleepers(testbed, "300.2") == []


def test_a_missing_program_is_refused_before_anything_starts(testbed: Session, make_job: MakeJob) -> None:
    with pytest.raises(LaunchFailed, match="no-such-program is not installed"):
        testbed.launch(make_job(testbed, "no-such-program"), stdout=Path("/dev/null"), stderr=Path("/dev/null"))


def test_local_ranks_talk_over_loopback_and_are_swept_too(make_job: MakeJob, tmp_path: Path) -> None:
    with launchers.get("local").open(host_count=1, link=PlainLink()) as session:
        job = make_job(
            session, "sh", "-c", "setsid sleep 300.3 > /dev/null 2>&1 < /dev/null & hostname", ranks_per_host=2
        )
        status, stdout, stderr = run(session, job)
        assert status == 0, stderr
        assert len(stdout.split()) == 2
        assert [usage.rank for usage in read_rank_usage(job.report_dir)] == [0, 1]
        assert sleepers(session, "300.3") == []
