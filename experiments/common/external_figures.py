"""Figures of merit of other tools, such as ``reframe.latency_s``. Pure.

The name states the unit, because no workload defines the figure. Times, sizes and rates are converted to their base unit and end in it;
any other unit follows ``_in_``, as in ``reframe.throughput_in_steps_per_day``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

TOOLS: Final = {"reframe": "ReFrame", "ramble": "Ramble"}
_ENDINGS: Final = {
    "_bytes_per_s": "B/s",
    "_s": "s",
    "_bps": "bit/s",
    "_gflops": "GFLOP/s",
    "_bytes": "B",
    "_percent": "%",
    "_w": "W",
    "_j": "J",
}
"""Suffixes of names and their units, longer ones first."""
_TIMES: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs", "µs", "μs", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "minutes"), 60.0),
    **dict.fromkeys(("h", "hours"), 3600.0),
}
_PREFIXES: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY: Final = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_AMOUNT: Final = re.compile(r"(?P<prefix>[KMGT]i|[kKMGT])?(?P<what>B|Bytes?|bytes?|b|bits?|Bits?)(?P<rate>/s|/sec|ps)?")
_FLOPS: Final = re.compile(r"(?P<prefix>[kKMGT])?(?:FLOPS?|[Ff]lops?)(?:/s|/sec)?")
_OTHER_UNIT: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:/[A-Za-z][A-Za-z0-9]*)?")
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class ExternalFigure:
    """Tool, name and unit of an external figure."""

    tool: str
    name: str
    unit: str


def named(tool: str, name: str, value: float, unit: str) -> tuple[str, float]:
    """Return the identifier and the converted value. Raise ValueError."""
    ending, factor = _unit(unit.strip())
    word = _word(name)
    if ending and len(short := word.removesuffix(f"_{_word(unit)}")) < len(word):
        word = short  # latency_us in us
    if not word:
        raise ValueError("its name has neither letters nor digits")
    if not ending and described(f"{tool}.{word}") != ExternalFigure(tool, word, "1"):
        word = f"{word}_value"  # the name would state a unit that it does not have
    if ending and word.endswith(ending):
        ending = ""
    identifier = f"{tool}.{word}{ending}"
    if len(identifier) > _LONGEST:
        raise ValueError(f"its name is longer than the {_LONGEST} characters that a metric's may have")
    # In decimals: 1.25 us is exactly 0.00000125 s.
    return identifier, float(Decimal(repr(value)) * Decimal(repr(factor)))


def described(identifier: str) -> ExternalFigure | None:
    """Return the figure that ``identifier`` names; None if its tool is unknown."""
    tool, _, name = identifier.partition(".")
    if tool not in TOOLS or not re.fullmatch(r"[A-Za-z0-9_]+", name):
        return None
    plain, other, unit = name.rpartition("_in_")
    if other:
        return ExternalFigure(tool, plain, unit.replace("_per_", "/"))
    for ending, unit in _ENDINGS.items():
        if name.endswith(ending) and name != ending:
            return ExternalFigure(tool, name.removesuffix(ending), unit)
    return ExternalFigure(tool, name, "1")


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()


def _unit(unit: str) -> tuple[str, float]:
    """Return the suffix of the name and the factor of the value."""
    if unit in ("", "1"):
        return "", 1.0
    if unit in _TIMES:
        return "_s", _TIMES[unit]
    if unit in ("%", "W", "J"):
        return {"%": "_percent", "W": "_w", "J": "_j"}[unit], 1.0
    if match := _FLOPS.fullmatch(unit):
        return "_gflops", _PREFIXES[match["prefix"] or ""] / 1e9
    if match := _AMOUNT.fullmatch(unit):
        factor = {**_PREFIXES, **_BINARY}[match["prefix"] or ""]
        bits = (match["what"].startswith("b") and not match["what"].startswith("byte")) or match["what"].startswith(
            "Bit"
        )
        if bits and match["rate"]:
            return "_bps", factor
        if not bits:
            return ("_bytes_per_s" if match["rate"] else "_bytes"), factor
    if _OTHER_UNIT.fullmatch(unit) and "_" not in unit:
        return f"_in_{unit.replace('/', '_per_')}", 1.0
    raise ValueError(f"its unit {unit[:40]!r} is not known")
