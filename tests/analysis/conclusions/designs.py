"""Small constructed experiments and their answers, all of which pass the checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.conclusions import Answer, Deciding, ExperimentQuestion, Factor, answer
from analysis.scaling import Point
from tests.analysis.conclusions.checks import check
from tests.words import plain

TIME = Deciding("elapsed_s", "Elapsed time", "s")
LOOP = Deciding("loop_s", "Loop time", "s")
GFLOPS = Deciding("hpl.gflops", "Rate", "GFLOP/s", higher_is_better=True)
HOSTS = Factor("hosts", "hosts", "scale", "", "hosts")
METHOD = Factor("method", "method", "treatment")
DELAY = Factor("link.delay", "delay", "network", "s")
LOSS = Factor("link.loss", "loss", "network", "share")
RATE = Factor("link.bandwidth", "rate", "network", "bit/s")
BYTES = Factor("message_bytes", "message", "message", "B")
MOLECULES = Factor("molecules", "molecules", "load", "", "molecules")
JOBS = Factor("jobs", "jobs", "load", "", "jobs")
STEADY = (0.99, 1.0, 1.01)
"""Three repetitions that scatter by 1 %."""


def points(
    factors: Sequence[Factor],
    typical: Mapping[Any, float],
    *,
    deciding: Deciding = TIME,
    repetitions: Sequence[float] = STEADY,
    **metrics: Mapping[Any, float],
) -> list[Point]:
    """Return one point per key, a level or a tuple of levels."""
    rows = []
    for key, middle in typical.items():
        levels = key if isinstance(key, tuple) else (key,)
        values = {deciding.metric: [middle * r for r in repetitions]}
        values |= {metric: [row[key] * r for r in repetitions] for metric, row in metrics.items()}
        rows.append(Point(dict(zip((f.name for f in factors), levels, strict=True)), values, ranks=4))
    return rows


def asks(factors: Sequence[Factor], typical: Mapping[Any, float], **more: Any) -> ExperimentQuestion:
    """Return an experiment over these factors; other fields go to its points."""
    of_points = {
        k: more.pop(k)
        for k in ("repetitions", "cpu_mean_rank_s", "elapsed_s", "energy_j", "energy_per_result_j", "used_percent")
        if k in more
    }
    deciding = more.pop("deciding", TIME)
    return ExperimentQuestion(points(factors, typical, deciding=deciding, **of_points), deciding, factors, **more)


def checked(question: ExperimentQuestion) -> Answer:
    """The answer, which must pass all checks; its spaces are plain ones."""
    result = answer(question)
    assert check(result, question) == []
    causes = tuple(replace(cause, statement=plain(cause.statement)) for cause in result.causes)
    missing = result.missing and replace(result.missing, statement=plain(result.missing.statement))
    return replace(result, sentence=plain(result.sentence), causes=causes, missing=missing)


def values(result: Answer, name: str, **where: Any) -> list[Any]:
    """The values of all figures of that name and place."""
    return [f.value for f in result.figures if f.name == name and all(f.where.get(k) == v for k, v in where.items())]
