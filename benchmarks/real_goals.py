"""Real experiments with a goal on this machine: chosen sizes, best settings.

    python -m benchmarks.real_goals [explore] [hpl] [lammps] [--minutes 10]

explore: `water` on 1 to 8 virtual hosts, of which rounds choose, until it is answered. hpl: NB and P of HPL (Q follows). lammps:
skin, sorting of atoms and `newton` of a Lennard-Jones melt, by the CPU time of the process, which other load hardly changes. Prints
each round with its reason, then time, trials and the answer. Exit status 1 if explore takes longer than 3 minutes, or no settings are
better than the start.
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
    "goal": {"until": "answered", "matters": "25 %", "budget": {"time": "10 min"}},
}
HPL: Final[dict[str, Any]] = {
    "name": "HPL",
    "workload": "hpl",
    "cluster": "local",
    "parameters": {"ns": 2000, "hosts": 1, "ranks_per_host": 2},
    "transport": "native",  # over loopback's TCP, the other tests of HPC Challenge take most of a trial
    "sweep": {"nb": [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 224, 256], "p": [1, 2]},
    "repetitions": {"at_least": 3, "at_most": 20},
    "capture": {"enabled": False},
    "time_limit_s": 120,
}
MELT: Final = """\
units lj
atom_style atomic
newton {newton}
lattice fcc 0.8442
region box block 0 12 0 12 0 12
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor {skin} bin
neigh_modify every 1 delay 0 check yes
atom_modify sort {sort} 0.0
fix 1 all nve
thermo 1000
run 150
"""
LAMMPS: Final[dict[str, Any]] = {
    "name": "LAMMPS",
    "workload": "command",
    "cluster": "local",
    "parameters": {
        "program": ["lmp", "-in", "in.melt", "-log", "none"],
        "inputs": {"in.melt": MELT},
        "placeholders": {
            "skin": {"type": "number", "default": 1.0},
            "sort": {"type": "integer", "default": 1000},
            "newton": {"type": "text", "default": "on", "choices": ["on", "off"]},
        },
        "hosts": 1,
    },
    "sweep": {
        "skin": [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2],
        "sort": [0, 10, 100, 1000],
        "newton": ["on", "off"],
    },
    "repetitions": {"at_least": 3, "at_most": 20},
    "capture": {"enabled": False},
    "time_limit_s": 120,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ("explore", "hpl", "lammps")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
    is_right = True
    budget = {"time": 60 * options.minutes}
    with laboratory():
        if "explore" in options.parts:
            from experiments.library import FIRST_STUDY

            study = yaml.safe_load(FIRST_STUDY.read_text())
            seconds, answer = run({**study, **EXPLORED}, "testbed")
            is_right &= answer.strength == "firm" and seconds <= LONGEST_S
        for part, data, metric in (("hpl", HPL, "hpl.gflops"), ("lammps", LAMMPS, "cpu_s")):
            if part in options.parts:
                _, answer = run({**data, "goal": {"optimise": metric, "budget": budget}}, "local")
                best = answer.figure("times the start")
                is_right &= best is not None and (best.low or 0) > 1
    return int(not is_right)


def run(data: dict[str, Any], cluster: str) -> tuple[float, Any]:
    """Run an experiment to its end; return its seconds and its answer."""
    from django.db.models import Count, Max, Min

    from experiments.library import load_defaults
    from experiments.models import Cluster
    from experiments.selectors.diagnosis import diagnosis_of
    from experiments.specification import parse
    from workers import queue, rounds, tasks

    experiment = queue.submit(parse(data), project=load_defaults())
    while row := experiment.rounds.filter(outcome="").first():
        tasks.work(Cluster.objects.get(slug=cluster).pk)
        rounds.decide_due()
        row.refresh_from_db()
        reason = f"{row.outcome or 'open'}. {row.reason}"
        print(f"round {row.number}, {row.phase or 'trials'}, {row.queued}: {reason}", flush=True)
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
