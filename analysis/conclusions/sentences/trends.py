"""The head lines of sweeps over message sizes and over the size of the problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analysis.conclusions.answer import Figure
from analysis.conclusions.context import Asked, Factor
from analysis.conclusions.observations.transfer import MIN_SIZES
from analysis.conclusions.wording import factor_words, first_up, level, lower_first, percent
from analysis.numbers import amount, between, significant
from analysis.scaling import Point
from analysis.statistics import Interval

FEW_SIZES: Final = f"Latency and bandwidth cannot be told from fewer than {MIN_SIZES} sizes of message."
NO_EFFECT: Final = (
    "Too few repetitions: no effect of the message size can be told, and so neither latency nor bandwidth."
)
TOO_MUCH_SCATTER: Final = "Latency and bandwidth cannot be told yet: the times scatter too much."
SECOND_SIZE: Final = "A second size has to finish before the growth can be told."
_TRANSFER: Final[Mapping[str, str]] = {
    "latency": "a message takes {} to start",
    "bandwidth": "long ones flow at {}",
    "half-bandwidth size": "half of that rate is reached at {}",
}


def transfer(figures: Sequence[Figure], misfit: float | None) -> str:
    """Return the known parts of the line of transfer times, and by how much single sizes are off it."""
    clauses = []
    for figure in figures:
        if isinstance(figure.value, float):
            value = f"{amount(figure.value, figure.unit)} ({between(figure.low, figure.high, figure.unit)})"
            clauses.append(_TRANSFER[figure.name].format(value))
    if misfit is not None:
        clauses.append(f"single sizes are off that line by {percent(misfit)}")
    return f"{first_up('; '.join(clauses))}."


def no_growth(asked: Asked, factor: Factor, ends: Sequence[Point]) -> str:
    start, end = (level(factor, point.parameters[factor.name]) for point in ends)
    if asked.published:
        return f"From {start} to {end} the printed values differ by less than 5 %."
    return f"Too few repetitions: no growth from {start} to {end} can be told."


def growth(
    asked: Asked,
    factor: Factor,
    ends: Sequence[Point],
    times: tuple[float, Interval | None],
    exponent: float,
    error: float | None,
    misfit: float | None,
) -> str:
    start, end = (level(factor, point.parameters[factor.name]) for point in ends)
    grows = f"grows {factor_words(*times)}" if times[0] > 1 else f"falls to {percent(times[0])}"
    about = "" if error is None else f" ({between(exponent - error, exponent + error, digits=2)})"
    shape = f", as the power {significant(exponent, 2)}{about} of the size"
    if misfit is not None:
        shape = f"; no single power of the size fits: sizes are off it by {percent(misfit)}"
    return f"From {start} to {end} {lower_first(asked.deciding.label)} {grows}{shape}."
