"""Fifty readers beside a measured trial: their errors and waits, its slow-down.

    python -m benchmarks.readers [--people 50] [--seconds 60] [--trials 2000] [--rounds 6] [--hosts 1]

A private PostgreSQL and Redis, a repository of generated trials, and the web server as `script/server` starts it. Each reader opens a
page or a list, reads it for two to ten seconds, and follows to the next. Then trials of one experiment (LAMMPS on virtual hosts, a rank
each) run in turn with readers and without, in changing order; the effect is the mean ratio of pairs that follow each other, with its
interval of 95 %. Exit status 1 beyond a bound.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import math
import multiprocessing
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any

from scipy import stats

from benchmarks.private import laboratory
from config.services.lease import ROOT

LIMIT_MS, MOST_EFFECT = 300.0, 3.0
READ_S = (2.0, 10.0)
WATER = {
    "name": "beside readers",
    "workload": "water",
    "parameters": {"molecules": 512, "steps": 300},
    "cluster": "testbed",
    "certificate": "skip",
    "repetitions": 1,
}
Answer = tuple[str, int, float]
"""Kind of page, status, seconds."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--hosts", type=int, default=1, help="of a trial; each keeps a core busy")
    parser.add_argument("--niceness", type=int, default=0, help="of the web server")
    options = parser.parse_args()
    with laboratory():
        from benchmarks.generated import generate

        generate(options.trials)
        pages, cookies = addresses(), sessions(options.people)
        measure_one(options.hosts)  # compiles the kernels
        with web_server(options.niceness) as port:
            for kind, page in pages:  # whatever a process loads at a first use
                ask(port, cookies[0], kind, page)
            begun, answers = readers(port, pages, cookies, options.seconds)
            reported = report(begun, answers)
            effect = effect_on_trials(port, pages, cookies, options)
    low, mean, high = effect
    print(f"elapsed time of a trial beside them: {mean:+.1f} % ({low:+.1f} to {high:+.1f})")
    return 0 if reported and mean < MOST_EFFECT else 1


def addresses() -> list[tuple[str, str]]:
    """(kind, address) of what people read."""
    from experiments.models import Configuration, Experiment, Trial

    slugs = list(Experiment.objects.filter(project__slug="generated").values_list("slug", flat=True)[:20])
    trials = Trial.objects.filter(experiment__project__slug="generated").values_list("pk", flat=True)[:200:10]
    some = Configuration.objects.filter(experiment__slug=slugs[0]).select_related("experiment__cluster")[:5]
    pages = [("home", "/"), ("experiments", "/experiments/"), ("trials", "/trials/")]
    pages += [("trials, sorted", "/trials/?sort=-elapsed_s"), ("explorer", "/explore/"), ("histories", "/history/")]
    pages += [("experiment", f"/experiments/{slug}/") for slug in slugs]
    pages += [("trial", f"/trials/{number}/") for number in trials]
    pages += [("comparison", f"/compare/?of=e:{one},e:{other}") for one, other in itertools.pairwise(slugs[:6])]
    pages += [("history", f"/history/{c.hash}/{c.experiment.cluster.slug}/") for c in some if c.experiment.cluster]
    pages += [("REST, trials", "/api/v1/trials/?limit=50")]
    return pages


def sessions(people: int) -> list[str]:
    """A signed-in browser's cookie for each."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from experiments.models import Membership, Project

    project, cookies = Project.objects.get(slug="generated"), []
    for number in range(people):
        reader = get_user_model().objects.create_user(f"reader-{number}")
        Membership.objects.create(project=project, user=reader, role="viewer")
        client = Client()
        client.force_login(reader)
        cookies.append(f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}")
    return cookies


@contextmanager
def web_server(niceness: int) -> Iterator[int]:
    """Its port, once it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, number = listener.getsockname()[1], listener.fileno()
        argv = ["nice", "-n", str(niceness), sys.executable, "-m", "gunicorn", "--config", "python:config.gunicorn"]
        argv += ["config.wsgi:application", "--bind", f"fd://{number}", "--access-logfile", os.devnull]
        # Style sheets as they lie in the sources.
        process = subprocess.Popen(argv, cwd=ROOT, pass_fds=[number], env={**os.environ, "RANKWIRE_DEBUG": "1"})
    try:
        deadline = time.monotonic() + 120
        while ask(port, "", "health", "/healthz")[1] != 200:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the web server does not answer")
            time.sleep(0.1)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def ask(port: int, cookie: str, kind: str, page: str) -> Answer:
    """One answer; status 0 where there was none."""
    began = time.perf_counter()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        client.request("GET", page, headers={"Cookie": cookie, "Accept-Encoding": "gzip"})
        answer = client.getresponse()
        answer.read()
        return kind, answer.status, time.perf_counter() - began
    except (OSError, http.client.HTTPException):
        return kind, 0, time.perf_counter() - began
    finally:
        client.close()


def readers(
    port: int, pages: Sequence[tuple[str, str]], cookies: Sequence[str], seconds: float
) -> tuple[float, list[Answer]]:
    """All of them for so long, in a process of their own."""
    end, begun = multiprocessing.Event(), time.monotonic()
    with multiprocessing.Pool(1, _keep, (end,)) as apart:
        asked = apart.apply_async(crowd, (port, pages, cookies))
        time.sleep(seconds)
        end.set()
        return time.monotonic() - begun, asked.get(120)


_end: Event


def _keep(end: Event) -> None:
    global _end
    _end = end


def crowd(port: int, pages: Sequence[tuple[str, str]], cookies: Sequence[str]) -> list[Answer]:
    answers: list[Answer] = []

    def read(number: int, cookie: str) -> None:
        chance = random.Random(number)
        pause_s = chance.uniform(0, READ_S[1])  # they do not come at once
        while not _end.wait(pause_s):
            answers.append(ask(port, cookie, *chance.choice(pages)))
            pause_s = chance.uniform(*READ_S)

    people = [threading.Thread(target=read, args=each) for each in enumerate(cookies)]
    for each in people:
        each.start()
    for each in people:
        each.join()
    return answers


def report(seconds: float, answers: Sequence[Answer]) -> bool:
    """Print what they waited for; whether nothing failed and all was quick."""
    statuses = Counter(status for _, status, _ in answers)
    print(
        f"{len(answers)} pages in {seconds:.0f} s, statuses {dict(statuses)}; milliseconds (median, 95th percentile, most):"
    )
    kinds = ["all", *sorted({kind for kind, _, _ in answers})]
    for kind in kinds:
        times = sorted(1000 * took for of, _, took in answers if kind in ("all", of))
        quick = times[min(len(times) - 1, int(0.95 * len(times)))]
        print(f"| {kind} | {len(times)} | {statistics.median(times):.0f} | {quick:.0f} | {times[-1]:.0f} |", flush=True)
        if kind == "all":
            good = set(statuses) == {200} and quick < LIMIT_MS
    return good


def measure_one(hosts: int) -> float:
    """Elapsed time of a trial."""
    from experiments.library import load_defaults
    from experiments.models import Measurement
    from experiments.specification import parse
    from workers import queue, tasks

    experiment: Any = queue.submit(parse({**WATER, "sweep": {"hosts": [hosts]}}), project=load_defaults())
    tasks.work(experiment.cluster_id)
    return Measurement.objects.get(trial__experiment=experiment, metric="elapsed_s", scope="all").value


def effect_on_trials(
    port: int, pages: Sequence[tuple[str, str]], cookies: Sequence[str], options: argparse.Namespace
) -> tuple[float, float, float]:
    """Return percent between trials with readers and without: low, mean, high."""
    ratios = []
    for number in range(options.rounds):
        times = {}
        for watched in (True, False) if number % 2 else (False, True):
            end = multiprocessing.Event()
            with multiprocessing.Pool(1, _keep, (end,)) as apart:
                asked = apart.apply_async(crowd, (port, pages, cookies)) if watched else None
                time.sleep(1)
                times[watched] = measure_one(options.hosts)
                end.set()
                if asked:
                    asked.get(120)
        ratios.append(math.log(times[True] / times[False]))
        print(f"  with {times[True]:.2f} s, without {times[False]:.2f} s", flush=True)
    mean = statistics.mean(ratios)
    half = float(stats.t.ppf(0.975, options.rounds - 1)) * statistics.stdev(ratios) / math.sqrt(options.rounds)
    low, middle, high = (100 * math.expm1(each) for each in (mean - half, mean, mean + half))
    return low, middle, high


if __name__ == "__main__":
    raise SystemExit(main())
