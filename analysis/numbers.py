"""Number formats of everything that is shown, and the reader of printed numbers.

- Digits. What was measured (a value, a median, the ends of a range) has four significant digits; a share, a ratio and the ends of a
  confidence interval have three; shares and factors in the sentences of findings, which conclude from them, two. No digit before
  the point is ever rounded away: 12 346 s.
- Zeros at the end are dropped: 458 µs, 2.6 s, 1 Gbit/s. ``fixed`` keeps them.
- A narrow no-break space separates thousands from 1 000 on, and a unit from its number. Minus is a true minus.
- A unit of measurement takes the SI prefix that leaves 1 to 1000: seconds smaller ones only, bytes and bits larger ones only, and bytes
  are written out below 10 000: 1 514 B. Counts and what is counted in a second have no prefix: 123 457 packets/s.
- A share (the catalogue's unit ``share``, stored as a ratio) is always per cent.
- A change is signed and rounded to 0.1 %: −8.8 %, +20 %; from twice on it is a factor: 3.1×. A change and its interval have one unit.
- A column or an axis has one scale, that of its largest value (``Scale``); counts and their rates from 20 000 on are in thousands.

What people wrote themselves (1 Gbit/s, 0.1 %) is repeated as they wrote it: ``experiments.common.quantities`` does that without loss.
REST and exports hold raw values in base units. ``static/charts.js`` and HOVER follow the rule where the browser writes numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

NARROW: Final = "\u202f"
MINUS: Final = "\u2212"
NOTHING: Final = "\u2013"
SHARE: Final = "share"
"""Unit of what is stored as a ratio and read in per cent."""
HOVER: Final = ",.4~r"
"""The same digits in the notation of d3, for Plotly's hover texts."""
MANY_TIMES: Final = 10.0
"""Ratio from which on an axis is logarithmic or in times."""
_TWICE: Final = 2.0
"""Ratio from which on changes are written in times, not in percent."""

SECONDS: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
"""Seconds of the units of time in which programs print figures."""

_DIGITS, _FEW_DIGITS = 4, 3
_PREFIXES: Final = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
_PREFIXED: Final = {
    "s": (-9, 0),
    "B": (0, 12),
    "B/s": (0, 12),
    "bit/s": (0, 12),
    "Hz": (0, 12),
    "J": (0, 12),
    "W": (0, 12),
}
"""Units with their smallest and largest prefix; there are no kiloseconds or millibytes."""
_WRITTEN_OUT_BYTES: Final = 10_000
_COUNTS: Final = {"": "thousands", "1": "thousands", "packets": "thousands", "packets/s": "thousand packets/s"}
"""Units of counts, with their names on a scale of thousands."""
_THOUSANDS_FROM: Final = 20_000
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def fixed(value: float, decimals: int) -> str:
    """Return `value` with exactly so many decimals, to align numbers."""
    if not math.isfinite(value):
        return NOTHING
    text = f"{value:,.{decimals}f}".replace(",", NARROW)
    return text.replace("-", MINUS) if any(digit in text for digit in "123456789") else text.removeprefix("-")


def plain(value: float, decimals: int) -> str:
    """Return `value` for an address or a field, with at most so many decimals."""
    return _trimmed(f"{value:.{decimals}f}")


def grouped(value: float) -> str:
    """Return a count with grouped thousands: 476209 -> '476 209'."""
    return fixed(value, 0)


def significant(value: float, digits: int = _DIGITS) -> str:
    """Return `value` with `digits` significant digits; a power of ten below 1e-4."""
    if not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    mantissa, exponent = _scientific(value, digits)
    if not -4 <= exponent < 15:
        power = str(exponent).translate(_SUPERSCRIPTS)
        return f"{_trimmed(fixed(mantissa, digits - 1))}{NARROW}×{NARROW}10{power}"
    return _trimmed(fixed(value, max(0, digits - 1 - exponent)))


def rounded(value: float, digits: int) -> float:
    """Return `value` rounded to so many significant digits."""
    return float(f"{value:.{digits - 1}e}")


def _scientific(value: float, digits: int) -> tuple[float, int]:
    """Return mantissa and exponent of the rounded `value`: 999.96 is 1.000e3."""
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    return float(mantissa), int(exponent)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _prefix(value: float, unit: str, digits: int = _DIGITS) -> int:
    """Return the power of ten of the SI prefix; 0 for units without prefixes."""
    smallest, largest = _PREFIXED.get(unit, (0, 0))
    if value == 0 or not math.isfinite(value) or (unit == "B" and round(abs(value)) < _WRITTEN_OUT_BYTES):
        return 0
    exponent = _scientific(value, digits)[1]
    return max(smallest, min(largest, exponent - exponent % 3))


def quantity(value: float | None, unit: str, digits: int | None = None) -> tuple[str, str]:
    """Return (number, unit) for display: (0.000458, 's') -> ('458', 'µs').

    A value that is no number is '–'.
    """
    if unit == SHARE and value is not None:
        value, unit = 100 * value, "%"
    if value is None or not math.isfinite(value):
        return NOTHING, ""
    if unit == "%":
        return significant(value, digits or _FEW_DIGITS), "%"
    if unit == "1":
        unit = ""
    exponent = _prefix(value, unit, digits or _DIGITS)
    return significant(value / 10**exponent, digits or _DIGITS), f"{_PREFIXES[exponent]}{unit}"


def amount(value: float | None, unit: str, digits: int | None = None) -> str:
    """Return `value` with its unit: '458 µs', '1.2 %', '123 457 packets/s' or '–'."""
    return with_unit(*quantity(value, unit, digits))


class Amount(str):
    """A number with its unit in words, which remembers all its digits."""

    exact: str = ""

    @classmethod
    def of(cls, value: float | None, unit: str) -> Amount:
        """Return the words of ``amount`` with ``exact``."""
        words = cls(amount(value, unit))
        words.exact = exact(value, unit)
        return words


def exact(value: float | None, unit: str) -> str:
    """Return all digits of `value` and its base unit: '0.0004583 s'.

    For other programs; '' for no number.
    """
    if value is None or not math.isfinite(value):
        return ""
    number, unit = Decimal(str(value)), "" if unit == "1" else unit
    if unit == SHARE:
        number, unit = 100 * number, "%"
    return f"{_trimmed(format(number, 'f'))} {unit}".rstrip()


def with_unit(number: str, unit: str) -> str:
    """Return a number in words and its unit, kept together on one line."""
    return f"{number}{NARROW}{unit}" if unit else number


_SPACE_OF_UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|min|[kKMGT]?i?B|[kMG]bit/s)(?![\w/]))")


def unbroken(text: str) -> str:
    """Return a sentence whose numbers are each on one line with their unit."""
    return _SPACE_OF_UNIT.sub(NARROW, text)


def between(low: float | None, high: float | None, unit: str = "", digits: int = _FEW_DIGITS) -> str:
    """Return an interval: '1.21 to 1.29', '241 ms to 1.2 s'; '' without both ends."""
    if low is None or high is None or not math.isfinite(low) or not math.isfinite(high):
        return ""
    (first, first_unit), (last, last_unit) = quantity(low, unit, digits), quantity(high, unit, digits)
    return f"{first if first_unit == last_unit else with_unit(first, first_unit)} to {with_unit(last, last_unit)}"


class Ends(Protocol):
    """An object with a lower and an upper end, as ``analysis.statistics.Interval``."""

    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def interval(ends: Ends | None, unit: str = "", digits: int = _FEW_DIGITS) -> str:
    """Return a confidence interval in words; '' without both ends."""
    return "" if ends is None else between(ends.low, ends.high, unit, digits)


def with_interval(value: float, ends: Ends | None, unit: str = "", digits: int | None = None) -> str:
    """Return an estimate with its interval, if known: '1.253 s (1.21 to 1.29 s)'."""
    text, words = amount(value, unit, digits), interval(ends, unit)
    return f"{text} ({words})" if words else text


def times(ratio: float, digits: int = _FEW_DIGITS) -> str:
    """Return a factor: '2.82×'."""
    return f"{significant(ratio, digits)}×" if math.isfinite(ratio) else NOTHING


def percent_apart(value: float, reference: float) -> str | None:
    """Return the difference from `reference`: '+1.5 %'; None if that is 0."""
    return None if reference == 0 else percent_change(value / reference)


def percent_change(ratio: float | None) -> str:
    """Return the difference of a ratio from 1 in percent, signed; '–' for None."""
    if ratio is None or not math.isfinite(ratio):
        return NOTHING
    percent = 100 * (ratio - 1)
    return with_unit(signed(percent, 1 if abs(percent) < 99.95 else 0), "%")


def signed(value: float, decimals: int) -> str:
    """Return `value` with its sign and at most so many decimals: '+0.56', '−1', '0'."""
    text = _trimmed(fixed(value, decimals))
    return f"+{text}" if value > 0 and text not in ("0", NOTHING) else text


def change(ratio: float | None) -> str:
    """Return a ratio as a change: '−8.8 %', '+20 %', and '3.1×' from 2 on."""
    return changes(ratio)[0]


def changes(*ratios: float | None) -> list[str]:
    """Return ratios as changes in one unit: '−8.8 %'; '1.96×' with one from 2 on."""
    largest = max((ratio for ratio in ratios if ratio is not None and math.isfinite(ratio)), default=0.0)
    return [percent_change(ratio) if ratio is None or largest < _TWICE else times(ratio) for ratio in ratios]


def duration(seconds: float | None) -> str:
    """Return a time span: '2 h 6 min', '4 min 20 s', '12 s', '0.8 s'."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 10:
        return with_unit(significant(max(seconds, 0), 2), "s")
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60, whole % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next(i for i, (count, _) in enumerate(parts) if count)
    return " ".join(with_unit(str(count), name) for count, name in parts[first : first + 2] if count)


_BINARY: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_DECIMAL: Final = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))


def binary(size_bytes: int) -> tuple[int, str]:
    """Return a size in its binary unit without loss: (4, 'MiB'), (1500, 'B')."""
    unit, factor = next((pair for pair in _BINARY if size_bytes and size_bytes % pair[1] == 0), ("B", 1))
    return size_bytes // factor, unit


def size(size_bytes: int) -> str:
    """Return a chosen size without loss, binary before decimal: '4 MiB', '568 MB'."""
    count, unit = binary(size_bytes)
    if unit == "B" and size_bytes >= _WRITTEN_OUT_BYTES:
        unit, factor = next((pair for pair in _DECIMAL if size_bytes % pair[1] == 0), ("B", 1))
        count = size_bytes // factor
    return f"{grouped(count)} {unit}"


def plural(count: float, one: str, many: str = "", digits: int = _DIGITS) -> str:
    """Return a count with its noun: '1 host', '2 jobs'; `many` for irregular plurals."""
    text = significant(count, digits)
    return f"{text} {one if text == '1' else many or f'{one}s'}"


@dataclass(frozen=True, slots=True)
class Scale:
    """One scale for a whole column or chart, so that its numbers compare."""

    exponent: int
    unit: str

    @classmethod
    def of(cls, values: Sequence[float], unit: str) -> Scale:
        """Return the scale for the largest of `values` in `unit`."""
        largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
        if unit == SHARE:
            return cls(-2, "%")
        if unit in _COUNTS and largest >= _THOUSANDS_FROM:
            return cls(3, _COUNTS[unit])
        exponent = _prefix(largest, unit)
        return cls(exponent, "" if unit in ("", "1", "packets") else f"{_PREFIXES[exponent]}{unit}")

    def __call__(self, value: float) -> float:
        return float(value / 10**self.exponent)


_SHOWN: Final = 120
"""First characters of a word that are shown: programs print words of any length."""
_FORTRAN: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[dD]([+-]?\d+)|([+-]\d{3}))")
"""``0.68D+00``; and ``0.68-101``, since the letter gives way to an exponent of three digits."""


def read_number(word: str, thousands: str = "") -> float:
    """Return the number that a word is as a whole; it may be NaN or infinite.

    ``thousands`` separates groups of three digits; the decimals follow a comma if it is a point. Raise ValueError.
    """
    text = word.strip()
    has_comma = thousands not in ("", ",") and thousands in text and "," in text
    decimal = "," if thousands == "." or has_comma else "."
    if thousands:
        digits, point, decimals = text.partition(decimal)
        if re.fullmatch(rf"[+-]?[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+", digits):
            digits = digits.replace(thousands, "")
        if thousands in digits or thousands in decimals:
            raise ValueError(f"{word[:_SHOWN]!r} is no number with {thousands!r} between groups of three digits")
        text = f"{digits}.{decimals}" if point else digits
    if (fortran := _FORTRAN.fullmatch(text)) is not None:
        text = f"{fortran[1]}e{fortran[2] or fortran[3]}"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{word[:_SHOWN]!r} is no number") from None
