"""Interface of counter sources, and the meter of one quantity.

Standard library and Python 3.9 only: this travels with the agent.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

MEASURED, ESTIMATED = "measured", "estimated"
NO_VALUE = (1 << 64) - 1
"""Drivers report all bits set for a value that the device does not have."""
LONGEST_GAP_S = 60.0
"""Between two reads of a counter that wraps; later it may have wrapped more than once."""
LONGEST_GAP_32_BIT_S = 3.0
JITTER_S = 0.1
"""Between the time of a read and that at which a device last changed its counter, at most."""
PEAK_GAPS_S = (0.5, 3.0)
"""Between two reads whose rate is one of a second: neither noise nor a mean of the trial."""
COMMAND_LIMIT_S = 5.0


class Absent(Exception):
    """Reason why a source has no values, with a command that would change it."""

    def __init__(self, reason: str, fix: str = "", guide: str = "") -> None:
        super().__init__(reason)
        self.reason, self.fix, self.guide = reason, fix, guide


class AbsentNow(Absent):
    """Reason that may have passed when the next trial starts, which probes again."""


@dataclass(frozen=True)
class Quantity:
    """One value of a source.

    ``kind``: a counter grows, a gauge is a present value, power is a gauge in W whose integral is the value in J.
    """

    name: str
    total: str
    """The quantity of the host that it is a part of, such as "package_j"."""
    unit: str
    kind: str = "counter"
    scale: float = 1.0
    wraps_at: Optional[int] = None  # noqa: UP045 - evaluated by Python 3.9
    sticks_at: Optional[int] = None  # noqa: UP045
    may_have_32_bits: bool = False
    device: str = ""
    limit: float = 0.0
    """Largest possible rate per second, such as a port's; 0: unknown."""
    most_per_s: float = 0.0
    """Raw steps per second above which a counter that wraps was reset instead; 0: unknown."""
    is_estimated: bool = False
    """True if the device does not state exactly what it counts, and for power, whose course between reads is unknown."""


class Meter:
    """Value of one quantity since its first read."""

    def __init__(self, quantity: Quantity) -> None:
        self.quantity = quantity
        self.value = 0.0
        self.peak = 0.0
        """Largest rate of a counter, largest value of a gauge."""
        self.reason = ""
        self.wraps = 0
        self.reads = 0
        self._last: float | None = None
        self._began_s = self._at_s = self._integral = 0.0

    @property
    def is_sampled(self) -> bool:
        """Return whether it was read while the program ran, as a gauge must be."""
        return self.quantity.kind == "counter" or self.reads > 2

    @property
    def began_s(self) -> float:
        """Monotonic time of the first read."""
        return self._began_s

    @property
    def seconds(self) -> float:
        """Time between the first and the last read."""
        return self._at_s - self._began_s

    def add(self, raw: float | None, at_s: float) -> None:
        """Add a read at a monotonic time; after a failure the value stays absent."""
        if self.reason:
            return
        if self._last is None:
            self._began_s = at_s
        self.reads += 1
        if raw is None:
            self.reason = "it cannot be read" if self._last is None else "it vanished or became unreadable in the trial"
        elif not -math.inf < raw < math.inf:
            self.reason = "it is no number"
        elif raw >= NO_VALUE:  # a float of it is 2^64
            self.reason = "the device reports no value (2^64 - 1)"
        elif raw == self.quantity.sticks_at:
            self.reason = "the counter is stuck at its maximum until it is reset"
        elif self.quantity.kind == "counter":
            self._count(raw, at_s)
        else:
            self._gauge(raw * self.quantity.scale, at_s)
        self._last, self._at_s = raw, at_s

    def _count(self, raw: float, at_s: float) -> None:
        if self._last is None:
            return
        step, gap_s = raw - self._last, at_s - self._at_s
        wraps_at, longest_s = self.quantity.wraps_at, LONGEST_GAP_S
        if step < 0 and wraps_at is None and self.quantity.may_have_32_bits and self._last < 1 << 32:
            wraps_at, longest_s = 1 << 32, LONGEST_GAP_32_BIT_S
        if wraps_at is not None and gap_s > longest_s:
            self.reason = "it was read too rarely and may have wrapped more than once"
            return
        if step < 0:
            step += wraps_at or 0
            self.wraps += 1
            if wraps_at is None or not 0 <= step <= self._most(wraps_at, gap_s):
                self.reason = "the counter was reset while the trial ran"
                return
        self.value += step * self.quantity.scale
        if PEAK_GAPS_S[0] < gap_s < PEAK_GAPS_S[1]:
            self.peak = max(self.peak, step * self.quantity.scale / gap_s)

    def _most(self, wraps_at: int, gap_s: float) -> float:
        """Return the largest step across a wrap; a reset looks like a larger one."""
        # Half a range in a second is no rate of a counter that wraps.
        most = self.quantity.most_per_s * (gap_s + JITTER_S)
        return min(wraps_at / 2, most) if most else wraps_at / 2

    def _gauge(self, value: float, at_s: float) -> None:
        self.peak = max(self.peak, value) if self._last is not None else value
        if self._last is not None:
            self._integral += (at_s - self._at_s) * (value + self._last * self.quantity.scale) / 2
        passed_s = at_s - self._began_s
        if self.quantity.kind == "power":
            self.value = self._integral
        else:
            self.value = self._integral / passed_s if passed_s > 0 else value

    @property
    def present(self) -> float:
        """The last value of a gauge, the value so far of a counter."""
        if self.quantity.kind == "gauge" and self._last is not None:
            return self._last * self.quantity.scale
        return self.value


class Source:
    """Devices of one kind. A subclass finds its quantities and reads them."""

    key = ""
    title = ""
    trust = MEASURED
    is_slow = False
    """True if it is read at begin and end alone."""
    period_s = 1.0
    """Between two reads of a source that is not slow. Above a second, a read may take its time."""
    is_network = False
    """True if it counts traffic, which hosts of a test-bed do not share with their machine."""

    def __init__(self, root: str = "/") -> None:
        self.root = Path(root)
        self.quantities: dict[str, Quantity] = {}
        self.missing: dict[str, str] = {}
        """Reasons by total that some device lacks."""
        self.details = ""
        self.meters: dict[str, Meter] = {}

    def probe(self) -> None:
        """Find the quantities. Raises Absent."""
        raise NotImplementedError

    def read(self) -> dict[str, float]:
        """Return the present raw values by quantity name; vanished ones are left out."""
        raise NotImplementedError

    def begin(self) -> None:
        """Read the first values."""
        self.meters = {name: Meter(quantity) for name, quantity in self.quantities.items()}
        self.sample()

    def sample(self) -> None:
        """Read once more."""
        before_s = time.monotonic()
        raw = self.read()
        at_s = (before_s + time.monotonic()) / 2
        for name, meter in self.meters.items():
            meter.add(raw.get(name), at_s)

    def end(self) -> list[dict[str, Any]]:
        """Read the last values; return value or reason of absence of every quantity."""
        self.sample()
        return [self._row(meter) for meter in self.meters.values()]

    def _row(self, meter: Meter) -> dict[str, Any]:
        quantity = meter.quantity
        row: dict[str, Any] = {
            "name": quantity.name,
            "total": quantity.total,
            "unit": quantity.unit,
            "kind": quantity.kind,
        }
        row.update({"device": quantity.device, "seconds": meter.seconds})
        if meter.reason or not meter.is_sampled:
            return {**row, "absent": meter.reason or "it was read before and after the program alone"}
        values = {"value": meter.value, "peak": meter.peak, "limit": quantity.limit, "wraps": meter.wraps}
        is_estimated = quantity.is_estimated or quantity.kind == "power"
        return {**row, **values, "trust": ESTIMATED if is_estimated else self.trust}

    def add(self, quantity: Quantity) -> None:
        """Add a quantity that was found."""
        self.quantities[quantity.name] = quantity

    # Files and commands below the root

    def glob(self, pattern: str) -> list[Path]:
        """Return matching paths below the root in the order of their numbers."""
        return sorted(self.root.glob(pattern), key=lambda path: [(len(part), part) for part in path.parts])

    def command(self, name: str) -> str:
        """Return the path of a program. Raises Absent."""
        folders = [str(self.root / part) for part in ("usr/local/bin", "usr/local/sbin", "usr/bin", "usr/sbin")]
        folders += os.environ.get("PATH", "").split(":") if str(self.root) == "/" else []
        path = shutil.which(name, path=":".join(folders))
        if path is None:
            raise Absent(f"{name} is not installed")
        return path


def text_of(path: Path) -> str:
    """Return a small file without its last newline. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16).decode(errors="replace").strip()
    finally:
        os.close(descriptor)


def whole_text(path: Path) -> str:
    """Return a file of at most 16 MiB; empty if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(1 << 24).decode(errors="replace")
    except OSError:
        return ""


def text_or_nothing(path: Path) -> str:
    """Return a small file; empty if it cannot be read."""
    try:
        return text_of(path)
    except OSError:
        return ""


def number_of(path: Path) -> int | None:
    """Return the number that a file begins with; None if it has none (EINVAL, "N/A")."""
    try:
        return int(text_of(path).split()[0])
    except (OSError, ValueError, IndexError):
        return None


def numbers_of(files: Iterable[tuple[str, Path]]) -> dict[str, float]:
    """Return the numbers of files by name, without those that have none."""
    return {name: number for name, path in files if (number := number_of(path)) is not None}


def output(argv: list[str], limit_s: float = COMMAND_LIMIT_S) -> str:
    """Return standard output of a command. Raises AbsentNow."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise AbsentNow(f"{Path(argv[0]).name} did not answer within {limit_s:.0f} s") from None
    except OSError as error:
        raise AbsentNow(f"{Path(argv[0]).name} cannot be started: {error.strerror}") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise AbsentNow(f"{Path(argv[0]).name} failed: {words[-1][:200] if words else f'status {done.returncode}'}")
    return done.stdout
