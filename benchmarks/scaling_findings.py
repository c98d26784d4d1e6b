"""How long a page waits for the models, the findings and the next points of a study; no figure here is a test.

python -m benchmarks.scaling_findings
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

from analysis.conclusions.rules.report import find
from analysis.scaling import fit_models, suggest_points
from analysis.statistics import HistoryPoint, detect_changes
from tests.analysis.scaling.studies import simulated, usl_time


def _milliseconds(action: Callable[[], object], repetitions: int = 7) -> float:
    action()
    times = []
    for _ in range(repetitions):
        start = perf_counter()
        action()
        times.append(1e3 * (perf_counter() - start))
    return median(times)


def main() -> None:
    for sizes, repetitions in ((6, 5), (12, 10), (24, 20)):
        truth = {
            "elapsed_s": usl_time(100, 0.05, 0.01),
            "cpu_mean_rank_s": lambda n: 90 / n,
            "packets": lambda n: 1e4 * n * n,
        }
        study = simulated(truth, hosts=range(1, sizes + 1), repetitions=repetitions)
        print(f"{sizes} sizes x {repetitions}:", end=" ")
        print(f"fit_models {_milliseconds(partial(fit_models, study)):.0f} ms,", end=" ")
        print(f"find {_milliseconds(partial(find, study)):.0f} ms,", end=" ")
        print(f"suggest_points {_milliseconds(partial(suggest_points, study, budget_trials=25)):.0f} ms")
    for length in (100, 1000):
        history = [HistoryPoint(10.0 + 0.1 * (i % 7) + (i > length // 2)) for i in range(length)]
        print(f"history of {length}: detect_changes {_milliseconds(partial(detect_changes, history)):.0f} ms")


if __name__ == "__main__":
    main()
