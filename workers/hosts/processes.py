"""Worker's side of an agent: start, await and end programs on a cluster.

An `Agent` owns one child process (`workers.testbed.agent`, on the test-bed inside its own namespaces). If the worker dies, the
agent notices and leaves nothing behind; if the agent dies, its namespaces die with it and `Process` reports the end.
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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from analysis.numbers import amount
from experiments.common import processors
from workers.agent import machine, rpc
from workers.agent.variables import without_job
from workers.errors import ClusterUnavailable, LaunchFailed
from workers.hosts.programs import search_path

ROOT = Path(__file__).resolve().parent.parent.parent
ANSWER_LIMIT_S = 30.0
STDERR_LIMIT_BYTES = 1 << 20
"""Of an agent's standard error, which is on this machine's disk."""
QUESTION_LIMIT_S = 10.0
ANSWER_LIMIT_BYTES = 1 << 20
MOST_PROGRAMS = 1 << 18
"""Ends that an agent may report; another machine's may be hostile."""
WAIT_SLICE_S = 0.2  # how long a waiting thread may keep another one from asking
KILL_LIMIT_S = 10.0


class Channel(Protocol):
    """Worker's end of the connection to an agent: `rpc.Packets` or `rpc.Stream`."""

    def fileno(self) -> int: ...
    def receive(self) -> tuple[rpc.Message, Any] | None: ...
    def send(self, message: rpc.Message, attachment: Any = ...) -> None: ...
    def discard(self, attachment: Any) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Ended:
    """End of a program; `status` as in subprocess: the exit code, or minus the signal."""

    status: int
    started_ns: int
    ended_ns: int


class Agent(ABC):
    """Worker's side of a running agent: thread-safe, a context manager."""

    is_here = False
    """True if killing it ends its programs."""

    def __init__(self, channel: Channel, process: subprocess.Popen[bytes], stderr: IO[bytes]) -> None:
        self._lock = threading.RLock()
        self._sequence = 0
        self._ended: dict[int, Ended] = {}
        self._gone = False
        self._stderr = stderr
        self._channel = channel
        self._process = process
        self.while_silent: Callable[[], object] = lambda: None
        """Called while an answer or an end is awaited."""
        self._killed_because = ""

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process to kill if nothing else helps."""
        return self._process.pid

    def ask(self, do: str, attachment: Any = None, **fields: Any) -> tuple[rpc.Message, Any]:
        """Send a request, return the answer. Raises ClusterUnavailable or OSError."""
        with self._lock:
            self._sequence += 1
            try:
                message = {"do": do, "sequence": self._sequence, **fields}
                self._channel.send(message) if attachment is None else self._channel.send(message, attachment)
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise LaunchFailed("The command line or its environment is too long.") from error
                self._lost()
            deadline = time.monotonic() + ANSWER_LIMIT_S
            while (remaining_s := deadline - time.monotonic()) > 0:
                received = self._receive(min(remaining_s, WAIT_SLICE_S))
                if received is None:
                    self.while_silent()
                    continue
                message, passed = received
                if message.get("answers") == self._sequence:
                    message = self._checked("error" if "error" in message else do, message)
                    if "error" in message:
                        raise OSError(message["errno"] or 0, message["error"])
                    return message, passed
                self._channel.discard(passed)  # the answer to a request that an exception interrupted
            silence = f"The agent of the cluster did not answer within {amount(ANSWER_LIMIT_S, 's')}."
            if self.is_here:  # its programs may block it, and no limit would hold for them
                self.kill(silence)
            raise ClusterUnavailable(silence)

    def alive(self) -> bool:
        """Return whether the agent runs."""
        with self._lock:
            return not self._gone and self._process.poll() is None

    def ended(self, pid: int, timeout_s: float) -> Ended | None:
        """Return the end of program `pid`, None before it. Raises ClusterUnavailable."""
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                if pid in self._ended:
                    return self._ended[pid]
                remaining_s = deadline - time.monotonic()
                received = self._receive(min(WAIT_SLICE_S, max(remaining_s, 0.0)))
                if received is not None:
                    self._channel.discard(received[1])
                if remaining_s <= 0:  # also if the other end never stops sending
                    return self._ended.get(pid)
            if received is None and time.monotonic() < deadline:
                self.while_silent()

    def kill(self, reason: str) -> None:
        """End everything at once, also if the agent is blocked."""
        self._killed_because = reason
        self._process.kill()

    def close(self) -> None:
        """End everything. Idempotent; returns after the agent and its programs have ended."""
        with self._lock:
            self._gone = True
            self._channel.close()
            try:
                self._process.wait(KILL_LIMIT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._kill_orphans()
            self._stderr.close()

    def _receive(self, timeout_s: float) -> tuple[rpc.Message, Any] | None:
        """Return the next message and record ends of programs; None after the timeout."""
        if self._gone:
            self._lost()
        self._require_few_complaints()
        if len(self._ended) > MOST_PROGRAMS:
            self._process.kill()
            self._lost()
        ready, _, _ = select.select([self._channel], [], [], timeout_s)
        if not ready:
            return None
        received = self._channel.receive()
        if received is None:
            self._lost()
            return None
        if "ended" in received[0]:
            message = self._checked("ended", received[0])
            self._ended[message["ended"]] = Ended(message["status"], message["started_ns"], message["ended_ns"])
            self._note_end(message["ended"])
        return received

    def _checked(self, request: str, answer: rpc.Message) -> rpc.Message:
        """Return an answer or an end in its form. Raises ClusterUnavailable."""
        return answer

    def _require_few_complaints(self) -> None:
        if os.fstat(self._stderr.fileno()).st_size > STDERR_LIMIT_BYTES:
            self._process.kill()
            self._lost()

    def _lost(self) -> None:
        """Kill the programs of a dead agent; always raises ClusterUnavailable."""
        self._gone = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._kill_orphans()
        raise ClusterUnavailable(self.exit_report())

    @abstractmethod
    def machine(self, program: Sequence[str], mpirun: str, variables: Mapping[str, str]) -> dict[str, Any]:
        """Return the facts of the programs' machine (`workers.agent.machine.facts`)."""

    @abstractmethod
    def processors(self) -> dict[str, Any]:
        """Return the programs' cores (`experiments.common.processors.describe`)."""

    @abstractmethod
    def _note_end(self, pid: int) -> None:
        """Handle the end of a program that was collected."""

    @abstractmethod
    def _kill_orphans(self) -> None:
        """Kill what a dead agent may have left."""

    @abstractmethod
    def outputs(self, commands: Sequence[Sequence[str]], host: str | None = None) -> list[str]:
        """Return standard output of small programs run in parallel; empty if missing."""

    def output(self, argv: Sequence[str], host: str | None = None) -> str:
        """Return standard output of one small program."""
        return self.outputs([argv], host)[0]

    def exit_report(self) -> str:
        """Return why the agent ended, with its last line of output."""
        if self._killed_because:
            return self._killed_because
        words = b""
        if not self._stderr.closed:
            self._stderr.seek(0)
            words = self._stderr.read()
        last = words.decode(errors="replace").strip().splitlines()[-1:]
        status = self._process.poll()
        how = f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with status {status}"
        return f"The agent of the cluster {how}" + (f": {last[0]}" if last else ".")


class LocalAgent(Agent):
    """Agent that is our child, on the test-bed inside its own namespaces."""

    is_here = True

    def __init__(self, prefix: Sequence[str] = ()) -> None:
        """Start the agent behind `prefix` (namespaces). Raises ClusterUnavailable."""
        self._pidfds: dict[int, int] = {}
        stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the agent
        ours, theirs = rpc.pair()
        owner = os.pidfd_open(os.getpid())
        try:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-S", "-s", "-m", "workers.testbed.agent", str(theirs.fileno()), str(owner)],
                pass_fds=(theirs.fileno(), owner),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env={**without_job(os.environ), "PYTHONPATH": str(ROOT)},
                start_new_session=True,  # a Ctrl-C meant for the worker must not end its programs out of order
            )
        except OSError as error:
            raise ClusterUnavailable(f"The agent of the cluster cannot be started: {error.strerror}.") from error
        finally:
            theirs.close()
            os.close(owner)
        super().__init__(rpc.Packets(ours), process, stderr)

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
        sandbox: Mapping[str, Any] | None = None,
    ) -> Process:
        """Start a program; `descriptors` become its 0, 1, 2, 3 ...

        A *job* ends when it and everything it started have ended; tools (capture, probe) run independently. In a `sandbox`
        (`workers.agent.sandbox.SandboxPlan`) a job has three streams, followed by descriptors of the writable directories. Raises
        LaunchFailed.
        """
        confined = {} if sandbox is None else {"sandbox": dict(sandbox)}
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
                **confined,
            )
        except OSError as error:
            raise LaunchFailed(f"{argv[0]} cannot be started: {error.strerror}.") from error
        with self._lock:
            self._pidfds[answer["pid"]] = pidfd
        return Process(self, answer["pid"], answer["started_ns"])

    def outputs(self, commands: Sequence[Sequence[str]], host: str | None = None) -> list[str]:
        with ExitStack() as files:
            nothing = files.enter_context(Path(os.devnull).open("rb")).fileno()
            answers = [os.memfd_create("answer") for _ in commands]
            for answer in answers:
                files.callback(os.close, answer)
            running = []
            for argv, answer in zip(commands, answers, strict=True):
                with contextlib.suppress(LaunchFailed):
                    running.append(
                        self.spawn(
                            argv,
                            environment={"PATH": search_path(), "LC_ALL": "C"},
                            directory=Path("/"),
                            descriptors=(nothing, answer, nothing),
                            host=host,
                        )
                    )
            end_all(running)
            return [os.pread(answer, ANSWER_LIMIT_BYTES, 0).decode(errors="replace") for answer in answers]

    def machine(self, program: Sequence[str], mpirun: str, variables: Mapping[str, str]) -> dict[str, Any]:
        return machine.facts(program, mpirun, variables)

    def processors(self) -> dict[str, Any]:
        return processors.describe()

    def _note_end(self, pid: int) -> None:
        os.close(self._pidfds.pop(pid))

    def _kill_orphans(self) -> None:
        """Kill via pidfds, which never mean another process.

        Programs with file capabilities lose PR_SET_PDEATHSIG.
        """
        for pidfd in self._pidfds.values():
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        self._pidfds.clear()


class Process:
    """Program that an agent started."""

    def __init__(self, agent: Agent, pid: int, started_ns: int) -> None:
        self._agent = agent
        self.pid = pid  # as the agent sees it: inside its PID namespace, if it has one
        self.started_ns = started_ns
        self._known_ns = time.monotonic_ns()  # an agent on another machine has another clock
        self._end: Ended | None = None

    def poll(self) -> int | None:
        """Return the exit status (minus the signal that ended it), None before the end."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end; None after `timeout_s`. Raises ClusterUnavailable."""
        if self._end is None:
            self._end = self._agent.ended(self.pid, float("inf") if timeout_s is None else timeout_s)
        return None if self._end is None else self._end.status

    @property
    def returncode(self) -> int | None:
        return None if self._end is None else self._end.status

    @property
    def ended_ns(self) -> int | None:
        return None if self._end is None else self._end.ended_ns

    @property
    def elapsed_s(self) -> float:
        """Wall time from just before the start until the end was noticed, CLOCK_MONOTONIC."""
        if self._end is None:
            return (time.monotonic_ns() - self._known_ns) / 1e9
        return (self._end.ended_ns - self._end.started_ns) / 1e9

    def send_signal(self, number: int) -> None:
        """Signal the program alone."""
        if self._end is None:
            self._agent.ask("signal", pid=self.pid, signal=number)

    def terminate(self, grace_s: float = 5.0) -> int:
        """Send TERM to its group, KILL after the grace to all; return the status."""
        if self.poll() is None:
            self._agent.ask("stop", pid=self.pid, grace_s=grace_s)
        status = self.wait(grace_s + KILL_LIMIT_S)
        if status is None:
            raise ClusterUnavailable(f"Process {self.pid} does not end, even after SIGKILL.")
        return status


def end_all(processes: Sequence[Process]) -> None:
    """Wait for small programs within a time limit."""
    deadline = time.monotonic() + QUESTION_LIMIT_S
    for process in processes:
        if process.wait(max(deadline - time.monotonic(), 0.0)) is None:
            process.terminate(0.0)
