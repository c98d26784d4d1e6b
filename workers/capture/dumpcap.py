"""Recording with dumpcap into anonymous memory while a job runs.

The growing file is a memfd: no disk is written while the trial is measured, other processes of this user may read along, and a
worker that dies leaves no file. dumpcap and not tcpdump: tcpdump drops privileges, which a user namespace does not permit.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Self

import zstandard

from workers.agent.process_table import available_memory_bytes
from workers.capture.start import end_at_once, frames_on, reason, start
from workers.errors import CaptureUnavailable, ClusterUnavailable, LaunchFailed, TrialFailed
from workers.hosts.processes import Agent, LocalAgent, Process
from workers.hosts.programs import find_program, search_path

DEFAULT_SNAP_LENGTH: Final = 128
"""Ethernet, IP and TCP with options, and the 24-byte handshake of MPI."""
KERNEL_BUFFER_MIB = 64  # seconds of headers, should the writer not get a core
START_LIMIT_S = 10.0
STILL_S = 0.3  # the kernel hands over a partly filled block of its ring after 250 ms
QUIET_S = 0.05  # the ranks are gone by then: only the kernel's last acknowledgements are on their way
POLL_S = 0.02
SETTLE_LIMIT_S = 2.0
END_LIMIT_S = 20.0
Bytes = bytes | memoryview
COMPRESSION_LEVEL = 1
MOST_THREADS = 4
CHUNK_BYTES = 1 << 20
NOT_PERMITTED = (
    "this user may not record packets: run `dpkg-reconfigure wireshark-common` and add the worker's user to the group "
    "wireshark"
)

_CAPTURED = re.compile(r"Packets captured: ([0-9]{1,18})\b")
_TOTALS = re.compile(r"Packets received/dropped on interface '[^']*': ([0-9]{1,18})/([0-9]{1,18})\b")


@dataclass(frozen=True)
class CaptureReport:
    """Counts of the capture tool. `died`: it ended before the run did, without counts."""

    captured: int
    received: int
    dropped: int
    died: bool
    limit_reached: bool


class Capture:
    """A running or ended recording.

    A context manager: entering it waits until the first packet can come, leaving it frees the memory.
    """

    grows_here: ClassVar[bool] = True
    """True if `file` grows while it records."""
    where = ""
    """Place of the recording, which precedes the reason of a refusal."""

    def __init__(
        self, agent: Agent, process: Process, interface: str, files: tuple[int, int], baseline: int | None, limit: int
    ) -> None:
        self._agent = agent
        self._process = process
        self._interface = interface
        self._packets, self._messages = files
        self._baseline = baseline
        self._limit = limit
        self._report: CaptureReport | None = None
        self._counters: tuple[int | None, int] | None = None
        self._sent = self._changed = 0.0

    @classmethod
    def start(
        cls, agent: LocalAgent, interface: str, capture_filter: str, snap_length: int = DEFAULT_SNAP_LENGTH
    ) -> Capture:
        """Start to record from an interface of the agent's network.

        The recording ends at a quarter of the free memory. Raises CaptureUnavailable.
        """
        limit = available_memory_bytes() // 4
        program = start(agent, dumpcap_argv(recorder(), interface, capture_filter, snap_length, limit))
        return cls(agent, program.process, interface, program.files, None, limit)

    def __enter__(self) -> Self:
        try:
            self.await_start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def file(self) -> Path:
        """The growing pcapng, under a path that other processes of this user can open."""
        return Path(f"/proc/{os.getpid()}/fd/{self._packets}")

    def await_start(self) -> None:
        """Wait until the first packet can come. Raises CaptureUnavailable."""
        try:
            self._wait_until_recording()
        except (LaunchFailed, ClusterUnavailable, OSError) as error:
            raise CaptureUnavailable(f"{self.where}{reason(error)}") from error

    def look(self) -> int | None:
        """Return the frames so far; a silence is counted from the first look."""
        now, counters = time.monotonic(), (self._on_interface(), self._settling_bytes())
        if self._counters is None or counters[0] != self._counters[0]:
            self._sent = now
        if counters != self._counters:
            self._counters, self._changed = counters, now
        return counters[0]

    def stop(self, quiet_s: float = QUIET_S) -> CaptureReport:
        """Wait until no packet is on its way, then end the recording. Idempotent.

        `quiet_s`: how long no frame must come; longer than packets take on a slow path.
        """
        if self._report is None:
            died = self._ended_by_itself() or not self._settle(quiet_s)
            with contextlib.suppress(ClusterUnavailable):
                self._process.send_signal(signal.SIGINT)
                if not self._has_reported(END_LIMIT_S):
                    self._process.terminate(0.0)
                    died = True
            self._report = self._parse_report(died)
        return self._report

    def save(self, path: Path) -> Path:
        """Write the ended recording to `path`, if cut off too. Raises TrialFailed."""
        with self.file.open("rb") as packets:
            store(compressed(iter(partial(packets.read, CHUNK_BYTES), b""), compressor()), path)
        return path

    def close(self) -> None:
        """Free the memory; end a recording that still runs. Idempotent."""
        if self._packets < 0:
            return
        if self._report is None:
            end_at_once(self._process)
        os.close(self._packets)
        os.close(self._messages)
        self._packets = self._messages = -1

    def _wait_until_recording(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_recording():
            status = self._process.wait(0.002)
            if status is not None or time.monotonic() > deadline:
                raise LaunchFailed(self._refusal())

    def _refusal(self) -> str:
        return refusal(self._read_messages())

    def _is_recording(self) -> bool:
        """Return whether dumpcap wrote the header, which follows socket and filter."""
        return self._stored_bytes() > 0

    def _ended_by_itself(self) -> bool:
        try:
            return self._process.poll() is not None
        except ClusterUnavailable:
            return True

    def _settle(self, quiet_s: float) -> bool:
        """Wait until the file is complete or stops growing; False if the tool ended."""
        deadline = time.monotonic() + SETTLE_LIMIT_S
        while time.monotonic() < deadline:
            on_interface, now = self.look(), time.monotonic()
            if now - self._sent >= quiet_s and self._is_complete(on_interface):
                break
            if now - self._changed >= max(STILL_S, quiet_s):
                break
            self._use_wait()
            remaining_s = self._sent + quiet_s - time.monotonic()
            if self._process.wait(min(POLL_S, remaining_s) if remaining_s > 0 else POLL_S) is not None:
                return False
        return True

    def _use_wait(self) -> None:
        """Work on what is recorded while no packet comes."""

    def _has_reported(self, limit_s: float) -> bool:
        """Wait until the tool, which is ending, has reported its counts."""
        return self._process.wait(limit_s) is not None

    def _is_complete(self, on_interface: int | None) -> bool:
        """Return whether the file is known to hold every frame, which ends the wait."""
        return False

    def _on_interface(self) -> int | None:
        """Return the frames that the interface counted since the recording began."""
        if self._baseline is None:
            return None
        try:
            return frames_on(self._agent, self._interface) - self._baseline
        except (ClusterUnavailable, OSError):
            return None

    def _settling_bytes(self) -> int:
        """Return a size that grows as long as packets come in."""
        return self._stored_bytes()

    def _stored_bytes(self) -> int:
        return os.fstat(self._packets).st_size

    def _read_messages(self) -> str:
        return os.pread(self._messages, 1 << 24, 0).decode(errors="replace")

    def _parse_report(self, died: bool) -> CaptureReport:
        text = self._read_messages()
        totals = _TOTALS.search(text)
        if totals is None:
            return CaptureReport(0, 0, 0, died=died, limit_reached=False)
        received, dropped = int(totals[1]), int(totals[2])
        captured = int(match[1]) if (match := _CAPTURED.search(text)) else received
        limit_reached = died and self._stored_bytes() >= self._limit // 1000 * 1000
        return CaptureReport(captured, received, dropped, died and not limit_reached, limit_reached)


def compressor() -> zstandard.ZstdCompressionObj:
    """Return a stream whose threads compress while the next piece is made."""
    threads = min(len(os.sched_getaffinity(0)), MOST_THREADS)
    return zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True, threads=threads).compressobj()


def compressed(pieces: Iterable[Bytes], stream: zstandard.ZstdCompressionObj) -> Iterator[bytes]:
    """Compress all pieces, and end the stream."""
    yield from map(stream.compress, pieces)
    yield stream.flush()


def store(parts: Iterable[Bytes], path: Path) -> None:
    """Write the parts of a compressed recording. Raises TrialFailed."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as target:
            target.writelines(parts)
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise TrialFailed(f"The capture cannot be stored in {path.parent}: {error.strerror}.") from error


def dumpcap_argv(program: str, interface: str, capture_filter: str | None, snap_length: int, limit: int) -> list[str]:
    """Return the exact command; it writes pcapng to standard output."""
    return [
        *(program, "-i", interface, "-s", str(snap_length), "-B", str(KERNEL_BUFFER_MIB)),
        *("-a", f"filesize:{max(limit // 1000, 1)}", "-w", "-"),
        *(("-f", capture_filter) if capture_filter else ()),
    ]


def recorder() -> str:
    """Return the path of dumpcap. Raises CaptureUnavailable if it cannot run."""
    if (program := find_program("dumpcap")) is not None:
        return program
    if any(Path(directory, "dumpcap").exists() for directory in search_path().split(":")):
        raise CaptureUnavailable(NOT_PERMITTED)
    raise CaptureUnavailable("the program dumpcap is missing: install the package wireshark-common")


def refusal(messages: str) -> str:
    """Return dumpcap's reason for not recording, as a sentence."""
    if "permission" in messages.lower():
        return NOT_PERMITTED
    lines = [line.strip() for line in messages.splitlines() if line.strip() and not line.startswith("Capturing on")]
    return f"dumpcap: {lines[0].removeprefix('dumpcap: ')}" if lines else "dumpcap ended without a message"
