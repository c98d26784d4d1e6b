"""Record packets with dumpcap into anonymous memory while a job runs, and keep dumpcap's own report of what it lost.

The growing file is a memfd: no disk is written while the trial is measured, anyone with the `Capture` may read along,
and a worker that dies leaves no file behind. dumpcap and not tcpdump: tcpdump wants to drop privileges, which a user
namespace does not grant.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

import zstandard

from workers.agent.process_table import available_memory_bytes
from workers.capture.options import CaptureOptions
from workers.capture.start import end_at_once, frames_on, started
from workers.errors import CaptureUnavailable, ClusterUnavailable, LaunchFailed, TrialFailed
from workers.hosts.processes import Keeper, LocalKeeper, Process
from workers.hosts.programs import find_program, search_path

KERNEL_BUFFER_MIB = 64  # seconds of headers, should the writer not get a core
START_LIMIT_S = 10.0
STILL_S = 0.3  # the kernel hands over a partly filled block of its ring after 250 ms
QUIET_S = 0.05  # the ranks are gone by then: only the kernel's last acknowledgements are on their way
COUNTED_BYTES = 8 << 20  # 60 000 packets, counted in 30 ms
POLL_S = 0.02
END_LIMIT_S = 20.0
COMPRESSION_LEVEL = 1
CHUNK_BYTES = 1 << 20
NOT_PERMITTED = (
    "this user may not record packets: run `dpkg-reconfigure wireshark-common` and add the worker's user to the group "
    "wireshark"
)

_CAPTURED = re.compile(r"Packets captured: (\d+)")
_TOTALS = re.compile(r"Packets received/dropped on interface '[^']*': (\d+)/(\d+)")


@dataclass(frozen=True)
class CaptureReport:
    """What the capture tool said at its end.

    `on_interface` is the interface's own count of frames in the same time, None where a filter makes it incomparable;
    `tail_lost`: it counted frames that were neither captured nor dropped. `died`: the tool ended before it was told to.
    """

    interface: str
    captured: int
    received: int
    dropped: int
    on_interface: int | None
    tail_lost: bool
    died: bool
    limit_reached: bool
    stderr: str


@dataclass(frozen=True)
class StoredCapture:
    """The compressed file: `bytes` on disk with its hash, `stored_bytes` before compression."""

    path: Path
    bytes: int
    sha256: str
    stored_bytes: int


class Capture:
    """A running or ended recording. A context manager: leaving it frees the memory."""

    grows_here: ClassVar[bool] = True
    """Whether `file` grows while it records."""

    def __init__(
        self, keeper: Keeper, process: Process, interface: str, files: tuple[int, int], baseline: int | None, limit: int
    ) -> None:
        self._keeper = keeper
        self._process = process
        self._interface = interface
        self._packets, self._messages = files
        self._baseline = baseline
        self._limit = limit
        self._blocks = PacketBlocks(files[0])
        self._report: CaptureReport | None = None

    @classmethod
    def start(cls, keeper: LocalKeeper, options: CaptureOptions) -> Capture:
        """Record from an interface as the keeper sees it; returns once packets are being recorded.

        Without a limit it ends by itself at a quarter of the free memory. Raises CaptureUnavailable.
        """
        limit = options.max_bytes or available_memory_bytes() // 4
        argv = dumpcap_argv(recorder(), options, limit)
        counted = None if options.capture_filter else options.interface
        with started(keeper, argv, counted=counted) as start:
            capture = cls(keeper, start.process, options.interface, start.files, start.baseline, limit)
            capture._wait_until_recording()
        return capture

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def file(self) -> Path:
        """The growing pcapng under a path that other processes of this user have too; opening it gives a position of its own."""
        return Path(f"/proc/{os.getpid()}/fd/{self._packets}")

    def refresh(self) -> None:
        """Bring the file up to date for whoever reads along, where the recording tool does not write it itself."""

    def open(self) -> BinaryIO:
        """A reader of the growing pcapng with a position of its own, at the start."""
        return self.file.open("rb")

    def stop(self, settle_s: float = 2.0, quiet_s: float = QUIET_S) -> CaptureReport:
        """Wait until nothing is on its way any more, at most `settle_s`; end the recording. Idempotent.

        `quiet_s`: how long no frame must come before that is believed; longer than packets take on a slow path.
        """
        if self._report is None:
            died = self._ended_by_itself() or not self._settle(settle_s, quiet_s)
            seen = self._on_interface()
            with contextlib.suppress(ClusterUnavailable):
                self._process.send_signal(signal.SIGINT)
                if self._process.wait(END_LIMIT_S) is None:
                    self._process.terminate(0.0)
                    died = True
            self._report = self._parse_report(died, seen)
        return self._report

    def save(self, path: Path) -> StoredCapture:
        """Write the ended recording to `path`, zstd-compressed, complete or not at all. Raises TrialFailed."""
        with self.open() as packets:
            return store(packets, path, self._stored_bytes())

    def close(self) -> None:
        """Free the memory; end the recording at once if it still runs. Idempotent."""
        if self._packets < 0:
            return
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
        """dumpcap writes the section header only after the socket and its filter stand."""
        return self._stored_bytes() > 0

    def _ended_by_itself(self) -> bool:
        try:
            return self._process.poll() is not None
        except ClusterUnavailable:
            return True

    def _settle(self, limit_s: float, quiet_s: float) -> bool:
        """Wait until every frame of the interface is in the file, or neither grows; False if the tool ended meanwhile."""
        start = changed = sent = time.monotonic()
        before: tuple[int | None, int] | None = None
        while (now := time.monotonic()) - start < limit_s:
            counters = (self._on_interface(), self._settling_bytes())
            if before is None or counters[0] != before[0]:
                sent = now
            if counters != before:
                before, changed = counters, now
            if now - sent >= quiet_s and self._is_complete(*counters):
                break
            if now - changed >= max(STILL_S, quiet_s):
                break
            if self._process.wait(POLL_S) is not None:
                return False
        return True

    def _is_complete(self, on_interface: int | None, stored_bytes: int) -> bool:
        """Whether the file holds every frame. Spares short trials most of the wait; long captures take too long to count."""
        countable = on_interface is not None and stored_bytes <= COUNTED_BYTES
        return countable and self._blocks.count() >= (on_interface or 0)

    def _on_interface(self) -> int | None:
        """Frames the interface counted since the recording began."""
        if self._baseline is None:
            return None
        try:
            return frames_on(self._keeper, self._interface) - self._baseline
        except (ClusterUnavailable, OSError):
            return None

    def _settling_bytes(self) -> int:
        """What grows as long as packets come in."""
        return self._stored_bytes()

    def _stored_bytes(self) -> int:
        return os.fstat(self._packets).st_size

    def _read_messages(self) -> str:
        return os.pread(self._messages, 1 << 24, 0).decode(errors="replace")

    def _parse_report(self, died: bool, on_interface: int | None) -> CaptureReport:
        text = self._read_messages()
        totals = _TOTALS.search(text)
        received, dropped = (int(totals[1]), int(totals[2])) if totals else (self._blocks.count(), 0)
        captured = int(match[1]) if (match := _CAPTURED.search(text)) else received
        limit_reached = died and totals is not None and self._stored_bytes() >= self._limit // 1000 * 1000
        return CaptureReport(
            interface=self._interface,
            captured=captured,
            received=received,
            dropped=dropped,
            on_interface=on_interface,
            tail_lost=on_interface is not None and captured + dropped < on_interface,
            died=died and not limit_reached,
            limit_reached=limit_reached,
            stderr=text.replace("\r", "").strip(),
        )


class PacketBlocks:
    """Counts the packets of a growing pcapng (little-endian, as dumpcap writes here); each block is looked at once."""

    _HEADER = struct.Struct("<II")  # block type, total length: pcapng, section 3.1
    _ENHANCED_PACKET = 6

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0
        self._packets = 0

    def count(self) -> int:
        """Complete blocks only: the last one may still be being written."""
        while len(data := os.pread(self._descriptor, CHUNK_BYTES, self._position)) >= self._HEADER.size:
            offset = 0
            while offset + self._HEADER.size <= len(data):
                kind, length = self._HEADER.unpack_from(data, offset)
                if length < self._HEADER.size or offset + length > len(data):
                    break
                self._packets += kind == self._ENHANCED_PACKET
                offset += length
            if offset == 0:
                break
            self._position += offset
        return self._packets


def store(packets: BinaryIO, path: Path, size: int) -> StoredCapture:
    """Write a recording of ``size`` bytes to `path`, zstd-compressed, complete or not at all. Raises TrialFailed."""
    part = path.with_name(path.name + ".part")
    digest = hashlib.sha256()
    written = 0
    try:
        with part.open("wb") as target:
            compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, write_checksum=True)
            for chunk in compressor.read_to_iter(packets, size=size, read_size=CHUNK_BYTES):
                digest.update(chunk)
                target.write(chunk)
                written += len(chunk)
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise TrialFailed(f"The capture cannot be stored in {path.parent}: {error.strerror}.") from error
    return StoredCapture(path, written, digest.hexdigest(), size)


def dumpcap_argv(program: str, options: CaptureOptions, limit: int) -> list[str]:
    """The exact command; pcapng to standard output."""
    return [
        *(program, "-i", options.interface, "-s", str(options.snap_length), "-B", str(KERNEL_BUFFER_MIB)),
        *("-a", f"filesize:{max(limit // 1000, 1)}", "-w", "-"),
        *(("-f", options.capture_filter) if options.capture_filter else ()),
    ]


def recorder() -> str:
    """The path of dumpcap. Raises CaptureUnavailable: it is missing, or this user may not execute it."""
    if (program := find_program("dumpcap")) is not None:
        return program
    if any(Path(directory, "dumpcap").exists() for directory in search_path().split(":")):
        raise CaptureUnavailable(NOT_PERMITTED)
    raise CaptureUnavailable("the program dumpcap is missing: install the package wireshark-common")


def refusal(messages: str) -> str:
    """Why dumpcap would not record, in a sentence for the reader."""
    if "permission" in messages.lower():
        return NOT_PERMITTED
    lines = [line.strip() for line in messages.splitlines() if line.strip() and not line.startswith("Capturing on")]
    return f"dumpcap: {lines[0].removeprefix('dumpcap: ')}" if lines else "dumpcap ended without a message"
