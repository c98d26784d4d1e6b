"""The worker's side of the keeper: start programs on a cluster, wait for them, end them with everything they started.

A `Keeper` owns one child process (`workers.keeper`, on the test-bed inside its own namespaces). Whatever happens to the
worker, the keeper notices and leaves nothing behind; whatever happens to the keeper, its namespaces die with it and
`Process` reports the end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from workers.errors import ClusterUnavailable, LaunchFailed
from workers.keeper import wire

ROOT = Path(__file__).resolve().parent.parent
ANSWER_LIMIT_S = 30.0
WAIT_SLICE_S = 0.2  # how long a waiting thread may keep another one from asking
KILL_LIMIT_S = 10.0


@dataclass(frozen=True)
class Ended:
    """How a program ended; `status` like subprocess: the exit code, or minus the signal."""

    status: int
    started_ns: int
    ended_ns: int


class Keeper:
    """A running keeper process. Thread-safe. Close it, or leave the `with` block."""

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        """Start it; `prefix` is the command in front that makes the namespaces. Raises ClusterUnavailable."""
        self._lock = threading.RLock()
        self._sequence = 0
        self._ended: dict[int, Ended] = {}
        self._pidfds: dict[int, int] = {}
        self._gone = False
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the keeper
        self._requests, theirs = wire.pair()
        owner = os.pidfd_open(os.getpid())
        try:
            self._process = subprocess.Popen(
                [*prefix, sys.executable, "-S", "-s", "-m", "workers.keeper", str(theirs.fileno()), str(owner)],
                pass_fds=(theirs.fileno(), owner),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,  # a Ctrl-C meant for the worker must not end its programs out of order
            )
        except OSError as error:
            raise ClusterUnavailable(f"The keeper of the cluster cannot be started: {error.strerror}.") from error
        finally:
            theirs.close()
            os.close(owner)

    def __enter__(self) -> Keeper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process to end if nothing else helps."""
        return self._process.pid

    def ask(self, do: str, descriptors: tuple[int, ...] = (), **fields: Any) -> tuple[wire.Message, list[int]]:
        """One request and its answer. Raises ClusterUnavailable when the keeper is gone, OSError when it refuses."""
        with self._lock:
            self._sequence += 1
            try:
                wire.send(self._requests, {"do": do, "sequence": self._sequence, **fields}, descriptors)
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise LaunchFailed("The command line or its environment is too long.") from error
                self._lost()
            deadline = time.monotonic() + ANSWER_LIMIT_S
            while (left := deadline - time.monotonic()) > 0:
                received = self._receive(left)
                if received is None:
                    break
                message, passed = received
                if message.get("answers") == self._sequence:
                    if "error" in message:
                        raise OSError(message.get("errno") or 0, message["error"])
                    return message, passed
                for descriptor in passed:  # the answer to a request that an exception interrupted
                    os.close(descriptor)
            raise ClusterUnavailable(f"The keeper of the cluster did not answer within {ANSWER_LIMIT_S:.0f} s.")

    def alive(self) -> bool:
        """Whether it still keeps."""
        with self._lock:
            return not self._gone and self._process.poll() is None

    def spawn(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        descriptors: tuple[int, ...],
        host: str | None = None,
        job: bool = False,
        niceness: int = 0,
    ) -> Process:
        """Start a program; `descriptors` become its 0, 1, 2, 3 ...

        A *job* is over when it and everything it started are gone; a tool (capture, probe) lives beside it.
        Raises LaunchFailed.
        """
        try:
            answer, (pidfd,) = self.ask(
                "spawn",
                descriptors,
                argv=list(argv),
                environment=dict(environment),
                directory=str(directory),
                host=host,
                job=job,
                niceness=niceness,
            )
        except OSError as error:
            raise LaunchFailed(f"{argv[0]} cannot be started: {error.strerror}.") from error
        with self._lock:
            self._pidfds[answer["pid"]] = pidfd
        return Process(self, answer["pid"], answer["started_ns"])

    def ended(self, pid: int, timeout_s: float) -> Ended | None:
        """How program `pid` ended, None if it has not within the time. Raises ClusterUnavailable when the keeper died."""
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                if pid in self._ended:
                    return self._ended[pid]
                left = deadline - time.monotonic()
                received = self._receive(min(WAIT_SLICE_S, max(left, 0.0)))
                for descriptor in received[1] if received else []:
                    os.close(descriptor)
                if received is None and left <= 0:
                    return None

    def close(self) -> None:
        """End everything. Idempotent; returns when the keeper and its programs are gone."""
        with self._lock:
            self._gone = True
            self._requests.close()
            try:
                self._process.wait(KILL_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._kill_orphans()
            self._complaints.close()

    def _receive(self, timeout_s: float) -> tuple[wire.Message, list[int]] | None:
        """The next message, ends of programs noted on the way; None when none came in time."""
        if self._gone:
            self._lost()
        ready, _, _ = select.select([self._requests], [], [], timeout_s)
        if not ready:
            return None
        received = wire.receive(self._requests)
        if received is None:
            self._lost()
            return None
        message = received[0]
        if "ended" in message:
            self._ended[message["ended"]] = Ended(message["status"], message["started_ns"], message["ended_ns"])
            os.close(self._pidfds.pop(message["ended"]))
        return received

    def _lost(self) -> None:
        """The keeper has died: make sure that its programs did, then say so. Always raises ClusterUnavailable."""
        self._gone = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._kill_orphans()
        raise ClusterUnavailable(self.obituary())

    def _kill_orphans(self) -> None:
        """Through pidfds, which never mean another process. (Programs with file capabilities lose PR_SET_PDEATHSIG.)"""
        for pidfd in self._pidfds.values():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds.clear()

    def obituary(self) -> str:
        """Why the keeper ended, in a sentence with its last words."""
        words = b""
        if not self._complaints.closed:
            self._complaints.seek(0)
            words = self._complaints.read()
        last = words.decode(errors="replace").strip().splitlines()[-1:]
        status = self._process.poll()
        how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
        return f"The keeper of the cluster {how}" + (f": {last[0]}" if last else ".")


class Process:
    """A program under a keeper."""

    def __init__(self, keeper: Keeper, pid: int, started_ns: int) -> None:
        self._keeper = keeper
        self.pid = pid  # as the keeper sees it: inside its PID namespace, if it has one
        self.started_ns = started_ns
        self._end: Ended | None = None

    def poll(self) -> int | None:
        """The exit status if it has ended (minus the signal if one ended it), else None."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end; None when it still runs after `timeout_s`. Raises ClusterUnavailable if the keeper died."""
        if self._end is None:
            self._end = self._keeper.ended(self.pid, float("inf") if timeout_s is None else timeout_s)
        return None if self._end is None else self._end.status

    @property
    def returncode(self) -> int | None:
        return None if self._end is None else self._end.status

    @property
    def ended_ns(self) -> int | None:
        return None if self._end is None else self._end.ended_ns

    @property
    def elapsed_s(self) -> float:
        """Wall time from just before it was started to when its end was noticed, on the monotonic clock."""
        ended_ns = time.monotonic_ns() if self._end is None else self._end.ended_ns
        return (ended_ns - self.started_ns) / 1e9

    def send_signal(self, number: int) -> None:
        """To the program alone."""
        if self._end is None:
            self._keeper.ask("signal", pid=self.pid, signal=number)

    def terminate(self, grace_s: float = 5.0) -> int:
        """TERM to its group, KILL to all it started after the grace; wait for the end and return the status."""
        if self.poll() is None:
            self._keeper.ask("stop", pid=self.pid, grace_s=grace_s)
        status = self.wait(grace_s + KILL_LIMIT_S)
        if status is None:
            raise ClusterUnavailable(f"Process {self.pid} does not die, even by SIGKILL.")
        return status


def null_input() -> int:
    """A descriptor that reads nothing, for a program's standard input."""
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
