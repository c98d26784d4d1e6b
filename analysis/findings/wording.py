"""Numbers as sentences say them: four significant digits, SI prefixes, thousands apart by a narrow space."""

from __future__ import annotations

from typing import Final

_PREFIXES: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_WHOLE: Final = ("1", "packets/s")


def number(value: float, digits: int = 4) -> str:
    """``digits`` significant digits without an exponent; thousands apart from 10 000 on."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        text = f"{round(value):,}" if abs(value) >= 10_000 else f"{round(value)}"
        text = text if abs(value) >= 10_000 else _trimmed(f"{value:.{max(digits - len(str(int(abs(value)))), 0)}f}")
        return text.replace(",", "\u202f").replace("-", "−")
    rounded = float(f"{value:.{digits - 1}e}")
    return _trimmed(f"{rounded:.{max(digits - 1 - _exponent(rounded), 0)}f}").replace("-", "−")


def _exponent(value: float) -> int:
    return int(f"{abs(value):e}".partition("e")[2])


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str) -> str:
    """Value with its unit: "200.4 s", "1.04 ms", "12 Mbit/s", "191 377" for a plain count."""
    if unit in _WHOLE:
        return number(value) if unit == "1" else f"{number(value)} {unit}"
    if unit == "s" and abs(value) >= 1:
        return f"{number(value)} s"
    scale, prefix = next(((s, p) for s, p in _PREFIXES if abs(value) >= s), (1.0, ""))
    return f"{number(value / scale)} {prefix}{unit}"


def percent(share: float) -> str:
    """A share as whole per cent from 10 % on, with one digit below, two below 1 %."""
    value = 100 * share
    size = abs(value)
    return (
        f"{value:.0f} %"
        if size >= 9.95
        else f"{_trimmed(f'{value:.1f}')} %"
        if size >= 0.95
        else f"{number(value, 2)} %"
    )


def times(ratio: float) -> str:
    """A factor: "2.8 times"."""
    return f"{number(ratio, 2)} times"


def sizes(value: float, axis: str) -> str:
    """A size of the axis: "4 hosts", "1 host"."""
    return f"{value:g} {axis.removesuffix('s') if value == 1 else axis}"


def size_range(values: list[float], axis: str) -> str:
    """ "4 hosts", "4 and 6 hosts", "4, 6 and 12 hosts"."""
    if len(values) == 1:
        return sizes(values[0], axis)
    return f"{', '.join(f'{v:g}' for v in values[:-1])} and {values[-1]:g} {axis}"
