"""Remote shell of the test-bed, asked by a job that ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from analysis.numbers import size
from tests.workers.clusters.trials import PlainLink, run
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.hosts.processes import Process
from workers.launchers import Job, Session
from workers.testbed.fabric import RSH_SOCKET

CLIENT = f"""
import pathlib, socket, time
nothing = open("/dev/null").fileno()
def connected():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    end.connect("{RSH_SOCKET}")
    return end
def request(end, text):
    socket.send_fds(end, [text], [nothing] * 3)
"""
ENDING = """
accepted, answered = connected(), connected()
request(answered, b"nowhere\\0true")
answered.recv(16)
pathlib.Path("ready").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)
ends = [accepted, *(connected() for _ in range(300))]
for end in ends:
    request(end, b"nowhere\\0true" if end is not ends[-1] else b"n1\\0id > foreign")
"""
FILLING = """
while not pathlib.Path("go").exists():
    time.sleep(0.01)
for number in range(8):
    pathlib.Path(str(number)).write_bytes(bytes(32 << 20))
time.sleep(60)
"""
FLOODING = """
ends = []
while len(ends) < 400:
    ends.append(connected())
    request(ends[-1], b"n1\\0true")
pathlib.Path("ready").touch()
time.sleep(60)
"""


@pytest.fixture
def session() -> Iterator[Session]:
    with launchers.get("testbed").open(host_count=1, link=PlainLink()) as opened:
        yield opened


@pytest.fixture
def client(session: Session, make_job: Callable[..., Job], tmp_path: Path) -> Callable[..., Process]:
    """Start a job that asks the remote shell."""

    def start(program: str, **limits: Any) -> Process:
        job = make_job(session, "/usr/bin/python3", "-c", CLIENT + program)
        job = replace(job, limits=replace(job.limits, **limits))
        return session.launch(job, stdout=tmp_path / "out", stderr=tmp_path / "err")

    return start


def require_untouched(session: Session, job: Job) -> None:
    """Run the next job, which prints a word."""
    status, out, err = run(session, job)
    assert (status, out) == (0, "ended\n"), err


def test_requests_of_an_ended_job_neither_reach_the_next_one_nor_end_the_agent(
    session: Session,
    client: Callable[[str], Process],
    make_job: Callable[..., Job],
    eventually: Callable[..., Any],
    tmp_path: Path,
) -> None:
    """The agent sleeps while the job sends its requests and ends."""
    process = client(ENDING)
    programs = psutil.Process(session.agent.pid).children(recursive=True)
    (mpirun,) = [program for program in programs if program.name() == "mpirun"]
    agent = mpirun.parent()
    eventually((tmp_path / "ready").exists)
    agent.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    eventually(lambda: mpirun.status() == psutil.STATUS_ZOMBIE)
    agent.send_signal(signal.SIGCONT)
    assert process.wait(60) == 0, (tmp_path / "err").read_text()
    require_untouched(session, make_job(session, "sh", "-c", "sleep 1; echo ended"))
    assert not (tmp_path / "foreign").exists()


def test_requests_of_a_job_that_is_killed_do_not_end_the_agent(
    session: Session,
    client: Callable[[str], Process],
    make_job: Callable[..., Job],
    eventually: Callable[..., Any],
    tmp_path: Path,
) -> None:
    process = client(FLOODING)
    eventually((tmp_path / "ready").exists)
    assert process.terminate(0.0) < 0
    require_untouched(session, make_job(session, "echo", "ended"))


def test_a_job_that_fills_the_disk_while_its_agent_is_blocked_is_ended(
    session: Session, client: Callable[..., Process], tmp_path: Path
) -> None:
    """A socket whose end waits for its data can keep the agent for an hour."""
    process = client(FILLING, disk_bytes=64 << 20)
    programs = psutil.Process(session.agent.pid).children(recursive=True)
    (agent,) = {mpirun.parent() for mpirun in programs if mpirun.name() == "mpirun"}
    agent.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    with pytest.raises(ClusterUnavailable, match=f"more than the {size(64 << 20)} that a trial may have on disk"):
        process.terminate()
    assert not psutil.wait_procs(programs, timeout=20)[1]
