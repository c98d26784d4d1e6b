"""The packet selection of a trial: numbers, seconds and display filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlencode

from django.http import HttpRequest

from dashboard.requests.lookup import query_value
from experiments.files import read_analysis
from experiments.models import Artifact, Trial

LAST_FRAME: Final = 10**9
_LAST_S: Final = 1e9
LONGEST_FILTER: Final = 1000
KINDS: Final = (
    ("data", "TCP with payload"),
    ("ack", "TCP without payload"),
    ("handshake", "opens or ends a connection"),
    ("problem", "retransmitted, out of order, full window"),
    ("datagram", "UDP, RoCE"),
    ("other", "everything else"),
)
"""The kinds of ``analysis.capture.listing`` and their meanings."""
_UNNAMED: Final = ("data", "fake-field-wrapper")


@dataclass(frozen=True, slots=True)
class PacketQuery:
    """Fields of the form as text; each is part of the address."""

    filter: str = ""
    first: str = ""
    last: str = ""
    from_s: str = ""
    until_s: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        texts = {name: query_value(request, name).strip() for name in ("first", "last", "from_s", "until_s")}
        return cls(filter=query_value(request, "filter")[:LONGEST_FILTER], **texts)

    def address(self, **other: str) -> str:
        """Return the query of the address, without empty fields."""
        fields = {"tab": "packets"} | {name: getattr(self, name) for name in self.__slots__} | other
        return urlencode({name: value for name, value in fields.items() if value})

    def of_connection(self, connection: str) -> str:
        """Return the query of the address for one connection among these packets."""
        joined = f"({self.filter}) and {connection}" if self.filter else connection
        if len(joined) > LONGEST_FILTER:
            joined = connection
        is_chosen = self.filter == connection or self.filter.endswith(f") and {connection}")
        return self.address(filter=self.filter if is_chosen else joined)

    @property
    def frames(self) -> tuple[int, int]:
        """Return first and last packet. Raise ValueError for invalid numbers."""
        return _number(self.first, 1), _number(self.last, LAST_FRAME)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Return first and last second, None if empty. Raise ValueError if invalid."""
        if not (self.from_s or self.until_s):
            return None
        begin_s, end_s = _seconds(self.from_s, 0.0), _seconds(self.until_s, _LAST_S)
        if begin_s > end_s:
            raise ValueError("The end of the interval is before its start.")
        return begin_s, end_s


def _number(text: str, default: int) -> int:
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:12]) <= LAST_FRAME):
        raise ValueError("Packets are numbered from 1.")
    return int(text)


def _seconds(text: str, default: float) -> float:
    if not text:
        return default
    try:
        seconds = float(text) if text.isascii() and len(text) <= 30 else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LAST_S:
        raise ValueError("Times are seconds since the first packet, such as 1.25.")
    return seconds


def begin_of_packets(trial: Trial) -> float | None:
    """Return the epoch time of the first packet; None without stored packets."""
    if not trial.artifacts.filter(kind=Artifact.Kind.CAPTURE, removed_at=None).exists():
        return None
    began: float | None = ((read_analysis(trial) or {}).get("series") or {}).get("start_s")
    return began


def protocol(packet: Mapping[str, Any]) -> str:
    """Return the highest protocol that tshark identified."""
    named = [layer["name"] for layer in packet["layers"] if layer["name"] not in _UNNAMED]
    return str(named[-1].upper() if packet["protocol"] == "DATA" and named else packet["protocol"])
