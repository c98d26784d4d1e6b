"""Simulated experiments of known truth, and verdicts on their answers.

An answer is right, silent or wrong. A verdict looks at the structured answer (figures and strength), never at the
sentence. ``effect`` is how many times worse the worst point is than the best; of 1.0 there is nothing to claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Literal

import numpy as np

from analysis.conclusions import Accepted, Answer, Deciding, ExperimentQuestion, Factor, Scatter, answer
from analysis.conclusions.answering import OUTLIERS, SLOWED
from analysis.conclusions.observations.transfer import MIN_SIZES
from analysis.scaling import Point
from tests.analysis.conclusions.load_truth import CAPACITIES, LOADS, accepted_rows, wall

Verdict = Literal["right", "silent", "wrong"]
Order = Literal["sequential", "interleaved", "randomised"]
TIME = Deciding("elapsed_s", "Elapsed time", "s")
HOSTS = Factor("hosts", "hosts", "scale", "", "hosts")
METHOD = Factor("method", "method", "treatment")
DELAY = Factor("link.delay", "delay", "network", "s")
LOSS = Factor("link.loss", "loss", "network", "share")
BYTES = Factor("message_bytes", "message", "message", "B")
MOLECULES = Factor("molecules", "molecules", "load", "", "molecules")
RATE = Factor("link.bandwidth", "rate", "network", "bit/s")
JOBS = Factor("jobs", "jobs", "load", "", "jobs")
EFFECTS = (1.0, 1.05, 1.2, 2.0, 10.0)
SCATTERS = (0.01, 0.05, 0.2)
REPETITIONS = (1, 2, 3, 5)
_PRIOR_FREEDOM = 8


@dataclass(frozen=True)
class Design:
    """One experiment to simulate: true values of its points, and its judge."""

    truth: Sequence[tuple[Mapping[str, object], float]]
    factors: Sequence[Factor]
    judge: Callable[[Answer], Verdict]
    deciding: Deciding = TIME
    weak: bool = False
    steps: bool = False
    accepted: Callable[[Sequence[Point]], Sequence[Accepted]] | None = None
    margin: float = 0.0
    """Logarithm of the smallest ratio that has to be seen for a right answer."""
    points: int = 0
    """Points whose claims hold together."""

    def simulate(
        self,
        sd: float,
        repetitions: int,
        random: np.random.Generator,
        *,
        prior: bool = False,
        order: Order | None = None,
        drift: float = 0.0,
    ) -> ExperimentQuestion:
        """Return an experiment: values scattered by ``sd`` on the logarithm.

        ``prior``: scatter of control runs. With an ``order`` the places of the trials are known, and each is slower by
        ``drift`` than the one before.
        """
        metric, points = self.deciding.metric, []
        ran = places(len(self.truth), repetitions, order or "sequential", random)
        for (parameters, value), positions in zip(self.truth, ran, strict=True):
            values = value * np.exp(random.normal(0, sd, repetitions) + drift * np.array(positions))
            points.append(Point(parameters, {metric: list(values)}, order={metric: positions} if order else {}))
        prior_scatter = Scatter(
            sd * float(np.sqrt(random.chisquare(_PRIOR_FREEDOM) / _PRIOR_FREEDOM)), _PRIOR_FREEDOM, "history"
        )
        return ExperimentQuestion(
            points=points,
            deciding=self.deciding,
            factors=self.factors,
            weak=self.weak,
            steps=self.steps,
            prior=prior_scatter if prior else None,
            accepted=self.accepted(points) if self.accepted else (),
        )

    def continued(
        self,
        question: ExperimentQuestion,
        added: Sequence[tuple[Mapping[str, object], int]],
        sd: float,
        random: np.random.Generator,
    ) -> ExperimentQuestion:
        """Return the experiment with so many more trials of these points."""
        metric, more = self.deciding.metric, {repr(parameters): count for parameters, count in added}
        points = []
        for point, (parameters, value) in zip(question.points, self.truth, strict=True):
            values = value * np.exp(random.normal(0, sd, more.get(repr(parameters), 0)))
            points.append(replace(point, values={metric: [*point.values[metric], *values]}))
        return replace(question, points=points, accepted=self.accepted(points) if self.accepted else ())


def places(points: int, repetitions: int, order: Order, random: np.random.Generator) -> list[list[int]]:
    """Return the positions of each point's trials in the order of a run."""
    if order == "sequential":
        return [list(range(i * repetitions, (i + 1) * repetitions)) for i in range(points)]
    positions: list[list[int]] = [[] for _ in range(points)]
    for k in range(repetitions):
        row = random.permutation(points) if order == "randomised" else np.arange(points)[:: -1 if k % 2 else 1]
        for index, i in enumerate(row):
            positions[i].append(k * points + index)
    return positions


def answered(design: Design, question: ExperimentQuestion) -> tuple[Answer, Verdict]:
    """Return the answer and its verdict."""
    result = answer(question)
    return result, design.judge(result)


def _values(result: Answer, name: str, **where: object) -> list[object]:
    return [f.value for f in result.figures if f.name == name and all(f.where.get(k) == v for k, v in where.items())]


def _holds(result: Answer, name: str, truth: float, **where: object) -> bool:
    """Return whether the interval of the first figure of that name contains the truth."""
    figure = result.figure(name, **where)
    return figure is not None and (figure.low or 0) <= truth and (figure.high is None or truth <= figure.high)


def flat(sizes: int) -> Design:
    """So many numbers of hosts, of which none is better than another."""

    def judge(result: Answer) -> Verdict:
        good = {*_values(result, "best size"), *_values(result, "as good")}
        if good and len(good) < sizes:
            return "wrong"
        return "silent" if result.figure("largest difference") is None else "right"

    return Design([({"hosts": n}, 10.0) for n in range(1, sizes + 1)], [HOSTS], judge)


def scale(effect: float) -> Design:
    """Four hosts are best; one and eight take ``effect`` times as long."""

    def judge(result: Answer) -> Verdict:
        good = {*_values(result, "best size"), *_values(result, "as good")}
        if len(good) == 4:
            bound = result.figure("largest difference")
            if bound is None:
                return "silent"
            fits = isinstance(bound.value, float) and effect - 1 <= bound.value
            return ("right" if effect == 1 else "silent") if fits else "wrong"
        if effect == 1 or 4.0 not in good:
            return "wrong"
        return "right" if 8.0 not in good else "silent"

    times = {1: effect, 2: effect**0.5, 4: 1.0, 8: effect}
    truth = [({"hosts": n}, 10 * t) for n, t in times.items()]
    return Design(truth, [HOSTS], judge, margin=log(effect))


def weak_scale(effect: float) -> Design:
    """Every size takes the same time, the largest ``effect`` times as long."""
    sizes = {n: effect ** (np.log2(n) / 3) for n in (1, 2, 4, 8)}

    def judge(result: Answer) -> Verdict:
        stays, falls = _values(result, "stays above 80 %"), _values(result, "falls below 80 %")
        if not stays and not falls:
            return "silent"
        if stays:
            return "right" if effect < 1.25 else "wrong"
        return "right" if 1 / sizes[int(falls[0])] < 0.8 else "wrong"  # type: ignore[call-overload]

    return Design(
        [({"hosts": n}, 10 * t) for n, t in sizes.items()], [HOSTS], judge, weak=True, margin=abs(log(effect / 1.25))
    )


def treatment(effect: float) -> Design:
    """A tree is best, the three others take ``effect`` times as long."""

    def judge(result: Answer) -> Verdict:
        best, equal = _values(result, "best"), _values(result, "as good")
        if not best:
            return "silent"
        if effect == 1:
            return "wrong"
        return "right" if best == ["tree"] else "silent" if "tree" in equal else "wrong"

    truth = [({"method": m}, 10 * (1 if m == "tree" else effect)) for m in ("pull", "push", "tree", "chain")]
    return Design(truth, [METHOD], judge, margin=log(effect))


def scale_and_treatment(effect: float) -> Design:
    """Pull is best on two hosts, a tree on eight; on four all are equal."""
    times = {2: {"pull": 1.0, "push": effect, "tree": effect}, 8: {"pull": effect, "push": effect, "tree": 1.0}}

    def judge(result: Answer) -> Verdict:
        if not _values(result, "best"):
            return "silent"
        if effect == 1 or _values(result, "best", hosts=4):
            return "wrong"
        for hosts, method in ((2, "pull"), (8, "tree")):
            output = _values(result, "best", hosts=hosts)
            if output and method not in (*output, *_values(result, "as good", hosts=hosts)):
                return "wrong"
        return "right" if _values(result, "best", hosts=8) == ["tree"] else "silent"

    truth: list[tuple[Mapping[str, object], float]] = [
        ({"hosts": n, "method": m}, 20 / n * times.get(n, {}).get(m, 1.0))
        for n in (2, 4, 8)
        for m in ("pull", "push", "tree")
    ]
    return Design(truth, [HOSTS, METHOD], judge, margin=log(effect))


def network(effect: float) -> Design:
    """A delay of 16 ms takes ``effect`` times as long, loss does nothing."""

    def judge(result: Answer) -> Verdict:
        named = _values(result, "matters")
        if not named:
            bound = result.figure("largest difference")
            if bound is None:
                return "silent"
            fits = isinstance(bound.value, float) and effect - 1 <= bound.value
            return ("right" if effect == 1 else "silent") if fits else "wrong"
        if effect == 1 or named != ["link.delay"]:
            return "wrong"
        return "right" if _holds(result, "factor of delay", effect, **{"link.delay": 0.016}) else "wrong"

    truth: list[tuple[Mapping[str, object], float]] = [
        ({"link.delay": d, "link.loss": share}, 1 + (effect - 1) * d / 0.016)
        for d in (0.0, 0.004, 0.016)
        for share in (0.0, 0.01)
    ]
    return Design(truth, [DELAY, LOSS], judge, margin=log(effect))


def load_and_network(effect: float) -> Design:
    """The slow link misses the rule by ``effect``, the fast one meets it by it."""

    def judge(result: Answer) -> Verdict:
        if result.strength == "open":
            return "silent"
        slow, fast = (result.figure("carried", **{"link.bandwidth": capacity}) for capacity in CAPACITIES)
        if slow is None or fast is None:
            return "silent"
        last = LOADS[-1]
        if (slow.low or 0) >= last or (fast.high is not None and fast.high <= last):
            return "wrong"
        return "right" if slow.high == last and slow.low == LOADS[-2] and fast.low == last else "silent"

    truth: list[tuple[Mapping[str, object], float]] = [
        ({"link.bandwidth": c, "jobs": jobs}, wall(c, jobs, effect)) for c in CAPACITIES for jobs in LOADS
    ]
    return Design(truth, [RATE, JOBS], judge, accepted=accepted_rows, margin=log(effect))


def steps(effect: float) -> Design:
    """Six steps; the fourth gives ``effect`` times as much, the others change nothing."""

    def judge(result: Answer) -> Verdict:
        output = _values(result, "best change")
        if not output:
            return "silent"
        if effect == 1 or output != [4]:
            return "wrong"
        return "right" if _holds(result, "gain", effect, step=4) else "wrong"

    truth = [({"nb": 32 * i, "order": f"v{i}"}, effect if i >= 4 else 1.0) for i in range(1, 7)]
    rate = Deciding("hpl.gflops", "Rate", "GFLOP/s", higher_is_better=True)
    return Design(truth, [Factor("nb", "NB", "treatment")], judge, rate, steps=True, margin=log(effect))


def message_size(effect: float) -> Design:
    """The longest of six messages takes ``effect`` times as long as the shortest."""
    sizes = [64.0 * 8**k for k in range(6)]
    slope = 1e-4 * (effect - 1) / (sizes[-1] - effect * sizes[0]) if effect > 1 else 0.0
    assert len(sizes) >= MIN_SIZES

    def judge(result: Answer) -> Verdict:
        output = [f.name for f in result.figures if f.name not in (OUTLIERS, SLOWED)]
        if "bandwidth" not in output:
            return "silent" if not output or _holds(result, "latency", 1e-4) else "wrong"
        if effect == 1:
            return "wrong"
        true = {"latency": 1e-4, "bandwidth": 1 / slope, "half-bandwidth size": 1e-4 / slope}
        return "right" if all(_holds(result, name, true[name]) for name in output) else "wrong"

    return Design([({"message_bytes": n}, 1e-4 + n * slope) for n in sizes], [BYTES], judge, margin=log(effect))


def growth(effect: float) -> Design:
    """Time grows ``effect`` times while the problem grows eightfold."""

    def judge(result: Answer) -> Verdict:
        if result.strength == "open":
            return "silent"
        if effect == 1:
            return "wrong"
        return "right" if _holds(result, "exponent", log(effect) / log(8)) else "wrong"

    truth = [({"molecules": n}, (n / 100) ** (log(effect) / log(8))) for n in (100, 200, 400, 800)]
    return Design(truth, [MOLECULES], judge, margin=log(effect))


def one_point(effect: float) -> Design:
    """One configuration; ``effect`` is its value."""

    def judge(result: Answer) -> Verdict:
        if result.strength == "open":
            return "silent"
        return "right" if _holds(result, "Elapsed time", effect) else "wrong"

    return Design([({"hosts": 2}, effect)], [], judge, margin=log(effect))


QUESTIONS: Mapping[str, Callable[[float], Design]] = {
    "scale": scale,
    "weak scale": weak_scale,
    "scale and treatment": scale_and_treatment,
    "network": network,
    "load and network": load_and_network,
    "steps": steps,
    "message size": message_size,
    "growth": growth,
    "treatment": treatment,
    "one point": one_point,
}
