"""Overhead of Rankwire per run: one command prints the table.

    python -m benchmarks.orchestration [--trials 12] [--rounds 3] [--only PART ...] [--json FILE]

Overhead per trial: wall time of an experiment of short trials, from its submission to the end of its last one, minus the
elapsed times of its launch commands, divided by the number of trials. It holds preparing, capture, decoding, metrics and
the database; the task that a Celery worker runs is called in this process. ReFrame, installed into a throw-away
environment, runs the same program with its serial policy in the same run. The observer effect is the ratio of the median
elapsed times with and without capture, runs interleaved. Rounds tell the spread: the machine may be busy. The cost of the MPI
profile is the mean ratio between runs that follow each other with it and without, in changing order, and its interval of 95 %;
beside it, the calls of all ranks times what counting one takes in them, as a share of their time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from benchmarks.private import services

TALK = (
    "import time; from mpi4py import MPI; c = MPI.COMM_WORLD; other = c.rank ^ 1; end = time.monotonic() + 1; "
    "[(c.sendrecv(b'x' * 1000, other, source=other), time.sleep(0.001)) for _ in range(800)]; "
    "time.sleep(max(0, end - time.monotonic()))"
)
REFRAME_CHECK = """\
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class Second(rfm.RunOnlyRegressionTest):
    number = parameter(range({trials}))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "sleep"
    executable_opts = ["1"]

    @sanity_function
    def ended(self):
        return sn.assert_eq(self.job.exitcode, 0)
"""
PAIRS = 3
COUNTED = "mpi_profile_cost_share"
LEVELS = ("none", "summary", "trace")
WATER = {
    "name": "observer",
    "workload": "water",
    "parameters": {"molecules": 512, "steps": 300},
    "sweep": {"hosts": [4]},
    "cluster": "testbed",
    "repetitions": 1,
    "warmups": 0,
}
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with services(durable=True) as home:
        os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
        rows = measure(options.only, options.trials, options.rounds, home)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    return report(rows)


def measure(parts: Sequence[str], trials: int, rounds: int, home: Path) -> list[Row]:
    """The rows of the table; each has its limit."""
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    run_experiment(command(TALK), hosts=2, cluster="testbed", repetitions=2)  # compiles the kernels
    return [row for part in parts for row in PARTS[part](trials, rounds, home)]


def overhead(trials: int, rounds: int, home: Path) -> list[Row]:
    """Return the overhead of a trial beyond its launch command, and that of ReFrame."""
    reframe = Reframe(home / "reframe", trials)
    testbed, local, other = [], [], []
    for _ in range(rounds):
        testbed.append(overhead_s(trials, command(TALK), hosts=2, cluster="testbed"))
        local.append(overhead_s(trials, ["sleep", "1"], hosts=1, cluster="local", capture={"enabled": False}))
        other.append(reframe.overhead_s())
    return [
        row("overhead per trial, test-bed with capture and analysis", testbed, "s", 1.0),
        row("overhead per trial, local without capture", local, "s", statistics.median(other)),
        row("overhead per trial, ReFrame serial local", other, "s", None),
    ]


def row(name: str, values: list[float], unit: str, limit: float | None) -> Row:
    """Median and spread over the rounds."""
    return {
        "name": name,
        "median": statistics.median(values),
        "least": min(values),
        "most": max(values),
        "unit": unit,
        "limit": limit,
    }


def command(script: str) -> list[str]:
    return ["/usr/bin/python3", "-c", script]


def run_experiment(program: list[str], *, hosts: int, **fields: Any) -> Any:
    """Submit and run to the end, as a worker does; returns the experiment."""
    from experiments.library import load_defaults
    from experiments.specification import parse
    from workers import queue, tasks

    spec = {
        "name": "overhead",
        "workload": "command",
        "parameters": {"program": program},
        "sweep": {"hosts": [hosts]},
        "warmups": 0,
        "disturbed": "keep",  # a repeat would wait
        **fields,
    }
    experiment = queue.submit(parse(spec), project=load_defaults())
    assert experiment.cluster_id is not None
    tasks.work(experiment.cluster_id)
    bad = experiment.trials.exclude(state="finished").first()
    if bad is not None:
        raise SystemExit(f"a trial did not finish: {bad.message}{bad.traceback}")
    return experiment


def overhead_s(trials: int, program: list[str], **fields: Any) -> float:
    """Seconds per trial beside the launch command's own time."""
    from experiments.models import Measurement

    began = time.monotonic()
    experiment = run_experiment(program, repetitions=trials, **fields)
    took_s = time.monotonic() - began
    elapsed = Measurement.objects.filter(trial__experiment=experiment, metric="elapsed_s", scope="all")
    return (took_s - sum(elapsed.values_list("value", flat=True))) / trials


def run_water(**fields: Any) -> Any:
    """LAMMPS on 4 ranks, once; returns the experiment."""
    from experiments.library import load_defaults
    from experiments.specification import parse
    from workers import queue, tasks

    experiment = queue.submit(parse({**WATER, **fields}), project=load_defaults())
    assert experiment.cluster_id is not None
    tasks.work(experiment.cluster_id)
    return experiment


def observer_effect(_trials: int, rounds: int, _home: Path) -> list[Row]:
    """Captured and not, in turn; and what the captures lost."""
    from experiments.models import Kind, Measurement

    effects, lost = [], 0
    for _ in range(rounds):
        with_capture, without = [], []
        for _ in range(PAIRS):
            experiment = run_water(control=True, warmups=1, repetitions=2)  # the control run comes between the two
            elapsed = Measurement.objects.filter(trial__experiment=experiment, metric="elapsed_s", scope="all")
            kinds: dict[str, list[float]] = {}
            for kind, value in elapsed.values_list("trial__kind", "value"):
                kinds.setdefault(kind, []).append(value)
            with_capture.append(statistics.mean(kinds[Kind.MEASURED]))
            without += kinds[Kind.CONTROL]
            dropped = Measurement.objects.filter(trial__experiment=experiment, metric="dropped_by_kernel", value__gt=0)
            lost += dropped.count()
        effects.append(100 * (statistics.median(with_capture) / statistics.median(without) - 1))
    return [
        row("observer effect, 4 ranks on 4 virtual hosts", effects, "%", 8.0),
        row("captures with drops", [float(lost)], "trials", 0.0),
    ]


def profile_cost(_trials: int, rounds: int, _home: Path) -> list[Row]:
    """Return the profile's overhead on elapsed time and packets of water."""
    from experiments.models import Measurement

    seen: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds * PAIRS):
        turn = number % len(LEVELS)
        for level in (*LEVELS[turn:], *LEVELS[:turn]):
            experiment = run_water(profile=level, disturbed="keep")  # one trial each, for pairs
            measured = Measurement.objects.filter(trial__experiment=experiment, scope="all")
            for metric, value in measured.filter(metric__in=("elapsed_s", "packets", COUNTED)).values_list(
                "metric", "value"
            ):
                seen.setdefault((level, metric), []).append(value)
    compared = [
        row(f"{level} of MPI, {name}", change(seen[level, metric], seen["none", metric]), "%", limit)
        for metric, name in (("elapsed_s", "elapsed time"), ("packets", "packets"))
        for level, limit in zip(LEVELS[1:], (1.0, 3.0) if metric == "elapsed_s" else (None, None), strict=True)
    ]
    # Elapsed times scatter by more than the limits where ranks share cores; calls times what one costs hardly do.
    counted = [
        row(f"{level} of MPI, calls x cost of one", [100 * share for share in seen[level, COUNTED]], "%", limit)
        for level, limit in zip(LEVELS[1:], (1.0, 3.0), strict=True)
    ]
    return [*compared, *counted]


def change(values: Sequence[float], without: Sequence[float]) -> list[float]:
    """Return percent between pairs: low end of 95 %, mean, high end."""
    ratios = [math.log(value / other) for value, other in zip(values, without, strict=True)]
    mean = statistics.mean(ratios)
    half = float(stats.t.ppf(0.975, len(ratios) - 1)) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return [100 * math.expm1(value) for value in (mean - half, mean, mean + half)]


def queue_of_ten_thousand(_trials: int, _rounds: int, _home: Path) -> list[Row]:
    """Accepting 10 000 trials, and what a look at the waiting queue costs."""
    from experiments.library import load_defaults
    from experiments.models import Cluster, Experiment, Trial
    from experiments.specification import parse

    spec = {
        "name": "many",
        "workload": "water",
        "sweep": {"ranks_per_host": [1, 2, 3, 4], "steps": list(range(100, 125))},
        "repetitions": 100,
        "warmups": 0,
        "cluster": "local",
    }
    accepted_s = seconds(lambda: Experiment.submit(parse(spec), project=load_defaults()))
    cluster = Cluster.objects.get(slug="local")
    Trial.claim_next(cluster, "host:1:1")  # takes the machine: later claims find nothing
    look_s = min(seconds(lambda: Trial.claim_next(cluster, "host:2:2")) for _ in range(5))
    return [
        row("10 000 trials accepted", [accepted_s], "s", 5.0),
        row("one look at a queue of 10 000 whose hosts are taken", [look_s], "s", 0.1),
    ]


def seconds(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


class Reframe:
    """ReFrame in an environment of its own."""

    def __init__(self, home: Path, trials: int) -> None:
        self.home, self.trials = home, trials
        venv.create(home / "venv", with_pip=True)
        pip = [str(home / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "reframe-hpc"], check=True, timeout=300)
        (home / "check.py").write_text(REFRAME_CHECK.format(trials=trials))

    def overhead_s(self) -> float:
        """Return seconds per trial beyond its sleep of one, by ReFrame's own clock."""
        subprocess.run(
            [
                *(str(self.home / "venv/bin/reframe"), "-c", "check.py", "--run", "--exec-policy=serial"),
                *("--prefix=out", "--report-file=report.json", "--nocolor"),
            ],
            check=True,
            cwd=self.home,
            stdout=subprocess.DEVNULL,
            timeout=300,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
        )
        session = json.loads((self.home / "report.json").read_text())["session_info"]
        return (float(session["time_elapsed"]) - self.trials) / self.trials


PARTS: dict[str, Callable[[int, int, Path], list[Row]]] = {
    "overhead": overhead,
    "observer": observer_effect,
    "profile": profile_cost,
    "queue": queue_of_ten_thousand,
}


def report(rows: list[Row]) -> int:
    """Print the table; 1 when a limit is passed."""
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        passed = row["limit"] is not None and row["median"] > row["limit"]
        limit = "" if row["limit"] is None else f"   limit {row['limit']:.3g}{'  TOO MUCH' if passed else ''}"
        spread = f"{row['least']:.3g} ... {row['most']:.3g}"
        print(f"{row['name']:{width}}  {row['median']:8.3g} {row['unit']:6}  ({spread}){limit}")
    return int(any(row["limit"] is not None and row["median"] > row["limit"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
