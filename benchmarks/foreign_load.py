"""Error of measured foreign load: trials beside a program of known share.

    python -m benchmarks.foreign_load [--rounds 3] [--loads 0 0.2 0.5 1] [--seconds 2]

The load is of one core. The truth is the CPU time of all processes (proc(5)) that are neither this program nor started by it, and
of the load. A false alarm is a trial that is called disturbed although the truth is below the limit.
The status is 1 for an error of more than 5 points of the machine in any trial, or a false alarm.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.agent import process_table
from workers.launchers import Job, Session
from workers.trial.disturbances import busy_s, disturbances
from workers.trial.rank_usage import read_rank_usage

LIMIT = 0.1
POINTS = 5.0
LOAD = """
import sys, time
share, period = float(sys.argv[1]), 0.02
end = time.monotonic() + 120
while time.monotonic() < end:
    start, used = time.monotonic(), time.process_time()
    while time.process_time() - used < share * period:
        pass
    time.sleep(max(0.0, start + period - time.monotonic()))
"""
BUSY = "import time; end = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
SHORT = """
import os, time
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    if not (child := os.fork()): os._exit(sum(range(2000)) and 0)
    os.waitpid(child, 0)
"""
UNWAITED = """
import os, time
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    if not (child := os.fork()):
        stop = time.process_time() + 0.05
        while time.process_time() < stop: pass
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
"""
PROGRAMS = {"computes": BUSY, "starts short processes": SHORT, "waits for no child": UNWAITED}


@dataclass(frozen=True)
class Row:
    """One trial: the load's share of the machine and the one that was measured."""

    truth: float
    measured: float
    alarm: bool

    @property
    def error_points(self) -> float:
        return 100 * (self.measured - self.truth)

    @property
    def is_false_alarm(self) -> bool:
        return self.alarm and self.truth <= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loads", type=float, nargs="+", default=[0.0, 0.2, 0.5, 1.0], help="of one core")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    rows: list[Row] = []
    print("| ranks | load, of one core | truth, % of the machine | measured, % | error, points | disturbed |")
    print("|---|---|---|---|---|---|")
    with launchers.get("testbed").open(host_count=2, link=PlainLink()) as session:
        for (name, source), share in itertools.product(PROGRAMS.items(), given.loads):
            for _ in range(given.rounds):
                rows.append(row := trial(session, source.format(seconds=given.seconds), share))
                print(
                    f"| {name} | {share:g} | {100 * row.truth:.1f} | {100 * row.measured:.1f} "
                    f"| {row.error_points:+.1f} | {'yes' if row.alarm else 'no'} |",
                    flush=True,
                )
    worst = max(rows, key=lambda row: abs(row.error_points)).error_points
    false_alarms = sum(row.is_false_alarm for row in rows)
    within = sum(row.truth <= LIMIT for row in rows)
    print(f"trials: {len(rows)}; largest error {worst:+.1f} points; false alarms: {false_alarms} of {within}")
    return 1 if abs(worst) > POINTS or false_alarms else 0


def trial(session: Session, source: str, share: float) -> Row:
    """Run one job with a rank on each host beside the load."""
    with tempfile.TemporaryDirectory(prefix="foreign-load-") as name, load(share) as program:
        directory = Path(name)
        job = Job(
            program=("/usr/bin/python3", "-c", source),
            ranks=2,
            ranks_per_host=1,
            hosts=session.hosts[:2],
            workdir=directory,
            report_dir=directory / "ranks",
        )
        before_s, began = others_s(program), time.monotonic()
        samples = [session.sample()]
        process = session.launch(job, stdout=directory / "out", stderr=directory / "err")
        while process.wait(1.0) is None and time.monotonic() - began < 60:
            samples.append(session.sample())
        samples.append(session.sample())
        others, length_s = others_s(program) - before_s, time.monotonic() - began
        usages = read_rank_usage(job.report_dir)
    whole_s = (os.cpu_count() or 1) * length_s
    first, last = samples[0].machine, samples[-1].machine
    ours_s = max(last.cpu_ours_s - first.cpu_ours_s, sum(usage.cpu_s for usage in usages))
    found = disturbances(samples, usages, foreign_share=LIMIT, own_machines=False)
    alarm = any(sentence.startswith("other programs") for sentence in found)
    return Row(others / whole_s, (busy_s(first, last) - ours_s) / whole_s, alarm)


@contextmanager
def load(share: float) -> Iterator[subprocess.Popen[bytes] | None]:
    """Run a program that uses this share of one core; None for no share."""
    if share == 0:
        yield None
        return
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", LOAD, str(share)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def others_s(program: subprocess.Popen[bytes] | None) -> float:
    """Return CPU seconds of the load and of processes that this one did not start."""
    started = {os.getpid(), *(entry.pid for entry in process_table.tree(os.getpid()))} - {program.pid if program else 0}
    others = [entry for entry in process_table.entries() if entry.pid not in started]
    return sum(entry.user_s + entry.system_s + entry.waited_for_s for entry in others)


if __name__ == "__main__":
    sys.exit(main())
