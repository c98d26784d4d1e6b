"""Time until servers, runs, trials and commands answer, before and after a change.

    python -m benchmarks.waits [--before REV] [--rounds 3] [--only ROW ...]

Each row is measured in turn in a worktree of the revision and in this checkout; the least of the rounds counts, because other
programs only add to it. `script/server` and `script/run` start without running services and with files in the cache. Memory is
the proportional share (PSS) of all processes of an idle server. Run it after script/bootstrap on an idle machine, or before all
other programs: `chrt -f 1 python -m benchmarks.waits`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
IDLE_S: Final = 20.0
SERVICES: Final = frozenset(("postgres", "redis-server"))
SHORT: Final[dict[str, Any]] = {
    "name": "Short",
    "workload": "command",
    "parameters": {"program": ["true"]},
    "sweep": {"hosts": [1]},
    "cluster": "local",
    "repetitions": 12,
    "disturbed": "keep",
}
WATER: Final[dict[str, Any]] = {
    "name": "Water",
    "workload": "water",
    "parameters": {"molecules": 512, "steps": 300},
    "sweep": {"hosts": [4]},
    "cluster": "testbed",
    "repetitions": 2,
    "certificate": "skip",
    "disturbed": "keep",
}
LINK: Final = {
    **SHORT,
    "cluster": "testbed",
    "sweep": {"hosts": [2]},
    "repetitions": 1,
}


class Installation:
    """A checkout with data of its own."""

    def __init__(self, root: Path, var: Path) -> None:
        self.root, self.var = root, var
        self.environment = {**os.environ, "RANKWIRE_VAR": str(var)}
        self.capture: Path | None = None
        self.links = 0

    def run(self, specification: dict[str, Any]) -> tuple[float, list[dict[str, Any]]]:
        """Run an experiment; return its start (Unix time) and its trials in order."""
        file, result = self.var.with_name("spec.yaml"), self.var.with_name("result.json")
        file.write_text(yaml.safe_dump(specification))
        began = time.time()
        argv = [str(self.root / "script/run"), str(file), "--json", str(result)]
        subprocess.run(argv, env=self.environment, cwd=self.root, check=True, stdout=subprocess.DEVNULL, timeout=600)
        trials = json.loads(result.read_text())["trials"]
        return began, sorted(trials, key=lambda trial: trial["started_at"])

    @contextmanager
    def server(self) -> Iterator[tuple[float, psutil.Process]]:
        """Run a server for the block; yield the seconds until its first answer."""
        began = time.monotonic()
        argv = [str(self.root / "script/server"), "--port", "0", "--no-demo"]
        server = subprocess.Popen(argv, env=self.environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            if "Rankwire runs at" not in line:
                raise SystemExit(f"the server did not start: {line}")
            yield time.monotonic() - began, psutil.Process(server.pid)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(60)


def first_answer_s(here: Installation) -> float:
    with here.server() as (seconds, _):
        return seconds


def first_trial_s(here: Installation) -> float:
    began, trials = here.run({**SHORT, "repetitions": 1})
    return moment(trials[0], "started_at") - began


def memory_mb(here: Installation, *, services: bool = True) -> float:
    with here.server() as (_, server):
        time.sleep(IDLE_S)
        family = [server, *server.children(recursive=True)]
        counted = [process for process in family if services or process.name() not in SERVICES]
        return float(sum(process.memory_full_info().pss for process in counted)) / 1e6


def overhead_s(here: Installation, **fields: Any) -> float:
    """Return the median time from end to end of trials, without that of the program."""
    _, trials = here.run({**SHORT, **fields})
    gaps = [moment(after, "ended_at") - moment(before, "ended_at") for before, after in pairwise(trials)]
    elapsed_s = [float(trial["metrics"]["elapsed_s"]) for trial in trials[1:]]
    return statistics.median(gap - elapsed for gap, elapsed in zip(gaps, elapsed_s, strict=True))


def recording_s(here: Installation, end: str) -> float:
    """Return the time from a program's end to that of a step, per 645 000 packets."""
    _, trials = here.run(WATER)
    last = trials[-1]  # the first one compiles and loads
    here.capture = here.var / "trials" / str(last["id"]) / "capture.pcapng.zst"
    waited_s = moment(last, end) - moment(last, "started_at") - last["metrics"]["elapsed_s"]
    return float(waited_s * 645_000 / last["metrics"]["packets"])


def certificate_s(here: Installation, *, is_kept: bool) -> float:
    """Return the preparation with a link's certificate beyond that without one.

    A link that this installation has not seen is measured; `is_kept`: it was measured for an earlier experiment.
    """
    here.links += not is_kept or not here.links
    link = {"bandwidth": f"{300 + here.links} Mbit/s"}
    prepared_s = []
    for certificate in (*(["degrade"] if is_kept else []), "degrade", "skip"):
        _, (trial,) = here.run({**LINK, "link": link, "certificate": certificate})
        prepared_s.append(moment(trial, "running_at") - moment(trial, "preparing_at"))
    return prepared_s[-2] - prepared_s[-1]


def cold_command_s(here: Installation) -> float:
    if here.capture is None:
        recording_s(here, "ended_at")
    began = time.monotonic()
    argv = [sys.executable, "-m", "analysis", "stats", str(here.capture), "--json"]
    subprocess.run(argv, cwd=here.root, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def moment(trial: dict[str, Any], name: str) -> float:
    return datetime.fromisoformat(trial[name]).timestamp()


ROWS: Final[dict[str, tuple[str, Callable[[Installation], float], float]]] = {
    "server": ("`script/server` to a page that answers, s", first_answer_s, 4.0),
    "run": ("`script/run` until its first trial starts, s", first_trial_s, 2.0),
    "memory": ("idle server with PostgreSQL and Redis, MB (PSS)", memory_mb, 600.0),
    "python": ("the same without them, MB", lambda here: memory_mb(here, services=False), 600.0),
    "capture": ("overhead of a trial on `local`, default capture, s", overhead_s, 0.15),
    "plain": (
        "the same without capture, s",
        lambda here: overhead_s(here, capture={"enabled": False}, repetitions=30),
        0.08,
    ),
    "recording": (
        "end of the program to the end of its recording, 645 000 packets, s",
        lambda here: recording_s(here, "analysing_at"),
        0.2,
    ),
    "results": ("the same to stored results, s", lambda here: recording_s(here, "ended_at"), 0.45),
    "certificate": ("link certificate, measured, s", lambda here: certificate_s(here, is_kept=False), 1.5),
    "kept": ("the same on a link of an earlier experiment, s", lambda here: certificate_s(here, is_kept=True), 1.5),
    "stats": ("`python -m analysis stats` from a cold start, s", cold_command_s, 0.6),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", metavar="REV", help="revision to compare with")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=tuple(ROWS), default=tuple(ROWS))
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each command compiles all modules
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        roots = {"after": ROOT}
        if options.before:
            roots = {"before": stack.enter_context(worktree(options.before, home / "before")), **roots}
        installations = {name: Installation(root, home / f"{name}-data" / "var") for name, root in roots.items()}
        for installation in installations.values():
            installation.var.parent.mkdir()
            installation.run({**SHORT, "repetitions": 1})  # makes the database, and fills the cache of files
        print("| waiting for | before | after | wanted |\n|---|---|---|---|", flush=True)
        for row in options.only:
            title, measure, bound = ROWS[row]
            seen: dict[str, list[float]] = {name: [] for name in installations}
            for _ in range(options.rounds):
                for name, installation in installations.items():
                    seen[name].append(measure(installation))
            before, after = (f"{min(seen[name]):.3g}" if name in seen else "" for name in ("before", "after"))
            print(f"| {title} | {before} | {after} | {bound:g} |", flush=True)
    return 0


@contextmanager
def worktree(revision: str, path: Path) -> Iterator[Path]:
    """Check a revision out for the block, with the packages of this checkout."""
    git = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(path), revision], check=True)
    try:
        for packages, lock in ((".venv", "requirements.lock"), ("node_modules", "package-lock.json")):
            if (path / lock).read_bytes() == (ROOT / lock).read_bytes():
                (path / packages).symlink_to((ROOT / packages).resolve())  # others are installed anew
        subprocess.run([path / "script/bootstrap"], check=True)
        yield path
    finally:
        subprocess.run([*git, "remove", "--force", str(path)], check=True)


if __name__ == "__main__":
    raise SystemExit(main())
