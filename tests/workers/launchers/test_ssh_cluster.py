"""A cluster over a real ssh: sshd runs in every virtual host."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiments.common import plain_files
from tests.workers.clusters.real_hosts import SshHosts
from tests.workers.clusters.trials import PlainLink, capinfos, output_of, run
from workers import launchers
from workers.errors import CaptureUnavailable, ClusterUnavailable, HostsLost, LaunchFailed
from workers.launchers import Job, Session, openmpi
from workers.launchers.limits import Limits
from workers.launchers.remote import RemoteSession
from workers.trial.rank_usage import ranks_by_address, read_rank_usage

HELLO = (
    "from mpi4py import MPI; c = MPI.COMM_WORLD; n = c.allreduce(1); "
    "open(f'out{c.rank}', 'w').write(open('in.txt').read()); print('hello', c.rank, MPI.Get_processor_name(), n)"
)


@pytest.fixture(scope="module")
def session(ssh_hosts: SshHosts) -> Iterator[Session]:
    with launchers.get("ssh", ssh_hosts.settings()).open(host_count=3, link=PlainLink()) as session:
        yield session


def test_it_runs_one_rank_on_each_host_without_a_shared_file_system(
    session: Session, make_job: Callable[..., Job]
) -> None:
    job = make_job(session, "/usr/bin/python3", "-c", HELLO)
    (job.workdir / "in.txt").write_text("input")
    with session.capture() as capture:
        status, out, err = run(session, job)
        report = capture.stop()
        stored = capture.save(job.workdir / "c.pcapng.zst")
    assert status == 0, err
    assert sorted(out.splitlines()) == ["hello 0 n1 3", "hello 1 n2 3", "hello 2 n3 3"]
    assert (job.workdir / "out0").read_text() == "input", "what the first host wrote is fetched"
    usages = read_rank_usage(job.report_dir)
    assert [(usage.rank, usage.host) for usage in usages] == [(0, "n1"), (1, "n2"), (2, "n3")]
    assert all(usage.cpu_s > 0 for usage in usages)
    assert report.captured == capinfos(stored)[0] > 0


def test_output_that_is_printed_faster_than_fetched_does_not_hold_the_worker(
    session: Session, make_job: Callable[..., Job]
) -> None:
    job = make_job(
        session, "sh", "-c", "echo first; yes 'a line of output' & sleep 1; kill $!; sleep 0.5; echo last", hosts=1
    )
    job = dataclasses.replace(job, limits=Limits(output_bytes=10_000))
    process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
    while process.wait(0.2) is None:
        begun = time.monotonic()
        session.sample()
        assert time.monotonic() - begun < 20
    printed = job.workdir / "out"
    assert printed.stat().st_size > 5 << 20
    assert printed.stat().st_blocks * 512 < 1 << 20
    plain_files.shorten(printed, limit_bytes=10_000)
    lines = printed.read_text().splitlines()
    assert lines[0] == "first"
    assert lines[-1].endswith("last")
    assert "\0" not in printed.read_text()


def test_it_launches_as_the_open_mpi_of_the_first_host_wants(session: Session) -> None:
    assert isinstance(session, RemoteSession)
    assert openmpi.major(session.version(session.usual_launch.program) or "") == openmpi.installed()


def test_it_samples_every_host_and_describes_them(session: Session) -> None:
    before, after = session.sample(), session.sample()
    assert [host.host for host in after.hosts] == ["n1", "n2", "n3"]
    assert after.hosts[1].rx_packets >= before.hosts[1].rx_packets > 0
    environment = session.environment(Path("lmp"))
    assert environment["interface"]["name"] == "eth0"
    assert environment["program"]["path"] == "/usr/bin/lmp"
    assert "libmpi.so.40.30.4" in environment["program"]["libraries"]
    assert session.environment(Path("lmp")) == environment


def test_it_sees_the_cores_of_ranks_on_every_host(session: Session, make_job: Callable[..., Job]) -> None:
    """Daemons of the MPI library start them there, not the agents."""
    busy = "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    job = make_job(session, "/usr/bin/python3", "-c", busy)
    before = session.sample().machines
    process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
    while process.wait(0.5) is None:
        session.sample()
    after = session.sample().machines
    assert set(after) == {"n1", "n2", "n3"}
    assert all(machine.rank_cores_s - before[host].rank_cores_s > 1.0 for host, machine in after.items())
    used_s = sum(usage.cpu_s for usage in read_rank_usage(job.report_dir))
    assert all(machine.cpu_ours_s - before[host].cpu_ours_s > 0.5 * used_s for host, machine in after.items())


def test_it_reports_what_is_different_on_another_host(session: Session, ssh_hosts: SshHosts) -> None:
    alike = session.environment(Path("lmp"))
    assert "other_hosts" not in alike
    output_of(ssh_hosts.testbed, "ip", "link", "set", "eth0", "mtu", "1400", host="n3")
    try:
        odd = session.environment(Path("lmp"))
    finally:
        output_of(ssh_hosts.testbed, "ip", "link", "set", "eth0", "mtu", "1500", host="n3")
    assert odd == {**alike, "other_hosts": {"n3": {"interface": {"mtu": 1400}}}}
    assert session.environment(Path("lmp")) == alike


def test_it_runs_mpich_too(ssh_hosts: SshHosts, make_job: Callable[..., Job]) -> None:
    with launchers.get("ssh", ssh_hosts.settings(mpi="mpich")).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sh", "-c", "echo rank $PMI_RANK of $PMI_SIZE on $(hostname)")
        status, out, err = run(session, job)
        assert status == 0, err
        assert sorted(out.splitlines()) == ["rank 0 of 2 on n1", "rank 1 of 2 on n2"]
        usages = read_rank_usage(job.report_dir)
        assert [usage.host for usage in usages] == ["n1", "n2"]
        placed = ranks_by_address(usages, session.addresses_by_name, 2)
        assert {address: ranks for address, ranks in placed.items() if "." in address} == {
            "10.77.0.1": [0],
            "10.77.0.2": [1],
        }
        assert session.environment()["mpi"].startswith("Hydra ")


def test_it_records_every_host_in_a_file_of_its_own(ssh_hosts: SshHosts, make_job: Callable[..., Job]) -> None:
    with launchers.get("ssh", ssh_hosts.settings(capture="every")).open(host_count=2, link=PlainLink()) as session:
        assert session.recorded_hosts == ("n1", "n2")
        assert session.addresses_by_name == session.addresses
        captures = [session.capture(host).__enter__() for host in session.recorded_hosts]
        job = make_job(session, "/usr/bin/python3", "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()")
        assert run(session, job)[0] == 0
        reports = [capture.stop() for capture in captures]
        for capture in captures:
            capture.close()
    # Two hosts and one wire: each has seen every packet of the other.
    assert reports[0].captured == reports[1].captured > 0


def test_it_ends_the_ranks_of_every_host(session: Session, make_job: Callable[..., Job]) -> None:
    length = f"987.{os.getpid()}"
    job = make_job(session, "sh", "-c", f"touch up; exec sleep {length}")
    process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
    assert process.wait(1.0) is None
    assert process.terminate(2.0) != 0
    assert not sleepers(length)


def sleepers(length: str) -> list[str]:
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True, timeout=60).stdout
    return [line for line in listing.splitlines() if line == f"sleep {length}"]


def test_it_leaves_nothing_on_the_hosts(
    ssh_hosts: SshHosts, make_job: Callable[..., Job], eventually: Callable[..., object], tmp_path: Path
) -> None:
    scratch, length = tmp_path / "scratch", f"986.{os.getpid()}"  # other suites run on this machine
    scratch.mkdir()
    settings = ssh_hosts.settings(scratch=str(scratch))
    with launchers.get("ssh", settings).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sleep", length)
        session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
        eventually(lambda: len(sleepers(length)) == 2)
        assert len(list(scratch.iterdir())) == 1
        os.kill(session.agents["n1"].pid, 9)  # the connection, as when the worker dies
    eventually(lambda: not sleepers(length))
    eventually(lambda: not list(scratch.iterdir()), explain=lambda: list(scratch.iterdir()))


def test_it_reports_that_a_host_went_away(ssh_hosts: SshHosts, make_job: Callable[..., Job]) -> None:
    with launchers.get("ssh", ssh_hosts.settings()).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sleep", "985")
        process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
        os.kill(session.agents["n1"].pid, 9)
        with pytest.raises(HostsLost, match="n1 ended"):
            process.wait(20.0)


def refusal(settings: dict[str, object], host_count: int = 1) -> str:
    with pytest.raises(ClusterUnavailable) as caught:
        launchers.get("ssh", settings).open(host_count=host_count, link=PlainLink()).close()
    return str(caught.value)


def test_it_names_an_unreachable_host(ssh_hosts: SshHosts) -> None:
    assert refusal(ssh_hosts.settings(port=2299)) == "Host n1 cannot be used: Connection refused."


def test_it_names_the_host_that_refuses_the_key(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(tmp_path / "wrong")], check=True, timeout=60)
    sentence = refusal(ssh_hosts.settings(key=str(tmp_path / "wrong")))
    assert sentence == "Host n1 cannot be used: it refuses the key of this user (Permission denied: publickey)."
    missing = str(tmp_path / "missing")
    why = refusal(ssh_hosts.settings(key=missing))
    assert why == f"Host n1 cannot be used: the key {missing} cannot be read: No such file or directory."


def test_it_trusts_no_unknown_host_key(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(ssh_hosts.config.read_text().replace("known_hosts\n", "nobody\n"))
    assert "its host key is not the known one" in refusal(ssh_hosts.settings(config=str(config)))


def test_it_names_a_missing_program_and_its_host(session: Session, make_job: Callable[..., Job]) -> None:
    job = make_job(session, "no-such-program")
    with pytest.raises(LaunchFailed, match=r"^The program no-such-program is not installed on host n1\.$"):
        session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")


def test_it_reports_why_a_host_records_no_packets(ssh_hosts: SshHosts, tmp_path: Path) -> None:
    closed = tmp_path / "dumpcap"
    closed.write_text('#!/bin/sh\necho "sudo: a password is required" >&2\nexit 1\n')
    closed.chmod(0o755)
    settings = ssh_hosts.settings(capture_command=[str(closed)])
    with (
        launchers.get("ssh", settings).open(host_count=1, link=PlainLink()) as session,
        pytest.raises(CaptureUnavailable, match=r"on host n1 .*a password is required"),
        session.capture(),
    ):
        pass


def test_it_names_the_host_that_has_no_room(ssh_hosts: SshHosts, make_job: Callable[..., Job]) -> None:
    small = "/run/small"
    output_of(ssh_hosts.testbed, "mkdir", small)
    output_of(ssh_hosts.testbed, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small)
    with launchers.get("ssh", ssh_hosts.settings(scratch=small)).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "true")
        (job.workdir / "input").write_bytes(bytes(100_000))
        with pytest.raises(LaunchFailed, match=r"^The trial cannot be prepared on host n1: No space left on device\.$"):
            session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")


def test_it_takes_a_scratch_directory_that_cannot_be_made_as_a_reason(ssh_hosts: SshHosts) -> None:
    assert refusal(ssh_hosts.settings(scratch="/proc")).startswith("n1: ")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "hosts: is missing"),
        ({"hosts": ["-oProxyCommand=evil"]}, "hosts: '-oProxyCommand=evil' is not a host name"),
        ({"hosts": ["n1"], "hots": 1}, "hots: is not a known field; did you mean hosts?"),
        ({"hosts": ["n1"], "scratch": "/srv/$(id)"}, "scratch: must be a full path"),
    ],
)
def test_it_refuses_settings_that_make_no_sense(settings: dict[str, object], words: str) -> None:
    assert words in refusal(settings)
