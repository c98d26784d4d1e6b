"""Recording with a kernel ring in our own namespaces (`workers.testbed.recorder`)."""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import zstandard

from workers.agent.process_table import available_memory_bytes
from workers.capture.dumpcap import (
    DEFAULT_SNAP_LENGTH,
    QUIET_S,
    Bytes,
    Capture,
    CaptureReport,
    compressed,
    compressor,
    store,
)
from workers.capture.packet_slots import file_header, packet_blocks, wire_bytes
from workers.capture.slot_memory import SlotMemory, filled_bytes
from workers.capture.start import Start, reason, start
from workers.errors import CaptureUnavailable
from workers.hosts.processes import Agent, LocalAgent
from workers.testbed import recorder

PYTHON: Final = "/usr/bin/python3"
PROGRAM: Final = Path(recorder.__file__)
RING_BYTES: Final = 64 << 20
"""Two seconds of the most that two cores send, at the default snap length; fetched twenty times a second."""
PIECE_BYTES: Final = 7 << 18
"""Of slots at a time: stays in the processor's cache. A slot is as long as the snap length."""
REPORT_POLL_S: Final = 0.002
LOOPBACK_QUIET_S: Final = 0.01  # its frames arrive while they are sent, and closed sockets acknowledge at once


class RingCapture(Capture):
    """Recording whose slots become a pcapng file when it is stored, piece by piece."""

    def __init__(
        self,
        agent: Agent,
        program: Start,
        interface: str,
        slots: int,
        memory: SlotMemory,
        snap_length: int,
        limit: int,
        is_filtered: bool,
    ) -> None:
        self._is_filtered = is_filtered
        self._memory = memory
        self._slots = slots
        self._slot_bytes = recorder.slot_bytes(snap_length)
        self._header = [file_header(interface, snap_length)]
        self._packed: list[bytes] = []
        """Compressed while no packet came, an eighth of the slots."""
        self._taken = self._tallied = self._wire_bytes = 0
        super().__init__(agent, program.process, interface, program.files, program.baseline, limit)

    @classmethod
    def on_interface(
        cls,
        agent: LocalAgent,
        interface: str,
        memory: SlotMemory,
        *,
        snap_length: int = DEFAULT_SNAP_LENGTH,
        must_hold: Sequence[tuple[int, int]] = (),
        tcp_ports: tuple[int, int] | None = None,
    ) -> RingCapture:
        """Start to record from an interface of the agent's network.

        `must_hold`: offsets and values of bytes; frames with another value are
        left out. `tcp_ports`: first and last port of TCP; other frames are left out. The recording ends at a quarter of
        the free memory. Raises CaptureUnavailable.
        """
        free = available_memory_bytes()
        limit = free // 4
        plan = {
            "interface": interface,
            "snap_length": snap_length,
            "ring_bytes": min(RING_BYTES, free // 8),
            "most_bytes": limit,
            "must_hold": [list(pair) for pair in must_hold],
            "tcp_ports": tcp_ports,
        }
        try:
            slots = memory.take()
        except OSError as error:
            raise CaptureUnavailable(reason(error)) from error
        argv = [PYTHON, "-I", "-S", str(PROGRAM), json.dumps(plan)]
        is_filtered = bool(must_hold or tcp_ports)
        program = start(agent, argv, counted=interface, output=slots)
        return cls(agent, program, interface, slots, memory, snap_length, limit, is_filtered)

    def tally(self) -> tuple[int, int]:
        """Return the packets recorded so far, and their bytes on the wire.

        Costs a hundredth of the conversion to pcapng, which a measured program would feel (benchmarks/notes/november-2026.md).
        """
        end = self._slots_bytes() // self._slot_bytes * self._slot_bytes
        if end > self._tallied:
            start = self._tallied // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
            with mmap.mmap(self._slots, end - start, access=mmap.ACCESS_READ, offset=start) as mapped:
                self._wire_bytes += wire_bytes(memoryview(mapped)[self._tallied - start :], self._slot_bytes)
            self._tallied = end
        return end // self._slot_bytes, self._wire_bytes

    def stop(self, quiet_s: float = QUIET_S) -> CaptureReport:
        return super().stop(min(quiet_s, LOOPBACK_QUIET_S) if self._interface == recorder.LOOPBACK else quiet_s)

    @cached_property
    def _stream(self) -> zstandard.ZstdCompressionObj:
        return compressor()

    def save(self, path: Path) -> Path:
        store(chain(self._packed, compressed(self._new_pieces(), self._stream)), path)
        return path

    def _use_wait(self) -> None:
        self._packed += map(self._stream.compress, self._new_pieces())

    def _new_pieces(self) -> Iterator[Bytes]:
        """Yield the pcapng of the slots that were filled since the last call."""
        while self._header:
            yield self._header.pop()
        end = self._recorded()
        while self._taken < end:
            count = min(max(PIECE_BYTES // self._slot_bytes, 1), end - self._taken)
            slots = os.pread(self._slots, count * self._slot_bytes, self._taken * self._slot_bytes)
            self._taken += count
            yield packet_blocks(slots, self._slot_bytes).data

    def close(self) -> None:
        if self._packets >= 0:
            super().close()
            self._memory.give_back(self._slots)

    def _is_recording(self) -> bool:
        return self._read_messages().startswith(recorder.READY)

    def _refusal(self) -> str:
        return self._read_messages().strip() or f"{recorder.NAME} ended without a message"

    def _has_reported(self, limit_s: float) -> bool:
        """Wait for the report, and not for the end: the kernel frees the ring in 30 ms."""
        deadline = time.monotonic() + limit_s
        while self._totals() is None and self._process.wait(REPORT_POLL_S) is None:
            if time.monotonic() >= deadline:
                return False
        return True

    def _settling_bytes(self) -> int:
        return self._slots_bytes()

    def _is_complete(self, on_interface: int | None) -> bool:
        """Return whether all frames are in the file, or for the recorder to fetch.

        What a filter leaves out cannot be counted; the recorder empties the ring when it is stopped.
        """
        return on_interface is not None and (self._is_filtered or self._recorded() >= on_interface)

    def _recorded(self) -> int:
        return self._slots_bytes() // self._slot_bytes

    def _slots_bytes(self) -> int:
        return filled_bytes(self._slots)

    def _parse_report(self, died: bool) -> CaptureReport:
        totals = self._totals()
        if totals is None:  # it was killed, or ended by an error
            return CaptureReport(0, 0, 0, died=True, limit_reached=False)
        return CaptureReport(died=died and not totals["limit_reached"], **totals)

    def _totals(self) -> dict[str, Any] | None:
        """Return the recorder's counts; None before its report, or without one."""
        try:
            totals: dict[str, Any] = json.loads(self._read_messages().removeprefix(recorder.READY))
        except ValueError:
            return None
        return totals
