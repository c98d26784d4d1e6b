"""The form of named networks: a row for each, and one for a new one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from experiments.common.quantities import BANDWIDTH, DURATION
from experiments.models import Network

MOST: Final = 20
"""Most networks of a map."""
LONGEST_DELAY_S: Final = 10.0
RATES: Final = (1e3, 1e13)
LONGEST_NAME: Final = 40


@dataclass(slots=True)
class NetworkRow:
    """One network as entered, with its errors."""

    name: str = ""
    delay: str = ""
    rate: str = ""
    errors: list[str] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        """Return True for a row without a name, which is skipped."""
        return not self.name

    def read(self) -> Network | None:
        """Return the network; None with ``errors`` if it is invalid."""
        delay, rate = self._quantity(DURATION, self.delay), self._quantity(BANDWIDTH, self.rate)
        if delay is not None and not 0 <= delay <= LONGEST_DELAY_S:
            self.errors.append("the delay must be from 0 to 10 s")
        if rate is not None and not RATES[0] <= rate <= RATES[1]:
            self.errors.append("the rate must be from 1 kbit/s to 10 Tbit/s")
        if len(self.name) > LONGEST_NAME:
            self.errors.append("the name must have at most 40 characters")
        if self.errors or delay is None or rate is None:
            return None
        return Network(name=self.name, delay_s=delay, rate_bps=rate)

    def _quantity(self, dimension: Any, text: str) -> float | None:
        try:
            value: float = dimension.parse(text)
        except ValueError as error:
            self.errors.append(str(error))
            return None
        return value


def rows_of(networks: Iterable[Network]) -> list[NetworkRow]:
    """Return the stored networks and an empty row."""
    stored = [NetworkRow(n.name, DURATION.format(n.delay_s), BANDWIDTH.format(n.rate_bps)) for n in networks]
    return [*stored, NetworkRow()]


def rows_from(names: Sequence[str], delays: Sequence[str], rates: Sequence[str]) -> list[NetworkRow]:
    """Return the rows of a submitted form, cut to the shortest list."""
    sent = list(zip(names, delays, rates, strict=False))[:MOST]
    return [NetworkRow(name.strip(), delay.strip(), rate.strip()) for name, delay, rate in sent]


def read(rows: Sequence[NetworkRow]) -> list[Network] | None:
    """Return the networks of rows with a name; None with errors if one is invalid."""
    named_rows = [row for row in rows if not row.is_blank]
    names = [row.name.casefold() for row in named_rows]
    networks = [row.read() for row in named_rows]
    for row, name in zip(named_rows, names, strict=True):
        if names.count(name) > 1:
            row.errors.append("the name is used twice")
    if any(row.errors for row in named_rows):
        return None
    return [network for network in networks if network is not None]
