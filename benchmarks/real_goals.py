"""Real experiments with a goal on this machine: chosen sizes of water, best settings of HPL.

    python -m benchmarks.real_goals [explore] [optimise] [--minutes 10]

explore: `water` on 1 to 8 virtual hosts, of which rounds choose, until it is answered. optimise: NB, P (Q follows) and the broadcast of HPL on
this machine, within the budget of time. Prints each round with its reason, then time, trials and the answer. Exit status 1 if explore takes
longer than 3 minutes, or the settings are not better than the defaults.
"""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

import yaml

from benchmarks.private import laboratory

LONGEST_S: Final = 180.0
EXPLORED: Final[dict[str, Any]] = {
    "name": "explored",
    "sweep": {"hosts": {"from": 1, "to": 8, "explore": True}},
    "repetitions": {"at_least": 3, "at_most": 30},
    "goal": {"until": "answered", "matters": "5 %", "budget": {"time": "10 min"}},
}
OPTIMISED: Final[dict[str, Any]] = {
    "name": "optimised",
    "workload": "hpl",
    "cluster": "local",
    "parameters": {"ns": 1000, "hosts": 1, "ranks_per_host": 2},
    "sweep": {"nb": {"from": 16, "to": 256, "step": 16}, "p": [1, 2], "bcast": [0, 1, 3]},
    "repetitions": {"at_least": 3, "at_most": 20},
    "capture": {"enabled": False},
    "time_limit_s": 120,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=["explore", "optimise", []], default=["explore", "optimise"])
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
    is_right = True
    with laboratory():
        if "explore" in options.parts:
            from experiments.library import FIRST_STUDY

            study = yaml.safe_load(FIRST_STUDY.read_text())
            seconds, answer = run({**study, **EXPLORED}, "testbed")
            is_right &= answer.strength == "firm" and seconds <= LONGEST_S
        if "optimise" in options.parts:
            goal = {"optimise": "hpl.gflops", "budget": {"time": 60 * options.minutes}}
            _, answer = run({**OPTIMISED, "goal": goal}, "local")
            best = answer.figure("times the start")
            is_right &= best is not None and (best.low or 0) > 1
    return int(not is_right)


def run(data: dict[str, Any], cluster: str) -> tuple[float, Any]:
    """Run an experiment to its end; return the time from first to last trial and the answer."""
    from django.db.models import Count, Max, Min

    from experiments.library import load_defaults
    from experiments.models import Cluster
    from experiments.selectors.diagnosis import diagnosis_of
    from experiments.specification import parse
    from workers import queue, tasks

    experiment = queue.submit(parse(data), project=load_defaults())
    while experiment.rounds.filter(outcome="").exists():
        tasks.work(Cluster.objects.get(slug=cluster).pk)
        tasks.rounds.decide_due()
    for row in experiment.rounds.all():
        print(f"round {row.number}, {row.phase or 'trials'}, {row.queued}: {row.outcome}. {row.reason}")
    ends = experiment.trials.aggregate(first=Min("preparing_at"), last=Max("ended_at"))
    seconds = (ends["last"] - ends["first"]).total_seconds()
    answer = diagnosis_of(experiment).answer
    states = dict(experiment.trials.values_list("state").annotate(Count("pk")).order_by())
    print(f"{experiment.name}: {seconds:.0f} s, trials {states}, load {os.getloadavg()[0]:.0f}")
    print(f"{answer.strength}: {answer.sentence}")
    for figure in answer.figures:
        print(f"  {figure.name} {figure.value} ({figure.low} to {figure.high}) {dict(figure.where)}", flush=True)
    return seconds, answer


if __name__ == "__main__":
    raise SystemExit(main())
