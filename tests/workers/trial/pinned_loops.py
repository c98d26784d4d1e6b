"""Programs that use one core of the machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from workers.agent import process_table
from workers.hosts.sampling import MachineSample
from workers.launchers import Job, Session

PINNED = "import os, time\nos.sched_setaffinity(0, {{{core}}})\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def cpu_s(pid: int) -> float:
    entry = process_table.read(pid)
    assert entry is not None
    return entry.user_s + entry.system_s


def run_beside_a_loop(
    session: Session, job: Job, core: int, eventually: Callable[..., object]
) -> tuple[MachineSample, MachineSample, float, float]:
    """Run a job beside a loop on ``core``.

    Return the first and the last sample, the CPU seconds of the loop, and the elapsed seconds of the job.
    """
    loop = subprocess.Popen(["/usr/bin/python3", "-c", PINNED.format(core=core, seconds=60)])
    try:
        eventually(lambda: os.sched_getaffinity(loop.pid) == {core})
        first, used_s = session.sample().machine, cpu_s(loop.pid)
        process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
        while process.wait(0.5) is None:
            session.sample()
        return first, session.sample().machine, cpu_s(loop.pid) - used_s, process.elapsed_s
    finally:
        loop.kill()
        loop.wait()
