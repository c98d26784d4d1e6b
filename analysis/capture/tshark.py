"""tshark as a process: argument list, session, time limit and errors.

The name of a capture and a display filter are single arguments without a shell. Wireshark preferences, profiles and scripts of the
account are ignored, so that a capture gives the same result everywhere.
"""

from __future__ import annotations

import math
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Final

from analysis.errors import DecoderError, FilterError, UnreadableCapture
from analysis.numbers import amount
from analysis.packets import NO_TIME

LONGEST_FILTER: Final = 2000
MOST_NS: Final = 2**62 // 10**9 * 10**9
"""Limit of stamps, as in the native decoder (kernels.frames.framing)."""
MEMORY_BYTES: Final = 4 << 30
"""Address space of a tshark with a time limit: it stores state of each packet and connection of a capture that may be hostile."""
LARGEST_PACKET: Final = 64_000_000
"""Bytes that tshark may print of one packet; more is an error of the packet or of tshark."""
_MOST_COMPLAINTS: Final = 1 << 20
"""Bytes: of some errors it writes a line for each packet."""
_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
"""Others may be secrets, and a hostile capture may find an error of a dissector."""
_EMPTY_CAPTURE: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)
_CUT_SHORT: Final = "cut short in the middle of a packet"


class TsharkRun:
    """A running tshark: read ``stdout`` to its end, then check ``truncated``."""

    def __init__(self, process: subprocess.Popen[bytes], stdout: IO[bytes]) -> None:
        self.stdout = stdout
        self.truncated = False
        """The capture ends inside a record; all earlier ones were read."""
        self.expired = False
        self.enough = False
        """Set by the caller if it needs no more packets: tshark is killed at once."""
        self._process = process

    def packets(self) -> Iterator[bytes]:
        """Yield the XML of each packet (PDML or PSML). Raises DecoderError."""
        parts: list[bytes] = []
        size = 0
        while line := self.stdout.readline(LARGEST_PACKET):
            stripped = line.strip()
            if stripped.startswith(b"<packet"):
                parts, size = [], 0
            parts.append(line)
            size += len(line)
            if size >= LARGEST_PACKET:
                raise DecoderError("tshark's text of one packet is larger than 64 MB")
            if stripped == b"</packet>":
                yield b"".join(parts)

    def expire(self) -> None:
        self.expired = True
        self.stop()

    def stop(self) -> None:
        """Kill the session: tshark ignores TERM while its output is blocked."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def running(path: str | Path, arguments: Sequence[str], timeout_s: float | None) -> Iterator[TsharkRun]:
    """Run tshark on the capture ``path``; leaving the block early kills it.

    Raises UnreadableCapture for other files, DecoderError if tshark is missing, fails or takes longer than ``timeout_s``.
    """
    if not Path(path).is_file():
        raise UnreadableCapture(f"{path}: no such file")
    with tempfile.TemporaryFile() as errors:
        process = _start(["-r", str(Path(path).absolute()), *arguments], subprocess.DEVNULL, errors)
        if process.stdout is None:
            raise DecoderError("tshark has no output")
        if timeout_s is not None:
            with suppress(ProcessLookupError, PermissionError, ValueError):  # it ended, or has a lower limit
                resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (_MOST_COMPLAINTS, _MOST_COMPLAINTS))
        run = TsharkRun(process, process.stdout)
        clock = threading.Timer(timeout_s, run.expire) if timeout_s is not None else None
        if clock is not None:
            clock.daemon = True
            clock.start()
        complete = False
        try:
            yield run
            complete = not run.enough and run.stdout.read(1) == b""
        finally:
            if clock is not None:
                clock.cancel()
            if not complete:
                run.stop()
            run.stdout.close()
            process.wait()
        if run.expired and not run.enough:
            raise DecoderError(f"tshark took longer than {amount(timeout_s, 's')}")
        if complete and process.returncode != 0:
            errors.seek(0)
            run.truncated = _judge(path, process.returncode, errors.read().decode(errors="replace"))


def selection(
    frames: tuple[int, int] | None, seconds: tuple[float, float] | None, display_filter: str | None, limit: int
) -> list[str]:
    """Return tshark's arguments for the first ``limit`` packets that match.

    ``frames`` are numbered from 1, ``seconds`` count from the first packet, both inclusive. tshark may print more than ``limit``: the
    caller stops it. Raises ValueError for invalid numbers, FilterError.
    """
    terms, arguments = [], []
    if limit < 1:
        raise ValueError("limit is at least 1")
    if display_filter and display_filter.strip():
        _accepted(display_filter)  # separately: a filter that closes our parenthesis would pass in the whole expression
        terms.append(f"({display_filter})")
    if seconds is not None:
        begin_s, end_s = seconds
        if not -math.inf < begin_s <= end_s < math.inf:
            raise ValueError("seconds are two numbers, the first not above the last")
        terms.append(f"(frame.time_relative >= {_plain(begin_s)} && frame.time_relative <= {_plain(end_s)})")
    if frames is not None:
        first, last = frames
        if not 1 <= first <= last:
            raise ValueError("frames are two numbers, from 1 on, the first not above the last")
        if not terms:
            last = min(last, first + limit - 1)  # without other terms every frame matches
        terms.append(f"(frame.number >= {int(first)} && frame.number <= {int(last)})")
        arguments += ["-c", str(int(last))]
    return [*arguments, "-Y", " && ".join(terms)] if terms else [*arguments, "-c", str(limit)]


def _plain(seconds: float) -> str:
    """Format without an exponent, which tshark does not accept."""
    whole_ns = round(abs(seconds) * 1_000_000_000)
    return f"{'-' if seconds < 0 else ''}{whole_ns // 1_000_000_000}.{whole_ns % 1_000_000_000:09d}"


@lru_cache(maxsize=128)
def _accepted(display_filter: str) -> None:
    """Check a filter once, so that further pages of packets start one tshark."""
    check_filter(display_filter)


def check_filter(display_filter: str, timeout_s: float = 5.0) -> None:
    """Raise FilterError with tshark's message for an invalid display filter."""
    if len(display_filter) > LONGEST_FILTER:
        raise FilterError(f"a display filter has at most {LONGEST_FILTER} characters")
    if not display_filter.isprintable():
        raise FilterError("a display filter has only printable characters")
    with tempfile.TemporaryFile() as errors:
        process = _start(["-r", "-", "-Y", display_filter], subprocess.PIPE, errors)
        try:
            process.communicate(_EMPTY_CAPTURE, timeout_s)
        except subprocess.TimeoutExpired as error:
            raise FilterError(f"tshark did not accept the filter within {amount(timeout_s, 's')}") from error
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            errors.seek(0)
            raise FilterError(_first_words(errors.read().decode(errors="replace")))


def _start(arguments: Sequence[str], stdin: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    nowhere = "/nonexistent"  # reserved by Debian policy
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    environment |= {"LC_ALL": "C.UTF-8", "WIRESHARK_CONFIG_DIR": nowhere, "XDG_CONFIG_HOME": nowhere}
    try:
        return subprocess.Popen(
            ["tshark", "-n", *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise DecoderError(f"tshark cannot be started: {error.strerror}") from error
    except ValueError as error:
        raise DecoderError(f"tshark cannot be started: {error}") from error


def _judge(path: str | Path, code: int, errors: str) -> bool:
    """Return True if the capture is only truncated; raise other errors of tshark."""
    if _CUT_SHORT in errors:
        return True
    text = _first_words(errors)
    if re.search(r"isn't a capture file|is an? empty|file type|magic", errors, re.IGNORECASE):
        raise UnreadableCapture(f"{path}: {text}")
    raise DecoderError(f"{path}: tshark failed with status {code}: {text}")


def _first_words(errors: str) -> str:
    """Return tshark's first relevant line, without its name."""
    for line in errors.splitlines():
        text = line.removeprefix("tshark: ").strip()
        if text and not text.startswith("Running as user"):
            return text
    return "no reason given"


def nanoseconds(epoch: str) -> int:
    """Parse seconds with a fraction, as tshark prints them; NO_TIME for no text."""
    if not epoch:
        return int(NO_TIME)
    seconds, _, fraction = epoch.partition(".")
    sign = -1 if seconds.startswith("-") else 1
    # more than nine digits are nanoseconds of more than a second
    ns = int(seconds) * 1_000_000_000 + sign * int(fraction.ljust(9, "0") or "0")
    return min(max(ns, -MOST_NS), MOST_NS)
