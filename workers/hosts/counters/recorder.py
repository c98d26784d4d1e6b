"""Process of the agent that reads all sources, so that none delays a trial.

The agent forks it before a trial (`Recorder`) and reads its lines. Every source has its own thread; one that hangs or fails
costs its own values only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import threading
import time
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from workers.hosts.counters.source import Absent, AbsentNow, Meter, Source
from workers.hosts.counters.sources import SOURCES  # before the fork, which closes the archive of a remote agent

SLOW_READ_S = 0.005
"""Sources that are read every second and whose read takes longer are read at begin and end alone."""
LATE_SHARE = 0.01
"""Of the program's time that the values of a source may miss at its begin."""
LOOKS = 3
BEGIN_LIMIT_S = 0.3
"""For which the start of a program waits for the first values."""
END_LIMIT_S = 2.5
PIPE_BYTES = 1 << 20
LATE = f"it did not answer within {END_LIMIT_S} s of the program's end"
MissingSources = MutableMapping[str, MutableMapping[str, "dict[str, Any]"]]
"""Reports by root and source that a probe found to be absent: not probed again as long as the agent lives."""


class SourceThread(threading.Thread):
    """One source of one host, from probe to end."""

    def __init__(self, host: str, source: Source, lines: Lines) -> None:
        super().__init__(daemon=True)
        self.host, self.source, self.lines = host, source, lines
        self.has_begun, self.shall_end, self.is_over = threading.Event(), threading.Event(), False
        self.is_probed = False
        self.program_began_s: float | None = None
        """Monotonic time at which the program was let start without the first values of this source."""

    def run(self) -> None:
        try:
            self._record()
        except Absent as absent:
            is_missing = not (self.is_probed or isinstance(absent, AbsentNow))
            reasons = {"reason": absent.reason, "fix": absent.fix, "guide": absent.guide}
            self._tell(state="absent", is_missing=is_missing, **reasons)
        except Exception as error:  # a device of an unknown form costs its own values only
            self._tell(state="absent", reason=f"it failed: {error!r}"[:300])
        finally:
            self.is_over = True
            self.has_begun.set()

    def _record(self) -> None:
        source = self.source
        source.probe()
        self.is_probed = True
        source.begin()
        read_s = read_time_s(source)
        is_slow = source.is_slow or (source.period_s <= 1 and read_s > SLOW_READ_S)
        facts = {"details": source.details, "missing": source.missing, "is_slow": is_slow, "read_s": read_s}
        self._tell(state="ready", **facts)
        self.has_begun.set()
        while not self.shall_end.wait(None if is_slow else source.period_s):
            source.sample()
            self._tell(at_s=time.monotonic(), present=present(source.meters.values()))
        rows = source.end()
        began_s = max((meter.began_s for meter in source.meters.values()), default=0.0)
        late_s = 0.0 if self.program_began_s is None else began_s - self.program_began_s
        if late_s > LATE_SHARE * (time.monotonic() - began_s):
            rows = [without_value(row, f"its first read came {late_s:.1f} s after the program's start") for row in rows]
        self._tell(values=rows)

    def _tell(self, **fields: Any) -> None:
        self.lines.write({"host": self.host, "source": self.source.key, "title": self.source.title, **fields})


def without_value(row: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return a row of a value that is absent."""
    return {**{name: row[name] for name in ("name", "total", "unit", "kind", "device", "seconds")}, "absent": reason}


def present(meters: Iterable[Meter]) -> dict[str, float]:
    """Return sums of counters, means of gauges and the highest temperature."""
    values: dict[str, list[float]] = {}
    kinds: dict[str, str] = {}
    for meter in meters:
        if not meter.reason:
            values.setdefault(meter.quantity.total, []).append(meter.present)
            kinds[meter.quantity.total] = "max" if meter.quantity.unit == "°C" else meter.quantity.kind
    means = {total: sum(of_total) / len(of_total) for total, of_total in values.items() if kinds[total] == "gauge"}
    highest = {total: max(of_total) for total, of_total in values.items() if kinds[total] == "max"}
    return {total: sum(of_total) for total, of_total in values.items()} | means | highest


def read_time_s(source: Source) -> float:
    """Return how long the fastest of a few reads takes."""
    fastest_s = float("inf")
    for _ in range(1 if source.is_slow else LOOKS):
        before_s = time.perf_counter()
        source.read()
        fastest_s = min(fastest_s, time.perf_counter() - before_s)
        if fastest_s <= SLOW_READ_S / 10:
            break
    return fastest_s


class Lines:
    """Lines of JSON into a pipe; without room a line of samples is dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock = descriptor, threading.Lock()

    def write(self, fields: Mapping[str, Any]) -> None:
        data = memoryview(json.dumps(fields).encode() + b"\n")
        with self._lock:
            if "present" in fields and not select.select([], [self._descriptor], [], 0)[1]:
                return
            while data:
                data = data[os.write(self._descriptor, data) :]


def record(sources: Mapping[str, Iterable[Source]], lines: Lines, control: int) -> None:
    """Read the sources of every host until ``control`` says so or is closed."""
    threads = [SourceThread(host, source, lines) for host, of_host in sources.items() for source in of_host]
    for thread in threads:
        thread.start()
    deadline_s = time.monotonic() + BEGIN_LIMIT_S
    for thread in threads:
        if not thread.has_begun.wait(max(0.0, deadline_s - time.monotonic())):
            thread.program_began_s = time.monotonic()
    began_cpu_s = cpu_s()
    lines.write({"begun": True})
    if not os.read(control, 1):
        return  # the agent is gone
    sampling_s = cpu_s() - began_cpu_s
    for thread in threads:
        thread.shall_end.set()
    deadline_s = time.monotonic() + END_LIMIT_S
    for thread in threads:
        thread.join(max(0.0, deadline_s - time.monotonic()))
        if not thread.is_over:
            lines.write({"host": thread.host, "source": thread.source.key, "title": thread.source.title, "late": LATE})
    lines.write({"done": True, "sampling_s": sampling_s})


def cpu_s() -> float:
    """Return the CPU time of this process and of the programs that it ran."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(of.ru_utime + of.ru_stime for of in used)


class Recorder:
    """Agent's side: forks the process and keeps what it reported."""

    def __init__(self, roots: Mapping[str, str], *, networks: bool, missing: MissingSources | None = None) -> None:
        """Fork the process, unless ``missing`` shows that no host has any source."""
        self.missing: MissingSources = {} if missing is None else missing
        self.pid = 0
        self.output = self._control = -1
        self.latest: dict[str, dict[str, list[float]]] = {host: {} for host in roots}
        """By host and total: the time of the last read and its value."""
        self.sources: dict[str, dict[str, dict[str, Any]]] = {}
        kinds = [source for source in SOURCES if networks or not source.is_network]
        present = dict[str, list[Source]]()
        for host, root in roots.items():
            lacking = self.missing.setdefault(root, {})
            self.sources[host] = {source.key: {**lacking[source.key]} for source in kinds if source.key in lacking}
            present[host] = [source(root) for source in kinds if source.key not in lacking]
        self.sampling_s = 0.0
        """CPU time of reading between begin and end."""
        self._roots = roots
        self._source_of: dict[tuple[str, str], str] = {}
        self.has_begun = self.is_done = False
        self._rest = b""
        if not any(present.values()):
            self.has_begun = self.is_done = True
            return
        self.output, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(theirs, True)
        with contextlib.suppress(OSError):
            fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        control, self._control = os.pipe2(os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            _become(present, theirs, control)
        os.close(theirs)
        os.close(control)

    def await_begin(self) -> None:
        """Wait for the first values of the fast sources, which take milliseconds."""
        deadline_s = time.monotonic() + 2 * BEGIN_LIMIT_S
        while not self.has_begun and (left_s := deadline_s - time.monotonic()) > 0:
            if select.select([self.output], [], [], left_s)[0] and not self.drain():
                break

    def drain(self) -> bool:
        """Take what was reported; False after the process's end."""
        while True:
            try:
                data = os.read(self.output, PIPE_BYTES)
            except BlockingIOError:
                return True
            if not data:
                self.is_done = True
                return False
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))

    def _take(self, fields: dict[str, Any]) -> None:
        if "host" not in fields:
            self.has_begun, self.is_done = True, self.is_done or "done" in fields
            self.sampling_s = fields.get("sampling_s", 0.0)
            return
        host = fields.pop("host")
        if "present" in fields:
            source = fields["source"]
            for total, value in fields["present"].items():
                if self._source_of.setdefault((host, total), source) == source:
                    self.latest[host][total] = [fields["at_s"], value]
            return
        source = fields.pop("source")
        if fields.pop("is_missing", False):
            self.missing[self._roots[host]][source] = fields
        said = self.sources[host].setdefault(source, {"state": "late"})
        if "late" in fields:
            fields = {"title": fields["title"], "state": "absent", "reason": fields["late"]}
        said.update(fields)

    def end(self) -> None:
        """Ask for the last values."""
        with contextlib.suppress(OSError):
            os.write(self._control, b"e")

    def close(self) -> None:
        """Kill the process, with commands that it waits for."""
        if not self.pid:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        for descriptor in (self.output, self._control):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _become(sources: Mapping[str, Iterable[Source]], output: int, control: int) -> None:
    """Record in the forked child; never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        first, last = sorted((output, control))
        os.closerange(3, first)
        os.closerange(first + 1, last)
        os.closerange(last + 1, os.sysconf("SC_OPEN_MAX"))
        record(sources, Lines(output), control)
    finally:
        os._exit(0)
