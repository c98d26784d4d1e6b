"""Rates and prices of experiments with a goal, simulated with known truth.

python -m benchmarks.goals [null] [precision] [answered] [--trials 100]. Exit status 1 if a rate misses its limit.

null: experiments without any effect that claim one at any round. precision: coverage of the intervals at the stop, and repetitions
against an oracle that knows the scatter and makes the same interval once. answered: best sizes named within the difference that matters,
and trials against a grid in which every size has as many repetitions as the most repeated one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import expm1, sqrt
from typing import Final

import numpy as np
from scipy import special

from analysis.conclusions import Answer, ExperimentQuestion, answer
from analysis.conclusions.exploring import first_sizes
from analysis.conclusions.goals import Decision, decide, share_of
from analysis.conclusions.observations.scatter import VALUE_LEVEL, weight_of_median
from analysis.scaling import Point
from tests.analysis.conclusions.truth import HOSTS, TIME

MATTERS: Final = 0.02
AT_LEAST: Final = 3
_METRIC: Final = TIME.metric
Noise = Callable[[np.random.Generator, float, int], np.ndarray]


def _normal(random: np.random.Generator, sd: float, n: int) -> np.ndarray:
    return random.normal(0, sd, n)


def _heavy(random: np.random.Generator, sd: float, n: int) -> np.ndarray:
    return sd * random.standard_t(3, n)


def _outliers(random: np.random.Generator, sd: float, n: int) -> np.ndarray:
    return random.normal(0, sd, n) + np.where(random.random(n) < 0.05, 10 * sd, 0.0)


NOISES: Final[Mapping[str, tuple[Noise, float]]] = {
    "log-normal": (_normal, 0.0),
    "heavy tails (t, 3)": (_heavy, 0.0),
    "outlier in 20": (_outliers, 0.0),
    "drift 0.1 % per trial": (_normal, 0.001),
}
SCATTERS: Final = (0.01, 0.05, 0.2)
KNEES: Final = (1, 2, 4, 6, 12, 24)
SIZES: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass
class Simulated:
    """A simulated experiment with a goal; blocks of its trials are interleaved."""

    truth: Mapping[int, float]
    noise: Noise
    sd: float
    drift: float
    random: np.random.Generator
    equal: float = 1 + MATTERS
    ran: int = 0
    values: dict[int, list[float]] = field(default_factory=dict)
    order: dict[int, list[int]] = field(default_factory=dict)
    rounds: int = 0

    def run(self, more: Mapping[int, int]) -> None:
        """Run so many trials of each size, in blocks of alternating direction."""
        for number in range(max(more.values())):
            sizes = [size for size, count in more.items() if number < count]
            for size in sizes[:: -1 if number % 2 else 1]:
                log = float(self.noise(self.random, self.sd, 1)[0]) + self.drift * self.ran
                self.values.setdefault(size, []).append(self.truth[size] * float(np.exp(log)))
                self.order.setdefault(size, []).append(self.ran)
                self.ran += 1
        self.rounds += 1

    def question(self) -> ExperimentQuestion:
        points = [
            Point({"hosts": size}, {_METRIC: values}, order={_METRIC: self.order[size]})
            for size, values in sorted(self.values.items())
        ]
        share = share_of(self.rounds)
        return ExperimentQuestion(points=points, deciding=TIME, factors=[HOSTS], share=share, equal=self.equal)

    def to_end(
        self, *, precision: float | None, at_most: int, seen: list[bool] | None = None, sizes: Sequence[int] = ()
    ) -> Decision:
        """Run rounds to the end; ``seen`` gets whether each claims a best size."""
        self.run(dict.fromkeys(first_sizes(sizes) if sizes else self.truth, AT_LEAST))
        while True:
            question = self.question()
            if seen is not None:
                result = answer(question)
                seen.append(result.strength != "open" and 0 < len(best_sizes(result)) < len(self.truth))
            decision = decide(question, precision=precision, at_most=at_most, at_least=AT_LEAST, sizes=sizes)
            if decision.outcome != "continue":
                return decision
            self.run({int(parameters["hosts"]): count for parameters, count in decision.more})


def best_sizes(result: Answer) -> set[float]:
    return {float(f.value) for f in result.figures if f.name in ("best size", "as good") and f.value is not None}


def null(trials: int) -> bool:
    """Print how many experiments without an effect claim one; return if few do."""
    print(
        "| sizes | noise | scatter | at most | claims at any round | claims at the stop | mean rounds |\n|---|---|---|---|---|---|---|"
    )
    rates = []
    for sizes in (2, 3, 5):
        for name, (noise, drift) in NOISES.items():
            for sd in SCATTERS[1:]:
                for at_most in (30, 100):
                    ever = stop = rounds = 0
                    for seed in range(trials):
                        claims: list[bool] = []
                        random = np.random.default_rng([1, sizes, round(1e3 * sd), at_most, seed])
                        made = Simulated(dict.fromkeys(range(1, sizes + 1), 10.0), noise, sd, drift, random)
                        made.to_end(precision=None, at_most=at_most, seen=claims)
                        ever, stop, rounds = ever + any(claims), stop + claims[-1], rounds + made.rounds
                    rates.append(ever / trials)
                    row = f"{100 * ever / trials:.1f} % | {100 * stop / trials:.1f} % | {rounds / trials:.1f}"
                    print(f"| {sizes} | {name} | {sd:.0%} | {at_most} | {row} |", flush=True)
    mean = float(np.mean(rates))
    print(f"\nmean of all rows: {mean:.1%} claim anything at any round\n")
    return mean <= 0.05


def precise(trials: int) -> bool:
    """Print coverage and repetitions at the stop; return if all limits hold."""
    print(
        "| sizes | noise | scatter | precision | coverage | repetitions | oracle | ratio |\n|---|---|---|---|---|---|---|---|"
    )
    covered_rows, ratios = [], []
    for sizes in (1, 4):
        for name, (noise, drift) in NOISES.items():
            for sd in SCATTERS:
                precision = 0.03 if sd < 0.2 else 0.1
                covered = points = repetitions = 0
                for seed in range(trials):
                    random = np.random.default_rng([2, sizes, round(1e3 * sd), seed])
                    truth = {2**k: 20.0 / 2**k for k in range(sizes)}
                    made = Simulated(truth, noise, sd, drift, random, equal=1.25)
                    decision = made.to_end(precision=precision, at_most=300)
                    for number in decision.numbers:
                        size = int(number["where"]["hosts"])
                        middle = truth[size] * float(np.exp(drift * np.median(made.order[size])))
                        covered += number["low"] <= middle <= number["high"]
                        points += 1
                    repetitions += made.ran
                mean = repetitions / trials / sizes
                oracle = _oracle(sd, precision)
                covered_rows.append(covered / points)
                if noise is _normal and not drift:
                    ratios.append(mean / oracle)
                print(
                    f"| {sizes} | {name} | {sd:.0%} | {precision:.0%} | {100 * covered / points:.1f} % | {mean:.1f} | {oracle} | "
                    f"{mean / oracle:.2f} |",
                    flush=True,
                )
    print(f"\nleast coverage {min(covered_rows):.1%}; mean ratio to the oracle, log-normal: {np.mean(ratios):.2f}\n")
    return min(covered_rows) >= 0.94 and float(np.mean(ratios)) <= 1.3


def _oracle(sd: float, precision: float) -> int:
    """Return the repetitions of a fixed design that knows the scatter."""
    z = float(special.ndtri((1 + VALUE_LEVEL) / 2))
    return next(n for n in range(AT_LEAST, 10_000) if expm1(z * sd / sqrt(weight_of_median(n))) <= precision)


def knee(best: int) -> dict[int, float]:
    """Return times of Amdahl's law with a part that grows; ``best`` is fastest."""
    return {size: 100 * (1 / size + size / best**2 + 0.1) for size in range(1, SIZES[-1] + 1)}


def powers(best: int) -> dict[int, float]:
    """Return times that the scaling law of the policy does not describe."""
    return {size: 100 * (size**-0.7 + 0.7 / 1.3 / best**2 * size**1.3) for size in range(1, SIZES[-1] + 1)}


def listed(trials: int) -> bool:
    return answered(trials, explores=False)


def explored(trials: int) -> bool:
    return answered(trials, explores=True)


def answered(trials: int, *, explores: bool) -> bool:
    """Print how often the named size is right; return if all limits hold."""
    print("| best size | scatter | right | conclusive | trials | grid | share |\n|---|---|---|---|---|---|---|")
    right_rows, shares = [], []
    for shape, best in [*((knee, k) for k in KNEES), *((powers, k) for k in KNEES if explores)]:
        whole = shape(best)
        truth = whole if explores else {size: whole[size] for size in SIZES}
        for sd in (0.01, 0.05, 0.1):
            right = conclusive = ran = grid = 0
            for seed in range(trials):
                random = np.random.default_rng([3, best, round(1e3 * sd), seed])
                made = Simulated(truth, _normal, sd, 0.0, random)
                decision = made.to_end(precision=None, at_most=30, sizes=range(1, 65) if explores else ())
                named = best_sizes(answer(made.question()))
                right += bool(named) and min(truth[int(size)] for size in named) <= (1 + MATTERS) * min(truth.values())
                conclusive += decision.outcome == "answered"
                ran += made.ran
                grid += len(SIZES) * max(map(len, made.values.values()))
            right_rows.append(right / trials)
            shares.append(ran / grid)
            row = f"{100 * right / trials:.0f} % | {100 * conclusive / trials:.0f} % | {ran / trials:.0f} | {grid / trials:.0f}"
            print(f"| {shape.__name__} {best} | {sd:.0%} | {row} | {ran / grid:.2f} |", flush=True)
    print(f"\nleast right {min(right_rows):.0%}; trials of the grid, mean {np.mean(shares):.2f}\n")
    return min(right_rows) >= 0.95 and float(np.mean(shares)) <= 0.5


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"null": null, "precision": precise, "listed": listed, "explored": explored}
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args(arguments)
    return int(not all(parts[name](options.trials) for name in options.parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
