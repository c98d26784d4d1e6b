"""Running CPU time of an agent's programs: it never decreases."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from workers.agent.counters import Counters

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"
TREE = f"""
import os
for _ in range(2):
    if not (child := os.fork()):
        exec({BURN!r})
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print("ended", flush=True)
input()
"""
"""Two children have ended, and their parent waits for neither."""
IGNORANT = f"""
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if not (child := os.fork()):
    exec({BURN!r})
    print("burnt", flush=True)
    input()
    os._exit(0)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    print("gone", flush=True)
input()
exec({BURN!r})
print("burnt", flush=True)
input()
"""
TICK_S = 0.05


def ours_s(counters: Counters) -> float:
    return counters.sample()["machine"]["cpu_ours_s"]


@contextmanager
def program(source: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def answer(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_total_includes_a_program_that_ended_and_was_not_waited_for() -> None:
    counters = Counters()
    before_s = ours_s(counters)
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", BURN])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    ended_s = ours_s(counters)
    process.wait()
    assert ended_s - before_s > 0.4 - TICK_S
    assert ours_s(counters) >= ended_s


def test_total_includes_children_that_their_parent_has_not_waited_for() -> None:
    counters = Counters()
    before_s = ours_s(counters)
    with program(TREE) as process:
        wait_for(process, "ended")
        ended_s = ours_s(counters)
    assert ended_s - before_s > 0.8 - 2 * TICK_S
    assert ours_s(counters) >= ended_s


def test_total_never_decreases_when_the_kernel_forgets_a_child() -> None:
    counters = Counters()
    with program(IGNORANT) as process:
        wait_for(process, "burnt")
        burnt_s = ours_s(counters)
        answer(process)
        wait_for(process, "gone")
        gone_s = ours_s(counters)
        assert gone_s >= burnt_s
        # What the parent uses from now on is in the total at once.
        answer(process)
        wait_for(process, "burnt")
        assert ours_s(counters) - gone_s > 0.4 - 2 * TICK_S
