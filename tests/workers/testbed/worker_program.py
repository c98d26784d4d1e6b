"""A worker to kill: `python worker_program.py KIND DIRECTORY`.

Opens a cluster, records, runs a job that never ends, and prints the process ids of its agent's family once all ranks
are up. It needs no Django.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from workers import launchers
from workers.errors import CaptureUnavailable
from workers.launchers import Job, Session

RANKS = 4


class GigabitLink:
    """Not from the tests' package: this file also runs from a copy, as another user."""

    bandwidth_bps = 1e9
    delay_s = jitter_s = loss = 0.0
    mtu = 1500
    distribution = "uniform"
    loss_burst = 1.0
    queue_bytes = congestion_control = tcp_buffer_bytes = None
    topology = "one site"
    rates_bps = ()
    emulator = "auto"


def main(kind: str, directory: Path) -> None:
    launcher = launchers.get(kind)
    hosts = RANKS if kind == "testbed" else 1
    with launcher.open(host_count=hosts, link=GigabitLink()) as session:
        try:
            recording = session.capture().__enter__()
        except CaptureUnavailable as error:
            recording = str(error)
        job = Job(
            program=("sh", "-c", "touch up-$OMPI_COMM_WORLD_RANK; exec sleep 1000"),
            ranks=RANKS,
            ranks_per_host=RANKS // hosts,
            hosts=session.hosts,
            workdir=directory,
            report_dir=directory / "ranks",
        )
        process = session.launch(job, stdout=directory / "out", stderr=directory / "err")
        while len(list(directory.glob("up-*"))) < RANKS:
            time.sleep(0.01)
        report(session, recording)
        process.wait()


def report(session: Session, recording: object) -> None:
    print(
        "ready",
        os.getpid(),
        session.agent.pid,
        "recording" if not isinstance(recording, str) else recording,
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
