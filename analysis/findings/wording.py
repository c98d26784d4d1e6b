"""What the sentences of findings say of numbers: shares and factors to two digits, sizes of the axis."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from typing import Final

from analysis.numbers import SHARE, amount, plural, significant

_DIGITS: Final = 2


def percent(share: float) -> str:
    """A share that something is concluded from: "32 %", "2.1 %"."""
    return amount(share, SHARE, _DIGITS)


def times(ratio: float) -> str:
    """A factor in a sentence: "2.8 times"."""
    return f"{significant(ratio, _DIGITS)} times"


def sizes(value: float, axis: str) -> str:
    """A size of the axis: "4 hosts", "1 host"."""
    return plural(value, axis.removesuffix("s"), axis)


def whole_size(value: float) -> int:
    """The size that exists nearest to a predicted one: whole, and at least 1."""
    return max(1, floor(value + 0.5))


def whole_sizes(low: float, high: float) -> str:
    """An interval of sizes by those that exist, the ends included: 3.2 to 5.1 is "3 to 6"; one alone is "1"."""
    first, last = max(1, floor(low)), max(1, ceil(high))
    return significant(first) if first == last else f"{significant(first)} to {significant(last)}"


def size_range(values: Sequence[float], axis: str) -> str:
    """ "4 hosts", "4 and 6 hosts", "4, 6 and 12 hosts"."""
    if len(values) == 1:
        return sizes(values[0], axis)
    return f"{', '.join(map(significant, values[:-1]))} and {significant(values[-1])} {axis}"
