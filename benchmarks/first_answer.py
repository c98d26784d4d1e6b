"""Time and trials to a conclusive answer: fixed design against `until: answered`.

    python -m benchmarks.first_answer [--pairs 6] [--matters "25 %"] [--json FILE]

Runs the built-in demonstration on the test-bed as a fixed design (`repetitions: 5`) and with a goal, in changing order. If the fixed
design ends without a conclusive answer, its recommended next trials are queued, as users do, up to four times. A fixed design counts
sizes within 25 % as equal: with a smaller `matters` the goal answers a harder question. Time is that from the start of the first
trial to the end of the last one. Reported are medians, and the median of the ratios with its 95 % interval by ranks.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from scipy import stats

from analysis.conclusions.context import EQUAL
from benchmarks.private import laboratory
from experiments.common.quantities import FRACTION

MOST_EXTENSIONS: Final = 4
DESIGNS: Final[dict[str, dict[str, Any]]] = {
    "fixed": {"repetitions": 5},
    "answered": {
        "repetitions": {"at_least": 3, "at_most": 30},
        "goal": {"until": "answered", "matters": FRACTION.format(EQUAL - 1), "budget": {"time": "10 min"}},
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--matters", default=DESIGNS["answered"]["goal"]["matters"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    DESIGNS["answered"]["goal"]["matters"] = options.matters
    os.environ["RANKWIRE_LOG_LEVEL"] = "ERROR"
    rows: list[dict[str, dict[str, Any]]] = []
    with laboratory():
        run("warm-up", {"repetitions": 1}, most_extensions=0)
        names = list(DESIGNS)
        for _ in range(options.pairs):
            names.reverse()
            rows.append({})
            for name in names:
                rows[-1][name] = run(name, DESIGNS[name])
                print(name, rows[-1][name], flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    for name in DESIGNS:
        of_design = [row[name] for row in rows]
        conclusive = sum(run["strength"] == "firm" for run in of_design)
        middle = {key: statistics.median(run[key] for run in of_design) for key in ("seconds", "trials")}
        print(
            f"{name}: {middle['seconds']:.0f} s, {middle['trials']:.0f} trials, conclusive {conclusive} of {len(rows)}"
        )
    for key in ("seconds", "trials"):
        typical, low, high = ratio([row["answered"][key] / row["fixed"][key] for row in rows])
        print(f"{key}, answered to fixed: {typical:.2f} ({low:.2f} to {high:.2f})")
    return 0


def run(name: str, changes: dict[str, Any], most_extensions: int = MOST_EXTENSIONS) -> dict[str, Any]:
    """Run the demonstration to a conclusive answer; return its time and trials."""
    from django.db.models import Max, Min

    from experiments.library import FIRST_STUDY, load_defaults
    from experiments.models import Cluster
    from experiments.revision import add_points, plan_points
    from experiments.selectors.diagnosis import diagnosis_of
    from experiments.selectors.question import question_of
    from experiments.selectors.study import study_of
    from experiments.specification import parse
    from workers import queue, tasks

    study = yaml.safe_load(FIRST_STUDY.read_text())
    without_goal = {key: value for key, value in study.items() if key != "goal"}
    experiment = queue.submit(parse({**without_goal, "name": name, **changes}), project=load_defaults())
    cluster, extensions = Cluster.objects.get(slug="testbed").pk, 0
    while True:
        tasks.work(cluster)
        made = diagnosis_of(experiment)
        is_final = made.answer.strength == "firm" or "goal" in changes or extensions == most_extensions
        if is_final or not (more := plan_points(experiment, made.suggested)):
            break
        extensions += bool(add_points(experiment, more))
        experiment.refresh_from_db()
    ended = experiment.trials.filter(ended_at__isnull=False)
    ends = ended.aggregate(first=Min("preparing_at"), last=Max("ended_at"))
    question = question_of(experiment, study_of(experiment, with_traffic=False))
    return {
        "seconds": round((ends["last"] - ends["first"]).total_seconds(), 1),
        "trials": ended.count(),
        "failed": ended.exclude(state="finished").count(),
        "extensions": extensions,
        "rounds": experiment.rounds.count(),
        "strength": made.answer.strength,
        "answer": made.answer.sentence,
        "values": {str(point.parameters["hosts"]): list(question.values(point)) for point in question.measured()},
        "load": round(os.getloadavg()[0], 1),
    }


def ratio(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % interval by ranks; six values are needed."""
    ordered = sorted(values)
    skipped = max(1, int(stats.binom.ppf(0.025, len(ordered), 0.5)))
    return statistics.median(ordered), ordered[skipped - 1], ordered[-skipped]


if __name__ == "__main__":
    raise SystemExit(main())
