"""Numbers in sentences: shares, factors, sizes and values of parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, floor
from typing import Any, Final

from analysis import numbers
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.repetitions import MOST_REPETITIONS, Range
from analysis.scaling import Point
from analysis.statistics import Interval

_DIGITS: Final = 2
_VALUE_DIGITS: Final = 3
_MOST_SIZES: Final = 4
_MOST_POINTS: Final = 2
"""Most points of several factors in a sentence."""
_MOST_WORDS: Final = 25
"""Most words of a sentence."""
_PLURAL: Final = re.compile(r"(?<=\w\w[^s])s(?= per |$)")
"""The s of "hosts" and of "ranks per host"; "problem size" and "process" count nothing."""
_INTERVAL: Final = re.compile(r" \([^()]* (?:to|for an) [^()]*\)")
_NARROW: Final = 1e-3
"""Relative width below which the ends of an interval read like its value."""
ANY: Final = 1000
"""Largest factor that is written as a number."""


_LAUNCHES: Final = {
    ("bind", "core"): "binding to cores",
    ("bind", "socket"): "binding to sockets",
    ("bind", "numa"): "binding to NUMA nodes",
    ("bind", "hwthread"): "binding to hardware threads",
    ("bind", "none"): "no binding",
    ("bind", "default"): "the library's binding",
    ("distribution", "block"): "block distribution",
    ("distribution", "cyclic"): "cyclic distribution",
    ("transport", "native"): "the native transport",
    ("transport", "tcp"): "TCP",
}


def level(factor: Factor, value: Any, *, counted: bool = True) -> str:
    """Return a level in words: "16 ms", "1 %", "64 KiB", "4 hosts", "pull"."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        name = str(value).partition(": ")[0] if factor.name == "transport" else str(value)
        return _LAUNCHES.get((factor.name, name), name)
    if factor.unit == "B":
        return numbers.size(round(value))
    if factor.unit == "share":
        return percent(value)
    if factor.unit:
        return (
            numbers.amount(value, factor.unit)
            if value
            else numbers.with_unit("0", "ms" if factor.unit == "s" else factor.unit)
        )
    words = numbers.significant(value)
    if not (counted and factor.plural):
        return words
    if not _PLURAL.search(factor.plural):
        return f"{factor.plural} {words}"
    return f"{words} {_PLURAL.sub('', factor.plural) if value == 1 else factor.plural}"


def levels(factor: Factor, values: Sequence[Any]) -> str:
    """Return "2, 4 and 8 hosts"."""
    return joined([*(level(factor, v, counted=False) for v in values[:-1]), level(factor, values[-1])])


def joined(words: Sequence[str]) -> str:
    """Return "2, 4 and 8"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def point_words(factors: Sequence[Factor], parameters: Any) -> str:
    """Return the point in words: "16 ms delay, 1 % loss", "pull, 6 hosts"."""
    levels = []
    for factor in factors:
        words = level(factor, parameters.get(factor.name))
        named = factor.plural or isinstance(parameters.get(factor.name), str) or factor.unit in ("B", "bit/s")
        levels.append(words if named else f"{words} {factor.label}" if factor.unit else f"{factor.label} {words}")
    return ", ".join(levels)


def listed_points(factors: Sequence[Factor], points: Sequence[Point], count: int = 0) -> str:
    """Return "2 and 4 hosts", "7 configurations", or "7 of 9 configurations"."""
    if len(points) > (_MOST_SIZES if len(factors) == 1 else _MOST_POINTS) or not factors:
        return f"{len(points)} of {count} configurations" if count else numbers.plural(len(points), "configuration")
    if len(factors) == 1 and factors[0].plural:
        return levels(factors[0], [point.parameters.get(factors[0].name) for point in points])
    return joined([point_words(factors, point.parameters) for point in points])


def lower_first(label: str) -> str:
    """Return a label inside a sentence: "elapsed time", but "HPL rate"."""
    return label if label[:2].isupper() else label[:1].lower() + label[1:]


def first_up(words: str) -> str:
    """Return the words as the begin of a sentence."""
    return words[:1].upper() + words[1:]


def clauses(texts: Sequence[str]) -> str:
    """Join clauses to one sentence; its last one counts those without room."""
    for count in range(len(texts), 0, -1):
        more = len(texts) - count
        words = "; ".join([*texts[:count], *([f"{more} more in the key figures"] if more else [])])
        if count == 1 or words_of(words) <= _MOST_WORDS:
            break
    return words


def words_of(sentence: str) -> int:
    """Return the number of words; a number with its unit is one, an interval too."""
    return len(_INTERVAL.sub("", sentence).replace(numbers.NARROW, "").split())


def amount(value: float | None, unit: str, digits: int = _VALUE_DIGITS) -> str:
    """Return an amount with at most so many digits, also before the point: "12 300 s"."""
    return numbers.amount(None if value is None else numbers.rounded(value, digits), unit, digits)


def between(low: float | None, high: float | None, unit: str = "", digits: int = _VALUE_DIGITS) -> str:
    """Return an interval, rounded as by ``amount``; "" without both ends."""
    if low is None or high is None:
        return ""
    return numbers.between(numbers.rounded(low, digits), numbers.rounded(high, digits), unit, digits)


def value(
    question: ExperimentQuestion, typical: float, interval: Interval | None = None, *, with_level: bool = False
) -> str:
    """Return an amount of the deciding metric: "1.2 s (1.15 to 1.26 s)".

    ``with_level`` names the level of the interval: "1.2 s (96.5 % CI 1.15 to 1.26 s)". Values without
    the drift name this base, because charts show measured ones: "1.2 s without drift (1.15 to 1.26 s)".
    """
    typical_words = f"{amount(typical, question.deciding.unit)}{base(question)}"
    words = "" if interval is None else between(interval.low, interval.high, question.deciding.unit)
    if interval is None or not words or (interval.high or 0) - (interval.low or 0) < _NARROW * typical:
        return typical_words  # ends that read like the value add nothing
    prefix = f"{percent_level(interval.level)} CI " if with_level else ""
    return f"{typical_words} ({prefix}{words})"


def base(question: ExperimentQuestion) -> str:
    """Return the base of the values of the deciding metric, " without drift", or ""."""
    return " without drift" if question.is_without_drift else ""


def percent_level(level: float) -> str:
    """Return a confidence level: "96.5 %"."""
    return numbers.amount(level, numbers.SHARE, 3)


def factor_words(ratio: float, interval: Interval | None = None) -> str:
    """Return "2.8 times (2.5 to 3.1)", "1.04 times (1.02 to 1.06)"."""
    words = f"{_ratio(ratio)} times"
    if interval is None or interval.low is None or interval.high is None:
        return words
    if _end(interval.low) == _end(interval.high) == _ratio(ratio):
        return words
    return f"{words} ({_end(interval.low)} to {_end(interval.high)})"


def _ratio(ratio: float) -> str:
    """Return two digits, three near one: no measurable difference reads "1 times"."""
    digits = 2 if ratio < 0.9 or 1.5 <= ratio < 10 else 3
    return numbers.significant(ratio, digits) if ratio < ANY else f"over {numbers.grouped(ANY)}"


def _end(ratio: float) -> str:
    """Return an end of an interval with enough digits to differ from 1."""
    words = _ratio(ratio)
    return numbers.significant(ratio, 4) if words == "1" else words


def change_words(ratio: float) -> str:
    """Return a change: "12 %", and from twice on "3.1 times"."""
    return percent(ratio - 1) if ratio < 2 else factor_words(ratio)


def repetitions_words(more: Range, names: str) -> str:
    """Return "3 to 8 more repetitions at 2 and 4 hosts"."""
    if more.high is None:
        least = "" if more.low == MOST_REPETITIONS else f"{more.low} to "
        return f"{least}over {MOST_REPETITIONS} more repetitions at {names}"
    first = "" if more.low == more.high else f"{more.low} to "
    return f"{first}{numbers.plural(more.high, 'more repetition')} at {names}"


def percent(share: float) -> str:
    """Return a share with two digits: "32 %", "2.1 %"."""
    return numbers.amount(numbers.rounded(share, _VALUE_DIGITS), numbers.SHARE, _DIGITS)


def times(ratio: float) -> str:
    """Return a factor: "2.8 times"."""
    return f"{numbers.significant(numbers.rounded(ratio, _VALUE_DIGITS), _DIGITS)} times"


def sizes(value: float, axis: str) -> str:
    """Return a size of the axis: "4 hosts", "1 host"."""
    return numbers.plural(value, axis.removesuffix("s"), axis)


def whole_size(value: float) -> int:
    """Return the size that exists nearest to a predicted one: whole, and at least 1."""
    return max(1, floor(value + 0.5))


def whole_sizes(low: float, high: float) -> str:
    """Return an interval of whole sizes: 3.2 to 5.1 is "3 to 6"."""
    first, last = max(1, floor(low)), max(1, ceil(high))
    return (
        numbers.significant(first) if first == last else f"{numbers.significant(first)} to {numbers.significant(last)}"
    )


def size_range(values: Sequence[float], axis: str) -> str:
    """Return "4 hosts", "4, 6 and 12 hosts", "1 to 8 hosts (5 sizes)"."""
    if len(values) > _MOST_SIZES:
        return f"{numbers.significant(values[0])} to {sizes(values[-1], axis)} ({len(values)} sizes)"
    return joined([*map(numbers.significant, values[:-1]), sizes(values[-1], axis)])


def spread_words(values: Sequence[float], unit: str) -> str:
    """Return the range over the sizes: "35 %", or "35 to 45 %", "541 to 1 450 B"."""
    low, high, digits = min(values), max(values), _VALUE_DIGITS if unit == "B" else _DIGITS
    if amount(low, unit, digits) == amount(high, unit, digits):
        return amount(low, unit, digits)
    return between(low, high, unit, digits)
