"""Network needs of a ring and a ping-pong by construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

EAGER_BYTES: Final = 65536
"""Open MPI's eager limit over TCP, its own header included."""
_HEADER_BYTES: Final = 32
"""Open MPI's header of a message, at most."""
_IP_TCP_BYTES: Final = 52
"""With TCP's time stamps."""
_ETHERNET_BYTES: Final = 14
_HANDSHAKE: Final = 2
"""A message above the eager limit waits for its request and for the permission: two more messages one way."""


@dataclass(frozen=True, slots=True)
class KnownNeeds:
    """Sequential one-way messages, and bytes of the frames that hold them."""

    messages: float
    frame_bytes: float


def known_needs(workload: str, parameters: Mapping[str, Any]) -> KnownNeeds:
    """Return the needs of one measured time; KeyError for other workloads."""
    times = {"ring": parameters.get("steps", 0), "pingpong": 1}[workload]
    size = int(parameters["message_bytes"]) + _HEADER_BYTES
    messages = 1 if size <= EAGER_BYTES else 1 + _HANDSHAKE
    frames = ceil(size / (int(parameters.get("link.mtu", 1500)) - _IP_TCP_BYTES))
    return KnownNeeds(float(times * messages), float(times * (size + frames * (_IP_TCP_BYTES + _ETHERNET_BYTES))))
