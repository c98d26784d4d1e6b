"""Rate of right, silent and wrong head lines on simulated experiments.

Their truth is known. Takes up to five minutes. python -m benchmarks.answers [--trials 100] [--seconds 180] [--order
sequential] python -m benchmarks.answers --drift [--trials 100] [--seconds 180]
python -m benchmarks.answers --recommended [--trials 100] [--seconds 180]

--order: the order of the trials is known to the answer. --drift: conclusive and false answers of experiments without any effect whose
trials are slower, each by so much than the one before. --recommended: the share of recommended repetitions that settle the answer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from time import perf_counter
from typing import Final, get_args

import numpy as np

from analysis.conclusions.observations.scatter import SimultaneousIntervals
from analysis.statistics import compare_groups
from tests.analysis.conclusions.checks import check
from tests.analysis.conclusions.truth import (
    EFFECTS,
    QUESTIONS,
    REPETITIONS,
    SCATTERS,
    Design,
    Order,
    answered,
    flat,
)

DRIFTS = (0.0, 0.002, 0.005, 0.01, 0.02)

WRONG: Final = 0.05
SETTLED: Final = 0.8
"""Least share of recommendations of repetitions that settle the answer."""

COMPARED: Final = (1.0, 1.05, 1.2, 2.0, 10.0)
"""Ratios of two sides that are compared."""


def tally(
    question: str,
    effect: float,
    sd: float,
    repetitions: int,
    trials: int,
    *,
    prior: bool = False,
    order: Order | None = None,
    drift: float = 0.0,
) -> tuple[Counter[str], int]:
    """Return the verdicts of so many experiments, and how many answers break a check."""
    random = np.random.default_rng([sum(map(ord, question)), round(100 * effect), round(1000 * sd), repetitions, prior])
    design, verdicts, broken = QUESTIONS[question](effect), Counter[str](), 0
    for _ in range(trials):
        experiment = design.simulate(sd, repetitions, random, prior=prior, order=order, drift=drift)
        result, verdict = answered(design, experiment)
        verdicts[verdict] += 1
        verdicts[f"conclusive, {verdict}"] += result.strength == "firm"
        broken += bool(check(result, experiment))
    return verdicts, broken


def drifts(trials: int, seconds: float) -> int:
    """Print how many experiments of 100 without any effect claim one.

    Return 1 if over 5 are conclusive and false, on average of an order.
    """
    start, head = perf_counter(), [f"{drift:.1%}" for drift in DRIFTS]
    means: dict[Order, list[float]] = defaultdict(list)
    print("conclusive and false of 100 experiments, mean (largest) over 3 to 6 sizes, by drift per trial\n")
    print(f"| question | order | scatter | repetitions | {' | '.join(head)} |")
    print("|---" * (len(head) + 4) + "|")
    for kind in (("sizes",), ("treatment", "growth", "network", "steps", "message size", "scale and treatment")):
        for order in get_args(Order):
            for sd in SCATTERS[:2]:
                for repetitions in REPETITIONS[1:]:
                    if perf_counter() - start > seconds:
                        print("time is up")
                        return 1
                    designs = (
                        [flat(n) for n in range(3, 7)] if kind == ("sizes",) else [QUESTIONS[q](1.0) for q in kind]
                    )
                    false = [_false(designs, sd, repetitions, trials, order, drift) for drift in DRIFTS]
                    means[order] += map(fmean, false)
                    row = [f"{fmean(shares):.1f} ({max(shares):.0f})" for shares in false]
                    name = "size" if kind == ("sizes",) else "six others"
                    print(f"| {name} | {order} | {sd:.0%} | {repetitions} | {' | '.join(row)} |", flush=True)
    return int(max(map(fmean, means.values())) > 100 * WRONG)


def _false(
    designs: Sequence[Design], sd: float, repetitions: int, trials: int, order: Order, drift: float
) -> list[float]:
    shares = []
    for number, design in enumerate(designs):
        random, false = np.random.default_rng([number, round(1000 * sd), repetitions, round(1e4 * drift)]), 0
        for _ in range(trials):
            result, verdict = answered(design, design.simulate(sd, repetitions, random, order=order, drift=drift))
            false += result.strength == "firm" and verdict == "wrong"
        shares.append(100 * false / trials)
    return shares


@dataclass(frozen=True, slots=True)
class Recommended:
    """What became of the answers that recommended repetitions."""

    right: int
    """Settled by the recommended repetitions."""
    promised: int
    open_ended: int
    """Recommended "to over 20": no promise."""
    asked: tuple[float, float]
    """Median ends of the ranges."""


def recommended(question: str, effect: float, sd: float, repetitions: int, trials: int) -> Recommended:
    """Simulate experiments, measure the recommended repetitions, and answer again."""
    random = np.random.default_rng([sum(map(ord, question)), round(100 * effect), round(1000 * sd), repetitions])
    design, right, open_ended, ends = QUESTIONS[question](effect), 0, 0, list[tuple[int, int]]()
    for _ in range(trials):
        experiment = design.simulate(sd, repetitions, random)
        missing = answered(design, experiment)[0].missing
        if missing is None:
            continue
        if "over" in missing.statement:
            open_ended += 1
            continue
        numbers = [int(word) for word in missing.statement.partition(" more")[0].split(" to ")]
        ends.append((numbers[0], numbers[-1]))
        again = answered(design, design.continued(experiment, missing.points, sd, random))[0]
        right += again.missing is None
    asked = (median(low for low, _ in ends), median(high for _, high in ends)) if ends else (0.0, 0.0)
    return Recommended(right, len(ends), open_ended, asked)


def recommendations(trials: int, seconds: float) -> int:
    """Print how often the recommended repetitions settle an answer; return 1 if in less than 8 of 10."""
    start, total = perf_counter(), Counter[str]()
    print("recommended repetitions that settle the answer, of those promised (no promise: to over 20); median range\n")
    print("| question | effect | scatter | 2 repetitions | 3 | 5 |")
    print("|---" * 6 + "|")
    for question in QUESTIONS:
        if question == "one point":
            continue
        of_question = Counter[str]()
        for effect in EFFECTS[:-1]:
            for sd in SCATTERS:
                if perf_counter() - start > seconds:
                    print("time is up")
                    return 1
                row = []
                for repetitions in REPETITIONS[1:]:
                    result = recommended(question, effect, sd, repetitions, trials)
                    of_question.update(right=result.right, promised=result.promised, open_ended=result.open_ended)
                    low, high = result.asked
                    row.append(f"{result.right}/{result.promised} ({result.open_ended}) {low:g} to {high:g}")
                print(f"| {question} | {effect:g} | {sd:.0%} | {' | '.join(row)} |", flush=True)
        share = of_question["right"] / max(of_question["promised"], 1)
        print(f"{question}: {share:.0%} of {of_question['promised']}, {of_question['open_ended']} without a promise")
        total.update(of_question)
    share = total["right"] / max(total["promised"], 1)
    print(
        f"all: {share:.1%} of {total['promised']}; {total['open_ended']} without a promise; {perf_counter() - start:.0f} s"
    )
    return int(share < SETTLED)


def noisy_point(points: int, repetitions: int, trials: int = 300) -> float:
    """Return how many experiments without effect, but a noisy point, claim one."""
    random, wrong = np.random.default_rng([points, repetitions]), 0
    for _ in range(trials):
        scatters = [*[0.01] * (points - 1), 0.2]
        claims = SimultaneousIntervals([list(np.exp(random.normal(0, sd, repetitions))) for sd in scatters])
        wrong += any(claims.differ(i, j) for i in range(points) for j in range(i))
    return wrong / trials


def disturbed(
    points: int, repetitions: int, sd: float, *, effect: float, trials: int = 300, factor: float = 0.0
) -> float:
    """Return the share of disturbed experiments that miss, or invent, an effect.

    One in 20 of their trials takes ``factor`` times as long (0: 1.5 to 3 times). Counted are those that do not claim
    that the last point takes ``effect`` times as long as the first; without an effect, those that claim any difference.
    """
    random, count = np.random.default_rng([points, repetitions, round(1000 * sd), round(10 * factor)]), 0
    for _ in range(trials):
        middles = effect ** (np.arange(points) / max(points - 1, 1))
        values = middles[:, None] * np.exp(random.normal(0, sd, (points, repetitions)))
        slower = np.full(values.shape, factor) if factor else random.uniform(1.5, 3, values.shape)
        claims = SimultaneousIntervals(list(np.where(random.random(values.shape) < 0.05, values * slower, values)))
        if effect == 1:
            count += any(claims.differ(i, j) for i in range(points) for j in range(i))
        else:
            count += not claims.larger(points - 1, 0)
    return count / trials


def skewed(points: int, repetitions: int, sd: float, trials: int = 300) -> float:
    """Return the share of intervals that hold the median of exponential tails."""
    random, truth, held = np.random.default_rng([points, repetitions]), 2**sd, 0
    for _ in range(trials):
        claims = SimultaneousIntervals(list(np.exp(random.exponential(sd, (points, repetitions)))))
        intervals = [claims.value(i) for i in range(points)]
        held += sum(
            (interval.low or 0) <= truth <= (interval.high or 0) for interval in intervals if interval is not None
        )
    return held / trials / points


def compared(ratio: float, repetitions: int, sd: float, trials: int = 300) -> float:
    """Return the share of comparisons of ``ratio`` that claim a difference."""
    random, claimed = np.random.default_rng([repetitions, round(100 * ratio), round(1000 * sd)]), 0
    for _ in range(trials):
        sides = {
            name: {"s": list(r * np.exp(random.normal(0, sd, repetitions)))} for name, r in (("a", 1.0), ("b", ratio))
        }
        claimed += compare_groups(sides, baseline="a")[0].verdict in ("higher", "lower")
    return claimed / trials


def robust_tables() -> None:
    """Print how claims hold with outliers, with skewed times, and between two sides."""
    print(
        "\none trial in 20 takes 1.5 to 3 times as long, at 2/3/5 repetitions: effect of 2.3 unclaimed; no effect, claimed"
    )
    print("| points | scatter | unclaimed, 1.5 to 3 times | 1.5 | 2 | 3 | claimed |")
    for points in (2, 4, 12):
        for sd in SCATTERS:
            rows = [
                [100 * disturbed(points, n, sd, effect=2.3, factor=f) for n in (2, 3, 5)] for f in (0.0, 1.5, 2.0, 3.0)
            ]
            rows.append([100 * disturbed(points, n, sd, effect=1) for n in (2, 3, 5)])
            print(f"| {points} | {sd:.0%} | {' | '.join(map(_words, rows))} |", flush=True)
    print("\ntimes with an exponential tail: intervals that hold the true median, of 100, at 2/3/5 repetitions")
    for points in (2, 4, 12):
        print(f"{points} points | {'/'.join(f'{100 * skewed(points, n, 0.05):.1f}' for n in (2, 3, 5))}", flush=True)
    print("\ntwo sides compared: claimed of 100, at 3/5 repetitions a side")
    print("| scatter | " + " | ".join(f"{ratio:g}" for ratio in COMPARED) + " |")
    for sd in SCATTERS:
        rows = [[100 * compared(ratio, n, sd) for n in (3, 5)] for ratio in COMPARED]
        print(f"| {sd:.0%} | {' | '.join(map(_words, rows))} |", flush=True)


def _words(shares: Sequence[float]) -> str:
    return "/".join(f"{share:.0f}" for share in shares)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--questions", nargs="*", default=list(QUESTIONS))
    parser.add_argument("--order", choices=get_args(Order))
    parser.add_argument("--drift", action="store_true")
    parser.add_argument("--recommended", action="store_true")
    options = parser.parse_args()
    if options.recommended:
        return recommendations(options.trials, options.seconds)
    if options.drift:
        return drifts(options.trials, options.seconds)
    start = perf_counter()
    total: Counter[str] = Counter()
    means: dict[tuple[str, str], list[list[tuple[float, ...]]]] = defaultdict(list)
    cells = " | ".join(["1", "1, known scatter", "2", "3", "5"])
    print("right/silent/wrong of 100 experiments, by repetitions\n")
    print(f"| question | effect | scatter | {cells} |")
    print("|---" * 8 + "|")
    for question in options.questions:
        for effect in EFFECTS:
            for sd in SCATTERS:
                if perf_counter() - start > options.seconds:
                    print("time is up")
                    return 1
                row: list[str] = []
                percentages: list[tuple[float, ...]] = []
                for repetitions in REPETITIONS:
                    for prior in (False, True) if repetitions == 1 else (False,):
                        verdicts, broken = tally(
                            question, effect, sd, repetitions, options.trials, prior=prior, order=options.order
                        )
                        total.update({**verdicts, "all": options.trials, "broken": broken})
                        if effect == 1:
                            total.update({"false": verdicts["wrong"], "no effect": options.trials})
                        percentages.append(
                            tuple(100 * verdicts[v] / options.trials for v in ("right", "silent", "wrong"))
                        )
                        row.append(_words(percentages[-1]) + (f" !{broken}" if broken else ""))
                large = " *" if QUESTIONS[question](effect).margin > 3 * sd else ""
                print(f"| {question} | {effect:g}{large} | {sd:.0%} | {' | '.join(row)} |", flush=True)
                means["effect above 3 x scatter" if large else "no effect" if effect == 1 else "", question].append(
                    percentages
                )
    for (kind, question), rows in means.items():
        if kind:
            columns = [tuple(fmean(parts) for parts in zip(*column, strict=True)) for column in zip(*rows, strict=True)]
            print(f"{kind} | {question} | {' | '.join(map(_words, columns))} |")
    print("\n* effect (of weak scaling: its distance from the 80 % line) above 3 x scatter")
    print(f"order of trials: {options.order or 'not known'}; {dict(total)}; {perf_counter() - start:.0f} s")
    print("\none noisy point, experiments of 100 that claim what is none, at 2, 3, 5 repetitions")
    for points in (4, 6, 12):
        print(f"{points} points | {' | '.join(f'{100 * noisy_point(points, n):.0f}' for n in (2, 3, 5))}")
    robust_tables()
    return broken_bounds(total)


def broken_bounds(total: Counter[str]) -> int:
    """Return 1 if over 5 % of the head lines or claims are wrong, or a check fails."""
    shares = (total["wrong"] / max(total["all"], 1), total["false"] / max(total["no effect"], 1))
    return int(max(shares) > WRONG or total["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
