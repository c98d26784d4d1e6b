"""Key figures of an answer: names and values in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeGuard

from analysis.conclusions.answer import Answer, Figure
from analysis.conclusions.context import Factor
from analysis.conclusions.wording import ANY, factor_words, level, point_words
from analysis.numbers import SHARE, between, with_interval
from analysis.statistics import Interval

TIMES_THE_BEST: Final = "times the best"
TIMES_THE_START: Final = "times the start"
"""A gain: 1.2 is 1.2 times the rate, or 1/1.2 of the time."""
_MOST_NAMES: Final = 6
_MOST_PLACES: Final = 4
_LABELS: Final[Mapping[str, str]] = {
    "seconds per second of delay": "Each ms of delay",
    "use": "In use",
    "factor": "Times as fast",
    "gain": "Gain of a step",
    "messages in a row": "Messages on the critical path",
    "sent while nothing else proceeds": "Bytes on the critical path",
    "as good": "Not measurably worse",
    TIMES_THE_START: "Times as good as the start",
}
_PER_MS: Final = 1e-3
_IN_WORDS_ALREADY: Final = frozenset({"matters", "slowed trials"})
_PLAIN: Final = frozenset({"exponent"})
"""Figures without a unit that are no factors."""
_FACTOR: Final = "factor of "
_AT_OTHERS: Final = ", others harshest"
_VAGUE: Final = 10
"""A factor whose ends are further apart than this is shown by one end, or not at all."""
_FURTHER: Final[Mapping[str, tuple[str, float]]] = {"bit/s": ("down to", 0.5), "s": ("up to", 2)}
"""Unit of a network property -> direction and multiple of the harshest level with twice the effect."""
_SHARES: Final = ("share", "share of the best", "share of the value")


def key_figures(answer: Answer, factors: Sequence[Factor], *, is_rate: bool = False) -> tuple[tuple[str, str], ...]:
    """Return (name, values in words) of the main figures, in the order of the answer.

    A ratio to the best is of costs. With ``is_rate`` it is shown as one of rates: less than 1 is worse.
    """
    by_name: dict[str, list[Figure]] = {}
    for figure in answer.figures:
        if figure.name not in _IN_WORDS_ALREADY:
            if is_rate and figure.name == TIMES_THE_BEST:
                figure = _of_rates(figure)
            by_name.setdefault(figure.name, []).append(figure)
    places = [f for f in factors if all(f.name in figure.where for figures in by_name.values() for figure in figures)]
    sliced = _varying(places, [figure for figures in by_name.values() for figure in figures])
    by_factor = {factor.name: factor for factor in factors}
    rows = [
        (_label(name, answer) + _base(answer, figures[0], factors), _values(figures, factors, sliced, by_factor))
        for name, figures in by_name.items()
    ]
    return tuple(rows[:_MOST_NAMES])


def _of_rates(figure: Figure) -> Figure:
    low, value, high = (
        1 / end if isinstance(end, float) and end else None for end in (figure.high, figure.value, figure.low)
    )
    return replace(figure, name=f"{figure.name} rate", value=value, low=low, high=high)


def _label(name: str, answer: Answer) -> str:
    if name.startswith(_FACTOR):
        quantity, _, at_others = name.removeprefix(_FACTOR).partition(",")
        has_both = answer.figure(f"{name}{_AT_OTHERS}") is not None
        at = "worst" if at_others else "best" if has_both else ""
        is_modelled = any(f.name in ("most one-way delay", "least rate") for f in answer.figures)
        base = ", from two points" if is_modelled else ""
        return f"Worst against best {quantity}{base}{f', at the {at} other settings' if at else ''}"
    is_median = name == "best size" and answer.figure("as good") is not None
    base = ", without drift" if answer.is_without_drift else ""
    words = f"best median{base}" if is_median else _LABELS.get(name) or name
    return words[:1].upper() + words[1:]


def _base(answer: Answer, figure: Figure, factors: Sequence[Factor]) -> str:
    """Return ", without drift" for amounts that charts show as measured, or "".

    Energies next to a deciding time or rate are as measured.
    """
    if figure.unit == "J" and answer.figure("least energy") is not None:
        return ""
    is_amount = figure.unit not in ("", "1", *_SHARES, *(factor.plural for factor in factors))
    return ", without drift" if answer.is_without_drift and is_amount else ""


def _varying(factors: Sequence[Factor], figures: Sequence[Figure]) -> list[Factor]:
    return [f for f in factors if len({repr(figure.where.get(f.name)) for figure in figures}) > 1]


def _values(
    figures: Sequence[Figure], factors: Sequence[Factor], sliced: Sequence[Factor], by_factor: Mapping[str, Factor]
) -> str:
    """Return the values with their places; in an answer of slices, each has one."""
    here = _varying(factors, figures)
    varying = [f for f in factors if f in here or f in sliced]
    texts = [_at(figure, varying, by_factor) for figure in figures[:_MOST_PLACES]]
    remaining = len(figures) - len(texts)
    return "; ".join([*texts, *([f"{remaining} more in the table"] if remaining else [])])


def _at(figure: Figure, varying: Sequence[Factor], by_factor: Mapping[str, Factor]) -> str:
    words = _value(figure, by_factor)
    if figure.name == "gain":
        return f"{words} ({figure.where['step']} over {figure.where['over']})"
    at = point_words([f for f in varying if f.name in figure.where], figure.where)
    return f"{at}: {words}" if at else words


def _value(figure: Figure, by_factor: Mapping[str, Factor]) -> str:
    value = figure.value
    if value is None:
        return "nothing measured"
    if isinstance(value, str):
        factor = by_factor.get(value)
        return factor.label if factor else value
    interval = None if figure.low is None or figure.high is None else Interval(figure.low, figure.high, 0.95, "")
    if figure.name == "seconds per second of delay":
        return with_interval(value * _PER_MS, _scaled(interval, _PER_MS), "s")
    if figure.unit in _SHARES or figure.name == "efficiency":
        return with_interval(value, interval, SHARE)
    if figure.name in _PLAIN:
        return with_interval(value, interval)
    if figure.unit == "1":
        return factor_words(value, interval) if not _is_vague(interval) else _vague_words(figure, interval, by_factor)
    counted = next((f for f in by_factor.values() if figure.unit and f.plural == figure.unit), None)
    if counted is not None:
        return f"{level(counted, value)}{_within(figure, counted)}"
    if _is_vague(interval, ANY):
        return f"{with_interval(value, None, figure.unit)} (scatter too large for an interval)"
    return with_interval(value, interval, figure.unit)


def _within(figure: Figure, counted: Factor) -> str:
    """Return the bounds of a count: " (at least 10 jobs)", " (1 to 20)"."""
    if figure.low is None or figure.low == figure.high:
        return ""
    if figure.high is None:
        return f" (at least {level(counted, figure.low)})"
    return f" ({between(figure.low, figure.high)})"


def _scaled(interval: Interval | None, by: float) -> Interval | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return Interval(interval.low * by, interval.high * by, interval.level, interval.method)


def _is_vague(interval: Interval | None, most: float = _VAGUE) -> TypeGuard[Interval]:
    return interval is not None and (interval.high or 1) > most * (interval.low or 0)


def _vague_words(figure: Figure, interval: Interval, by_factor: Mapping[str, Factor]) -> str:
    """Return the known end ("at least 2.1 times"), or the link to ask for instead."""
    if interval.low is not None and interval.low > 1:
        return f"at least {factor_words(interval.low)}"
    if interval.high is not None and interval.high < ANY:
        return f"at most {factor_words(interval.high)}"
    label = figure.name.removeprefix(_FACTOR).partition(",")[0]
    factor = next((f for f in by_factor.values() if f.label == label and f.role == "network"), None)
    harshest = figure.where.get(factor.name) if factor is not None else None
    if factor is None or not isinstance(harshest, int | float) or factor.unit not in _FURTHER or not harshest:
        return "not known yet: more repetitions are needed"
    direction, by = _FURTHER[factor.unit]
    return f"not known yet: measure {direction} {level(factor, harshest * by)}"
