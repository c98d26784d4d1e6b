"""Numbers for readers: four significant digits, SI prefixes, narrow no-break spaces, a true minus. Pure."""

from __future__ import annotations

import math

NARROW = "\u202f"
MINUS = "\u2212"
NOTHING = "\u2013"
_PREFIXES = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T"}
# Units that take an SI prefix; others (share, 1, packets) are printed as they are.
_PREFIXED = {"s", "B", "B/s", "bit/s", "Hz"}
_COUNTED = {"", "1", "packets", "segments", "connections", "events"}


def grouped(value: float, decimals: int = 0) -> str:
    """`value` with thousands set apart and a true minus: 476209 -> '476 209'."""
    text = f"{value:,.{decimals}f}".replace(",", NARROW)
    return text.replace("-", MINUS)


def significant(value: float, digits: int = 4) -> str:
    """`value` rounded to `digits` significant digits, without exponent between 1e-4 and 1e7."""
    if not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 9:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    return grouped(value, max(0, digits - 1 - magnitude))


def prefix_exponent(magnitude: float) -> int:
    """The power of ten of the SI prefix that brings `magnitude` to 1..1000 (0 for 0)."""
    if magnitude == 0 or not math.isfinite(magnitude):
        return 0
    exponent = 3 * math.floor(math.log10(abs(magnitude)) / 3 + 1e-12)
    return max(-9, min(12, exponent))


def prefixed_unit(unit: str, exponent: int) -> str:
    """`unit` with the prefix of `exponent`; 'k packets/s' keeps its distance."""
    prefix = _PREFIXES[exponent]
    if unit == "packets/s":
        return f"{prefix}{NARROW}packets/s" if prefix else "packets/s"
    return f"{prefix}{unit}"


def takes_prefix(unit: str) -> bool:
    """Whether values of `unit` are shown with an SI prefix."""
    return unit in _PREFIXED or unit == "packets/s"


def quantity(value: float | None, unit: str) -> tuple[str, str]:
    """`value` in `unit` as (number, unit) for display: (0.000458, 's') -> ('458.0', 'µs')."""
    if value is None:
        return NOTHING, ""
    if unit in _COUNTED and float(value).is_integer():
        return grouped(value), "" if unit == "1" else unit
    if unit in ("share", "ratio"):
        return significant(value * 100, 3), "%"
    if not takes_prefix(unit):
        return significant(value), "" if unit == "1" else unit
    exponent = prefix_exponent(value)
    if unit == "s" and exponent > 0:
        exponent = 0  # kiloseconds are nobody's unit
    if unit == "B" and exponent == 0 and float(value).is_integer():
        return grouped(value), unit  # bytes are counted, not measured
    return significant(value / 10**exponent), prefixed_unit(unit, exponent)


def duration(seconds: float | None) -> str:
    """A span for people: '2 h 6 min', '4 min 20 s', '12 s', '0.8 s'."""
    if seconds is None:
        return NOTHING
    if seconds < 10:
        return f"{significant(max(seconds, 0), 2)}{NARROW}s"
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86400, whole % 86400 // 3600, whole % 3600 // 60, whole % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    first = next(i for i, (count, _) in enumerate(parts) if count)
    return " ".join(f"{count}{NARROW}{name}" for count, name in parts[first : first + 2] if count)


def percent_apart(value: float, reference: float) -> str | None:
    """How far `value` lies from `reference`, signed: '+1.5 %'; None where the reference is 0."""
    if reference == 0:
        return None
    apart = 100 * (value / reference - 1)
    if abs(apart) < 0.05:
        return f"0.0{NARROW}%"
    return f"{'+' if apart > 0 else MINUS}{abs(apart):.1f}{NARROW}%"


def percent_change(ratio: float | None) -> str:
    """How far a ratio lies from 1, signed and in percent; a dash where there is none."""
    return NOTHING if ratio is None else percent_apart(ratio, 1.0) or NOTHING


MANY_TIMES = 10.0
"""From this ratio on readers think in times, not in percent."""


def change(ratio: float | None) -> str:
    """A ratio as a change: '−8.8 %', '+210.0 %', and '× 113' from ten times on."""
    if ratio is not None and ratio >= MANY_TIMES:
        return f"×{NARROW}{significant(ratio, 3)}"
    return percent_change(ratio)
