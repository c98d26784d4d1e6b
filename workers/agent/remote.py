"""Agent on another machine: `start()` serves over the pipes of ssh or srun.

It arrives as a zip archive over the same connection (`workers.hosts.remote_agent`), so that a host needs only Python 3.9. All it
writes is in one scratch directory, which it removes at its end. When the connection ends, or the worker is silent for too long,
it ends everything that runs here.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import platform
import shutil
import signal
import socket
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.common import processors, trees
from workers.agent import machine, mpi_files, process_table, rpc, spawn, supervisor
from workers.agent.counters import Counters, frames
from workers.agent.offloads import Offloads
from workers.agent.ranks import LOOKS

GREETING = b"\0rankwire agent\0\n"  # output of login scripts before it is skipped
SILENCE_WITH_JOB_S = 30.0  # the worker samples once a second while a job runs
SILENCE_S = 900.0
SWEEP_LIMIT_S = 3.0
MOST_LOOKED_AT = 100_000
PAGE_BYTES = 4 << 20
"""Of the JSON of names in one answer."""


class RemoteSupervisor(supervisor.Supervisor):
    """Programs, files and counters of one host of a real cluster."""

    nothing = b""

    def __init__(self, requests: rpc.Stream) -> None:
        super().__init__(requests)
        self.scratch: Path | None = None
        self.counters = Counters(belongs=self._belongs)
        self.looks: dict[tuple[int, int], tuple[int, bool]] = {}
        self.interface = "lo"
        self.memories: dict[str, int] = {}
        self.offloads: Offloads | None = None
        self.answers.update(
            {
                "hello": self.hello,
                "find": self.find,
                "write": self.write,
                "read": self.read,
                "files": self.files,
                "nested": self.nested,
                "clear": self.clear,
                "sweep": self.sweep,
                "machine": self.machine,
                "processors": self.processors,
                "mpi": self.mpi,
                "watch": self.watch,
                "clock": self.clock,
                "offloads": self.switch_offloads,
            }
        )

    def silence_limit_s(self) -> float | None:
        return SILENCE_WITH_JOB_S if any(child.job for child in self.children.values()) else SILENCE_S

    def hello(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Make the scratch directory, and return facts of this host.

        Several hosts may share the directory. `agent-HOST.pid` shows the batch job on this host that the agent lives.
        """
        self.scratch = Path(message["scratch"])
        self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.scratch / f"agent-{socket.gethostname()}.pid").write_text(f"{os.getpid()}\n")
        facts = {"host": socket.gethostname(), "root": os.geteuid() == 0, "variables": dict(os.environ)}
        return {**facts, "python": platform.python_version()}, b""

    def clock(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the time of this host."""
        return {"time_s": time.time()}, b""

    def watch(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Choose the interface that `sample` counts."""
        self.interface = message["interface"]
        if self.interface not in frames():
            raise supervisor.Refusal(f"there is no network interface {self.interface}")
        return {}, b""

    def switch_offloads(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Switch offloads off until the agent ends; return the names, or the `refusal`."""
        environment = {"PATH": message["path"], "LC_ALL": "C"}
        self.offloads = Offloads(message["command"], message["interface"], environment)
        return {"refusal": self.offloads.switch_off(), "off": self.offloads.off}, b""

    def find(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return a program's path, and whether a file without execute right exists."""
        program, path = message["program"], message["path"]
        name = str(Path(message["directory"], program)) if "/" in program else program
        executable = shutil.which(name, path=path)
        there = executable or any(Path(part, program).exists() for part in path.split(":"))
        return {"found": executable, "there": bool(there)}, b""

    def write(self, message: rpc.Message, attachment: bytes) -> supervisor.Answer:
        path = Path(message["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(attachment)
        path.chmod(message["mode"])
        return {}, b""

    def read(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return a part of a file or of a memory, and the size of the whole."""
        if message["path"] in self.memories:
            descriptor, ours = self.memories[message["path"]], False
        else:
            # A job may have replaced its output by a pipe, which must not block the agent.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor, ours = os.open(message["path"], flags), True
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "Not a plain file")
            return {"size": os.fstat(descriptor).st_size}, os.pread(descriptor, message["limit"], message["offset"])
        finally:
            if ours:
                os.close(descriptor)

    def files(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return a page of the names of plain files in a directory; links are left out."""
        try:
            with os.scandir(message["path"]) as entries:
                plain = (entry.name for entry in entries if entry.is_file(follow_symlinks=False))
                return page(sorted(itertools.islice(plain, message["most"])), message["skip"]), b""
        except FileNotFoundError:
            return page([], 0), b""  # the program removed its own directory

    def nested(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return a page of the plain files below a directory; links are not followed."""
        entries = trees.walk(Path(message["path"]), levels=message["depth"])
        nested = (entry for entry in entries if entry.above and entry.is_file)
        names = ["/".join((*entry.above, entry.name)) for entry in itertools.islice(nested, message["most"])]
        return page(sorted(names), message["skip"]), b""

    def clear(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Make a directory empty. Other hosts may do the same to the same one."""
        path = Path(message["path"])
        trees.remove(path)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {}, b""

    def mpi(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the files of the MPI library that a program loads."""
        return {"loaded": mpi_files.loaded_by(message["program"], message["variables"], message["directory"])}, b""

    def machine(self, message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the facts of this machine and of a program."""
        return {"facts": machine.facts(message["program"], message["mpirun"], message["variables"])}, b""

    def processors(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return the cores of this host, and the CPUs that the agent may use."""
        return processors.describe(), b""

    def spawn(self, message: rpc.Message, attachment: Any) -> supervisor.Answer:
        """Start a program; `files`: paths or memories for descriptors 0, 1, 2."""
        descriptors = []
        try:
            for number, name in enumerate(message["files"]):
                descriptors.append(self._open(name, number))
            result, (pidfd,) = super().spawn(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        os.close(pidfd)
        return result, b""

    def _open(self, name: str, number: int) -> int:
        if name.startswith("memory:"):
            if name in self.memories:
                os.close(self.memories.pop(name))
            self.memories[name] = os.memfd_create(name)
            return os.dup(self.memories[name])
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        return os.open(name, flags | os.O_CLOEXEC, 0o600)

    def sample(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Return counters of the whole machine: MPI's daemons start ranks too."""
        sample = self.counters.sample()
        whole, counted = sample["machine"], frames().get(self.interface, {})
        sample["hosts"] = [
            {
                "host": socket.gethostname(),
                "cpu_user_s": whole["cpu_user_s"],
                "cpu_system_s": whole["cpu_system_s"],
                "memory_bytes": machine.memory_bytes() - whole["memory_available_bytes"],
                "runnable": whole["runnable"],
                # The counters are named as a bridge port's host sees them; here they are the host's own.
                "rx_bytes": counted.get("tx_bytes", 0),
                "rx_packets": counted.get("tx_packets", 0),
                "tx_bytes": counted.get("rx_bytes", 0),
                "tx_packets": counted.get("rx_packets", 0),
                "drops": counted.get("drops", 0),
            }
        ]
        return self.with_counters(sample), b""

    def sweep(self, _message: rpc.Message, _attachment: Any) -> supervisor.Answer:
        """Kill what a job left here.

        Ranks are children of the MPI library's daemon, but their working directory or command line is in the scratch directory.
        """
        deadline = time.monotonic() + SWEEP_LIMIT_S
        killed: set[int] = set()
        while (strangers := self._strangers()) and time.monotonic() < deadline:
            for pid in strangers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            killed.update(strangers)
            time.sleep(0.01)
        return {"killed": len(killed), "left": len(strangers)}, b""

    def _belongs(self, entry: process_table.Entry) -> bool:
        """Return whether a process of a daemon is the job's; a few looks at each."""
        if len(self.looks) > MOST_LOOKED_AT:
            self.looks.clear()
        key = (entry.pid, entry.started_ticks)
        looks, is_ours = self.looks.get(key, (0, False))
        if not is_ours and looks < LOOKS and self.scratch is not None:
            is_ours = _belongs(entry, os.fsencode(self.scratch))
            self.looks[key] = (looks + 1, is_ours)
        return is_ours

    def _strangers(self) -> list[int]:
        if self.scratch is None:
            return []
        spared = {os.getpid(), *self.children}
        mark = os.fsencode(self.scratch)
        return [entry.pid for entry in process_table.entries() if entry.pid not in spared and _belongs(entry, mark)]

    def end_all(self) -> None:
        if self.offloads is not None:
            self.offloads.restore()
        super().end_all()
        if self.scratch is not None:
            self.sweep({}, b"")
            trees.remove(self.scratch)


def page(names: Sequence[str], skip: int) -> rpc.Message:
    """Return names from `skip` on that fit into an answer, and if there are more."""
    end, room = skip, PAGE_BYTES
    while end < len(names) and (room := room - len(json.dumps(names[end])) - 2) >= 0:
        end += 1
    return {"files": names[skip:end], "more": end < len(names)}


def _belongs(entry: process_table.Entry, mark: bytes) -> bool:
    if entry.has_ended:
        return False
    try:
        directory = os.readlink(b"/proc/%d/cwd" % entry.pid)  # noqa: PTH115 - bytes, and a hot path
        if directory == mark or directory.startswith(mark + b"/"):
            return True
        return mark + b"/" in Path(f"/proc/{entry.pid}/cmdline").read_bytes()
    except OSError:
        return False


def start() -> None:
    """Serve the worker at the other end of standard input and output."""
    reading, writing = (spawn._high(descriptor) for descriptor in (0, 1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    os.write(writing, GREETING)
    supervisor.supervise(RemoteSupervisor(rpc.Stream(reading, writing)))
