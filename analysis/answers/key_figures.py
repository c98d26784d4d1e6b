"""The figures of an answer as a short list: what the question is about, in words with intervals and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analysis.answers.answer import Answer, Figure
from analysis.answers.asked import Factor
from analysis.answers.wording import factor_words, level, place
from analysis.numbers import SHARE, with_interval
from analysis.statistics import Interval

_MOST_NAMES: Final = 6
_MOST_PLACES: Final = 4
_LABELS: Final[Mapping[str, str]] = {
    "seconds per second of delay": "Each ms of delay",
    "use": "In use",
    "factor": "Times as fast",
    "gain": "Gain of a step",
}
_PER_MS: Final = 1e-3
_IN_WORDS_ALREADY: Final = frozenset({"matters"})
_PLAIN: Final = frozenset({"exponent"})
"""Figures without a unit that are no factors."""
_SHARES: Final = ("share", "share of the best", "share of the value")


def key_figures(answer: Answer, factors: Sequence[Factor]) -> tuple[tuple[str, str], ...]:
    """Return (name, values in words) of the figures that a reader looks for, in the order of the answer."""
    by_name: dict[str, list[Figure]] = {}
    for figure in answer.figures:
        if figure.name not in _IN_WORDS_ALREADY:
            by_name.setdefault(figure.name, []).append(figure)
    known = {factor.name: factor for factor in factors}
    rows = [(_label(name), _values(figures, factors, known)) for name, figures in by_name.items()]
    return tuple(rows[:_MOST_NAMES])


def _label(name: str) -> str:
    words = _LABELS.get(name) or name.removeprefix("factor of ")
    return words[:1].upper() + words[1:]


def _values(figures: Sequence[Figure], factors: Sequence[Factor], known: Mapping[str, Factor]) -> str:
    varying = [f for f in factors if len({repr(figure.where.get(f.name)) for figure in figures}) > 1]
    told = [_told(figure, varying, known) for figure in figures[:_MOST_PLACES]]
    left = len(figures) - len(told)
    return "; ".join([*told, *([f"{left} more in the table"] if left else [])])


def _told(figure: Figure, varying: Sequence[Factor], known: Mapping[str, Factor]) -> str:
    words = _value(figure, known)
    if figure.name == "gain":
        return f"{words} ({figure.where['step']} over {figure.where['over']})"
    at = place([f for f in varying if f.name in figure.where], figure.where)
    return f"{at}: {words}" if at else words


def _value(figure: Figure, known: Mapping[str, Factor]) -> str:
    value = figure.value
    if value is None:
        return "nothing measured"
    if isinstance(value, str):
        factor = known.get(value)
        return factor.label if factor else value
    interval = None if figure.low is None or figure.high is None else Interval(figure.low, figure.high, 0.95, "")
    if figure.name == "seconds per second of delay":
        return with_interval(value * _PER_MS, _scaled(interval, _PER_MS), "s")
    if figure.unit in _SHARES or figure.name == "efficiency":
        return with_interval(value, interval, SHARE)
    if figure.name in _PLAIN:
        return with_interval(value, interval)
    if figure.unit == "1":
        return factor_words(value, interval)
    counted = next((f for f in known.values() if figure.unit and f.plural == figure.unit), None)
    if counted is not None:
        least = f" (at least {level(counted, figure.low)})" if figure.low is not None and figure.high is None else ""
        return f"{level(counted, value)}{least}"
    return with_interval(value, interval, figure.unit)


def _scaled(interval: Interval | None, by: float) -> Interval | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return Interval(interval.low * by, interval.high * by, interval.level, interval.method)
