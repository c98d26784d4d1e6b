"""What a recording is to hold: one value, from the trial that asks to the program that records."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

DEFAULT_SNAP_LENGTH: Final = 128
"""Ethernet, IP and TCP with options, and MPI's 24-byte handshake."""


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What is asked of a recording; what is left out is the session's choice.

    `host` is one of the session's `recorded_hosts`, `interface` a name there. `snap_length`: bytes that are kept of each
    packet. `capture_filter`: in the language of pcap. At `max_bytes` the recording ends by itself; None: at what the
    machine can spare.
    """

    host: str | None = None
    interface: str = ""
    snap_length: int = DEFAULT_SNAP_LENGTH
    capture_filter: str | None = None
    max_bytes: int | None = None

    def on(self, interface: str, usual_filter: str | None = None) -> CaptureOptions:
        """The same on an interface, through the filter that is usual there unless another one was asked for."""
        return dataclasses.replace(
            self, interface=self.interface or interface, capture_filter=self.capture_filter or usual_filter
        )


DEFAULT_CAPTURE: Final = CaptureOptions()
