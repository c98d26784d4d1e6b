"""Quantities with units: text (``300 Mbit/s``) to base values and back. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from experiments.common import budget

_NUMBER = re.compile(r"^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*)$", re.DOTALL)
_LONGEST: Final = 60
"""Maximum length of a quantity; longer text is refused unread."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A kind of quantity and the factor of each unit to its base unit."""

    name: str
    base: str
    units: dict[str, Decimal]
    display_units: tuple[str, ...]
    """Units used for output, largest first."""

    def parse(self, text: str | int | float) -> float:
        """Return the value in the base unit; a bare number has it. Raise ValueError.

        Counts as processor time: lists of rates have any length.
        """
        budget.check()
        if not isinstance(text, str):
            # float() first: an int of thousands of digits cannot even be printed.
            text = _printed(text)
        match = _NUMBER.match(text.strip()) if len(text) <= _LONGEST else None
        if match is None:
            raise ValueError(f"{text[:_LONGEST]!r} is not a {self.name}; write for example {self.example!r}")
        number, unit = match.groups()
        factor = Decimal(1) if not unit else self.factor(unit)
        if factor is None:
            raise ValueError(f"unknown unit {unit!r} for a {self.name}; known: {', '.join(filter(None, self.units))}")
        try:
            value = float(Decimal(number) * factor)
        except ArithmeticError:
            value = math.inf
        if not math.isfinite(value):
            raise ValueError(f"{text!r} is too large for a {self.name}")
        return value

    @property
    def pattern(self) -> str:
        """Return a regular expression of the text that ``parse`` reads, for JSON schemas."""
        units = "|".join(map(re.escape, sorted(filter(None, self.units), key=len, reverse=True)))
        return rf"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{{1,2}})? ?({units})?$"

    def factor(self, unit: str) -> Decimal | None:
        """Return the base units per ``unit``; None for a unit of another kind."""
        return self.units.get(unit, self.units.get(unit.lower()))

    def format(self, value: float) -> str:
        """Return the value in the largest unit that keeps it at or above one, exactly."""
        exact = Decimal(repr(value))
        unit = next((u for u in self.display_units if abs(exact) >= self.units[u]), self.display_units[-1])
        number = (exact / self.units[unit]).normalize()
        return f"{number:f} {unit}"

    @property
    def example(self) -> str:
        return f"10 {self.display_units[0]}"


def _printed(number: float) -> str:
    try:
        return str(float(number)) if abs(number) >= 1e18 else str(number)
    except OverflowError:
        return "an unbounded number"


def _units(text: str) -> dict[str, Decimal]:
    """Return unit -> factor of ``unit=factor`` words."""
    return {unit: Decimal(factor) for unit, _, factor in (word.partition("=") for word in text.split())}


BANDWIDTH: Final = Dimension(
    "bandwidth",
    "bit/s",
    _units(
        "Gbit/s=1e9 Mbit/s=1e6 kbit/s=1e3 bit/s=1 gbit/s=1e9 mbit/s=1e6 Gb/s=1e9 Mb/s=1e6 kb/s=1e3 "
        "Gbps=1e9 Mbps=1e6 kbps=1e3 gbit=1e9 mbit=1e6 kbit=1e3 GB/s=8e9 MB/s=8e6 kB/s=8e3"
    ),
    ("Gbit/s", "Mbit/s", "kbit/s", "bit/s"),
)
DURATION: Final = Dimension("time", "s", _units("s=1 ms=1e-3 us=1e-6 µs=1e-6 ns=1e-9 min=60 h=3600"), ("s", "ms", "us"))
FRACTION: Final = Dimension("share", "", _units("%=0.01 =1"), ("%",))
SIZE: Final = Dimension(
    "size", "bytes", _units(f"GiB={1 << 30} MiB={1 << 20} KiB=1024 GB=1e9 MB=1e6 kB=1e3 B=1 bytes=1"), ("B",)
)
CLOCK: Final = Dimension(
    "clock rate", "Hz", _units("GHz=1e9 MHz=1e6 kHz=1e3 Hz=1 ghz=1e9 mhz=1e6"), ("GHz", "MHz", "Hz")
)
POWER: Final = Dimension("power", "W", _units("kW=1e3 W=1 kw=1e3 w=1"), ("kW", "W"))
BYTE_RATE: Final = Dimension(
    "rate", "B/s", {"B/s": Decimal(1), **{unit: factor / 8 for unit, factor in BANDWIDTH.units.items()}}, ("B/s",)
)
"""For metrics in bytes per second; units of bandwidth are converted."""
DIMENSIONS: Final = (BANDWIDTH, DURATION, FRACTION, SIZE, CLOCK, POWER)


def common_dimension(units: Iterable[str]) -> Dimension:
    """Return the kind of quantity with all of these units. Raise ValueError."""
    distinct = list(dict.fromkeys(units))
    for unit in distinct:
        if all(dimension.factor(unit) is None for dimension in DIMENSIONS):
            raise ValueError(f"unknown unit {unit!r}")
    shared = next((d for d in DIMENSIONS if all(d.factor(unit) is not None for unit in distinct)), None)
    if shared is None:
        raise ValueError(f"units of different kinds: {' and '.join(distinct)}")
    return shared
