"""Remote shell of the test-bed, asked by a job that ends."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from tests.workers.clusters.trials import PlainLink, run
from workers import launchers
from workers.launchers import Job
from workers.testbed.fabric import RSH_SOCKET

REQUESTS = f"""
import pathlib, socket, time
while not pathlib.Path("go").exists():
    time.sleep(0.01)
nothing, ends = open("/dev/null"), []
for request in [b"nowhere\\0true"] * 300 + [b"n1\\0id > foreign"]:
    ends.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    ends[-1].connect("{RSH_SOCKET}")
    socket.send_fds(ends[-1], [request], [nothing.fileno()] * 3)
"""


def test_requests_of_an_ended_job_neither_reach_the_next_one_nor_end_the_agent(
    make_job: Callable[..., Job], eventually: Callable[..., Any], tmp_path: Path
) -> None:
    """The agent sleeps while the job sends its requests and ends."""
    with launchers.get("testbed").open(host_count=1, link=PlainLink()) as session:
        job = make_job(session, "/usr/bin/python3", "-c", REQUESTS)
        process = session.launch(job, stdout=tmp_path / "out", stderr=tmp_path / "err")
        programs = psutil.Process(session.agent.pid).children(recursive=True)
        (mpirun,) = [program for program in programs if program.name() == "mpirun"]
        agent = mpirun.parent()
        agent.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        eventually(lambda: mpirun.status() == psutil.STATUS_ZOMBIE)
        agent.send_signal(signal.SIGCONT)
        assert process.wait(60) == 0, (tmp_path / "err").read_text()
        status, out, err = run(session, make_job(session, "sh", "-c", "sleep 1; echo ended"))
        assert (status, out) == (0, "ended\n"), err
        assert not (tmp_path / "foreign").exists()
