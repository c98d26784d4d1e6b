"""Rates and prices of experiments with a goal, simulated with known truth.

python -m benchmarks.goals [PART ...] [--trials 100], all parts without one. Exit status 1 if a rate misses its limit.

null: experiments without any effect that claim one at any round. precision: coverage of the intervals at the stop, and repetitions
against an oracle that knows the scatter and makes the same interval once. listed, explored: best sizes named within the difference that
matters, of listed and of chosen sizes, and trials against a grid in which every size has as many repetitions as the most repeated one.
optimised: settings named by searches of known surfaces, coverage of their confirmed gain, and claims of flat surfaces. demonstration:
trials of the built-in demonstration to a conclusive answer, with five repetitions and the recommended next trials, and with a goal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, log, sqrt
from typing import Any, Final

import numpy as np
from scipy import special

from analysis.conclusions import Answer, ExperimentQuestion, answer
from analysis.conclusions.context import EQUAL, Deciding, Factor, Searched
from analysis.conclusions.exploring import first_sizes
from analysis.conclusions.goals import Decision, decide, share_of
from analysis.conclusions.observations.scatter import VALUE_LEVEL, weight_of_median
from analysis.conclusions.searching import SHARE_OF_SEARCH, Search, confirmation, first_proposals, next_proposals
from analysis.scaling import Point
from analysis.search import Result, Space, key_of
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


DEMONSTRATIONS: Final[Mapping[str, Mapping[int, float]]] = {
    "4 hosts clearly slower": {1: 2.409, 2: 1.838, 4: 2.48},
    "4 hosts a little slower": {1: 2.85, 2: 2.3, 4: 2.5},
}
"""Loop times of `water-quick` on two cores of two machines, s."""


def demonstration(trials: int) -> bool:
    """Print trials to a conclusive answer; return if 95 of 100 of goals' are right.

    Right ones name sizes as fast as the best within what counts as equal: 25 % for a fixed design; the goal is shown with this and with
    its own default.
    """
    print(
        "| times | scatter | design | trials, mean | median | conclusive | right of these |\n|---|---|---|---|---|---|---|"
    )
    right_rows = []
    for times, truth in DEMONSTRATIONS.items():
        for sd in (0.03, 0.05, 0.1, 0.15):
            for name, equal in (("5 repetitions", EQUAL), ("until answered", 1 + MATTERS), ("until answered", EQUAL)):
                counts, right, conclusive = [], 0, 0
                for seed in range(trials):
                    random = np.random.default_rng([6, round(1e3 * sd), seed])
                    made = Simulated(truth, _normal, sd, 0.0, random, equal=equal)
                    result = _goal(made) if name == "until answered" else _fixed(made)
                    counts.append(made.ran)
                    if result.strength == "firm":
                        conclusive += 1
                        right += names_best(result, truth, equal)
                share = right / conclusive if conclusive else 1.0
                if name == "until answered":
                    right_rows.append(share)
                row = f"{100 * conclusive / trials:.0f} % | {100 * share:.0f} %"
                design = f"{name}, equal within {equal - 1:.0%}"
                print(
                    f"| {times} | {sd:.0%} | {design} | {np.mean(counts):.1f} | {np.median(counts):.0f} | {row} |",
                    flush=True,
                )
    return min(right_rows) >= 0.95


def names_best(result: Answer, truth: Mapping[int, float], equal: float) -> bool:
    """Return whether the sizes that an answer recommends are best within ``equal``.

    Sizes that it calls as good are not measurably faster, but may be slower.
    """
    sizes = [int(f.value) for f in result.figures if f.name in ("best size", "enough") and f.value is not None]
    return bool(sizes) and all(truth[size] <= equal * min(truth.values()) for size in sizes)


def _goal(made: Simulated) -> Answer:
    made.to_end(precision=None, at_most=30)
    return answer(made.question())


def _fixed(made: Simulated) -> Answer:
    """Return the answer of five repetitions and up to four queued recommendations."""
    made.run(dict.fromkeys(made.truth, 5))
    for _ in range(4):
        result = answer(replace(made.question(), share=1.0))
        if result.strength == "firm" or result.missing is None or not result.missing.points:
            break
        made.run({int(parameters["hosts"]): count for parameters, count in result.missing.points})
    return answer(replace(made.question(), share=1.0))


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


def _tuned(settings: Mapping[str, Any]) -> float:
    """Return a rate with one broad optimum and an option without effect, as HPL has."""
    near = exp(-0.25 * log(settings["nb"] / 192) ** 2 - 0.07 * abs(log(settings["p"] / 2)))
    return 500 * near


def _ridge(settings: Mapping[str, Any]) -> float:
    """Return a rate whose best tile depends on the other one, with two optima."""
    x, y = log(settings["x"]), log(settings["y"])
    return 100 * (exp(-0.3 * (x + y - 7) ** 2 - 0.05 * (x - y) ** 2) + 0.8 * exp(-0.6 * ((x - 6) ** 2 + (y - 6) ** 2)))


def _choices(settings: Mapping[str, Any]) -> float:
    """Return a rate of four options, of which two work only together."""
    gain: float = (
        1 + 0.1 * (settings["bind"] == "core") + 0.02 * settings["depth"] - 0.01 * (settings["depth"] - 2) ** 2
    )
    return 80 * gain * (1.25 if settings["ring"] == "on" and settings["segment"] >= 64 else 1.0)


SURFACES: Final[Mapping[str, tuple[Mapping[str, Sequence[Any]], Callable[[Mapping[str, Any]], float]]]] = {
    "tuned": ({"nb": range(32, 257, 8), "p": [1, 2, 4], "broadcast": ["a", "b", "c"]}, _tuned),
    "ridge": ({"x": [2**k for k in range(3, 11)] + [48, 96, 192, 384], "y": [2**k for k in range(3, 11)]}, _ridge),
    "choices": (
        {"bind": ["none", "core", "socket"], "depth": range(6), "ring": ["off", "on"], "segment": [1, 4, 16, 64, 256]},
        _choices,
    ),
}
RATE: Final = Deciding("rate", "Rate", "1/s", True)


def search_once(name: str, sd: float, seed: int, *, gain: float = 1.0, noise: Noise = _normal) -> tuple[Any, ...]:
    """Search a surface once in a third of its grid, and confirm.

    Returns trials, truth of the named settings and of the best, and (true gain, interval) of each confirmed candidate. ``gain`` 0 makes the
    surface flat.
    """
    values, rate = SURFACES[name]
    space = Space({key: list(options) for key, options in values.items()}, lambda settings: True)
    start = {key: options[0] for key, options in space.values.items()}
    random, ran = np.random.default_rng([5, len(name), round(1e3 * sd), seed]), 0

    def truth(settings: Mapping[str, Any]) -> float:
        return float(100 * (rate(settings) / 100) ** gain)

    def measured(settings: Mapping[str, Any]) -> float:
        return truth(settings) * float(np.exp(noise(random, sd, 1)[0]))

    results = [Result(settings, measured(settings)) for settings in first_proposals(space, start, seed=seed)]
    most = space.size // 3
    while True:
        search = Search(space, Searched(start, results), {}, True, MATTERS)
        decision = next_proposals(search, seed=seed + len(results))
        if decision is None or len(results) + len(decision.more) > SHARE_OF_SEARCH * most:
            break
        results += [Result(settings, measured(settings)) for settings, _ in decision.more]
    ran, decision = len(results), confirmation(search, AT_LEAST)
    fresh: dict[str, tuple[Mapping[str, Any], list[float]]] = {}
    factors = [Factor(key, key, "treatment") for key in space.values]
    looks = 0
    while decision.more and ran + decision.trials <= most:
        for settings, count in decision.more:
            fresh.setdefault(key_of(settings), (settings, []))[1].extend(measured(settings) for _ in range(count))
        ran, looks = ran + decision.trials, looks + 1
        points = [Point(dict(settings), {RATE.metric: trials}) for settings, trials in fresh.values()]
        question = ExperimentQuestion(
            points=points,
            deciding=RATE,
            factors=factors,
            share=share_of(looks),
            equal=1 + MATTERS,
            search=Searched(start, results),
        )
        decision = decide(question, precision=None, at_most=12)
        if decision.outcome != "continue":
            break
    figures = [f for f in answer(question).figures if f.name == "times the start" and f.low is not None]
    gains = [(truth(f.where) / truth(start), f.low, f.high) for f in figures]
    best = max(map(truth, space.combinations()))
    return ran, space.size, truth(figures[0].where), best, gains


def optimised(trials: int) -> bool:
    """Print how near the named settings are to the best, and coverage of their gain."""
    print(
        "| surface | scatter | trials | grid | within 2 % | of the best, mean | coverage | claims of a flat surface |"
    )
    print("|---|---|---|---|---|---|---|---|")
    near_rows, covered_rows, null_rows = [], [], []
    for name in SURFACES:
        for sd in (0.01, 0.05):
            near = covered = intervals = claims = ran = 0
            shares = []
            for seed in range(trials):
                used, grid, value, best, gains = search_once(name, sd, seed)
                ran, near = ran + used, near + (value >= (1 - MATTERS) * best)
                shares.append(value / best)
                intervals += len(gains)
                covered += sum(low <= true <= high for true, low, high in gains)
                *_, flat = search_once(name, sd, seed, gain=0.0)
                claims += any(low > 1 or high < 1 for _, low, high in flat)
            near_rows.append(near / trials)
            covered_rows.append(covered / intervals)
            null_rows.append(claims / trials)
            row = f"{100 * near / trials:.0f} % | {100 * np.mean(shares):.1f} % | {100 * covered / intervals:.1f} %"
            print(
                f"| {name} | {sd:.0%} | {ran / trials:.0f} | {grid} | {row} | {100 * claims / trials:.0f} % |",
                flush=True,
            )
    print(
        f"\nwithin 2 %: mean {np.mean(near_rows):.0%}; least coverage {min(covered_rows):.1%}; null {np.mean(null_rows):.1%}\n"
    )
    return min(covered_rows) >= 0.94 and float(np.mean(null_rows)) <= 0.05


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {
        "null": null,
        "precision": precise,
        "listed": listed,
        "explored": explored,
        "optimised": optimised,
        "demonstration": demonstration,
    }
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--trials", type=int, default=100)
    options = parser.parse_args(arguments)
    return int(not all(parts[name](options.trials) for name in options.parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
