"""Times of pages, lists and exports before and after a change, in one run.

    python -m benchmarks.scale [--before REVISION] [--trials 100000] [--tracker PYTHON]

Each tree (a worktree of the revision, then this one) gets a private PostgreSQL with generated trials and then an experiment of 10 000.
CPU is that of the process and its database backend together: other work on the machine hardly changes it. ``--tracker``
is a Python with MLflow (``benchmarks/tracker.py``); without it, that row is left out.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parents[1]
DESIGN: Final = "hosts x delay x rate"
WANTED: Final = {
    "later view of an experiment of 10 000 trials, CPU": "200 ms",
    "its first diagnosis, CPU": "3000 ms",
    "memory that the diagnosis adds": "80 MB",
    "trials sorted by a metric, CPU": "60 ms",
    "trials of good captures, workload and cluster, sorted, CPU": "60 ms",
    "trials of 4 hosts and more, sorted, CPU": "60 ms",
    "trials below a value, sorted, CPU": "60 ms",
    "home, CPU": "50 ms",
    "REST: 50 trials with 60 metrics, by one, CPU": "60 ms",
    "REST: 50 trials of 4 hosts below a value, by a metric": "a quarter of the tracker's",
    "REST: 50 configurations with 60 metrics, by a median, CPU": "60 ms",
    "export as Parquet": "40 000 trials/s",
    "export as CSV": "",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--before", metavar="REVISION")
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--tracker", metavar="PYTHON")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.trials)
        return 0
    before = _before(options.before, options.trials) if options.before else {}
    after = _measured(HERE, options.trials)
    print(f"{'':64}{'before':>20}{'after':>20}  wanted")
    for name, bound in WANTED.items():
        print(f"{name:64}{before.get(name, '-'):>20}{after.get(name, '-'):>20}  {bound}")
    if options.tracker:
        command = [options.tracker, str(HERE / "benchmarks" / "tracker.py")]
        print("the same search of 50 000 runs by MLflow, ms and CPU ms:", subprocess.check_output(command, text=True))
    else:
        print("No comparison with a tracker: name a Python with MLflow by --tracker.")
    return 0


def _before(revision: str, trials: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory) / "before"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), revision], cwd=HERE, check=True)
        try:
            for shared in ("node_modules", "staticfiles"):
                (tree / shared).symlink_to(HERE / shared)
            return _measured(tree, trials)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=HERE, check=True)


def _measured(tree: Path, trials: int) -> dict[str, str]:
    """Return the rows of a tree, measured by this file with the packages of the tree."""
    command = [sys.executable, str(HERE / "benchmarks" / "scale.py"), "--measure", "--trials", str(trials)]
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    output = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows: dict[str, str] = json.loads(output.splitlines()[-1])
    return rows


def measure(trials: int) -> None:
    """Print the rows of the packages on the path as JSON."""
    from benchmarks.private import laboratory

    with laboratory():
        from benchmarks.generated import generate
        from benchmarks.pages import many_trials

        generate(trials)
        rows = {**lists(), **exports()}
        rows |= experiment(many_trials.stored(DESIGN, many_trials.DESIGNS[DESIGN], 10_000))
    print(json.dumps(rows))


def lists() -> dict[str, str]:
    from django.contrib.auth import get_user_model
    from django.test import Client

    from experiments.models import ApiToken, Measurement, Membership, Project

    member = get_user_model().objects.create(username="member")
    Membership.objects.create(project=Project.objects.get(slug="generated"), user=member, role="viewer")
    browser = Client()
    browser.force_login(member)
    rest = Client(headers={"authorization": f"Bearer {ApiToken.issue(member, 'benchmark')[1]}"})
    first = Measurement.objects.filter(metric="elapsed_s").earliest("pk").trial_id
    sixty = ",".join(Measurement.objects.filter(trial=first, scope="all").values_list("metric", flat=True))
    pages = {
        "trials sorted by a metric, CPU": "/trials/?sort=-elapsed_s",
        "trials of good captures, workload and cluster, sorted, CPU": (
            "/trials/?sort=packets&workload=water&trust=good&cluster=testbed"
        ),
        "trials of 4 hosts and more, sorted, CPU": "/trials/?sort=-elapsed_s&where=hosts+%3E%3D+4&state=finished",
        "trials below a value, sorted, CPU": "/trials/?sort=elapsed_s&where_metrics=elapsed_s%3C5",
        "home, CPU": "/",
        "REST: 50 trials with 60 metrics, by one, CPU": f"/api/v1/trials/?metrics={sixty}&ordering=-metric:elapsed_s",
        "REST: 50 trials of 4 hosts below a value, by a metric": (
            f"/api/v1/trials/?metrics={sixty}&hosts=4&where_metrics=elapsed_s%3C5&ordering=-metric:packets"
        ),
        "REST: 50 configurations with 60 metrics, by a median, CPU": (
            f"/api/v1/configurations/?metrics={sixty}&ordering=-metric:elapsed_s"
        ),
    }
    gc.collect()
    gc.freeze()  # as config.wsgi does
    return {name: _cost(rest if "/api/" in address else browser, address) for name, address in pages.items()}


def _cost(client: Any, address: str, count: int = 15) -> str:
    from statistics import median
    from time import perf_counter

    from benchmarks.explorer import cpu_ms

    if client.get(address).status_code != 200:
        return "none"
    client.get(address)
    times, used = [], cpu_ms()
    for _ in range(count):
        began = perf_counter()
        client.get(address)
        times.append(1000 * (perf_counter() - began))
    return f"{(cpu_ms() - used) / count:.0f} ({median(times):.0f}) ms"


def exports() -> dict[str, str]:
    rows = {}
    for name, form in (("export as Parquet", "parquet"), ("export as CSV", "csv")):
        command = [sys.executable, "-m", "benchmarks.export", "--one", form, "trials"]
        environment = {**os.environ, "PYTHONSAFEPATH": ""}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        _, took, used, _, _, count = map(float, done.stdout.split())
        rows[name] = f"{count / took:.0f} ({count / used:.0f})/s"
    return rows


def experiment(slug: str) -> dict[str, str]:
    from benchmarks.explorer import cpu_ms
    from benchmarks.pages.experiment import reader
    from benchmarks.pages.many_trials import peak_mb
    from experiments.models import Experiment
    from experiments.selectors.diagnosis import diagnosis_of

    def cost(work: Callable[[], Any]) -> float:
        used = cpu_ms()
        work()
        return cpu_ms() - used

    reader().get(f"/experiments/{Experiment.objects.filter(published=True).earliest('pk').slug}/")
    gc.collect()
    gc.freeze()
    idle = peak_mb(anew=True)
    diagnosis = cost(lambda: diagnosis_of(Experiment.objects.get(slug=slug)))
    grown = peak_mb() - idle
    page = f"/experiments/{slug}/"
    views = sorted(cost(lambda: reader().get(page)) for _ in range(7))
    return {
        "later view of an experiment of 10 000 trials, CPU": f"{views[3]:.0f} ms",
        "its first diagnosis, CPU": f"{diagnosis:.0f} ms",
        "memory that the diagnosis adds": f"{grown:.0f} MB",
    }


if __name__ == "__main__":
    raise SystemExit(main())
