"""Loop of the agent: answer requests, reap programs, end leftovers of jobs.

It knows no kind of cluster and no transport: `workers.testbed.agent` serves a worker on this machine, `workers.agent.remote`
one at the other end of an ssh or srun connection.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workers.agent import linux, process_table, rpc, spawn
from workers.agent.counters import Counters, frames
from workers.agent.spawn import Order

if TYPE_CHECKING:
    from workers.hosts.counters.recorder import MissingSources, Recorder

SWEEP_PATIENCE_S = 1.0  # launch daemons end within milliseconds of mpirun; a stray rank never does
TICK_S = 0.005


class Refusal(Exception):
    """A request that cannot be fulfilled; the message is for the reader."""


@dataclass
class Child:
    """Program started on request; leftovers of jobs, not of tools, are killed."""

    pid: int
    job: bool
    started_ns: int
    ended_ns: int | None = None
    status: int | None = None
    kill_at_ns: int | None = None


class Channel(Protocol):
    """Source of requests and sink of answers, with attachments of its own type."""

    def fileno(self) -> int: ...
    def receive(self) -> tuple[rpc.Message, Any] | None: ...
    def send(self, message: rpc.Message, attachment: Any = ...) -> None: ...
    def discard(self, attachment: Any) -> None: ...


Answer = tuple[rpc.Message, Any]


class Supervisor:
    """Programs of one worker on one cluster."""

    nothing: Any = ()
    """Empty attachment of an answer."""

    def __init__(self, requests: Channel, owner: int | None = None) -> None:
        self.requests = requests
        self.owner = owner
        self.children: dict[int, Child] = {}
        self.counters = Counters()
        self.recorder: Recorder | None = None
        self.recorders: set[int] = set()
        self.missing_sources: MissingSources = {}
        self.selector = selectors.DefaultSelector()
        self.answers: dict[str, Callable[[rpc.Message, Any], Answer]] = {
            "spawn": self.spawn,
            "signal": self.signal,
            "stop": self.stop,
            "sample": self.sample,
            "frames": self.frames,
            "count": self.count,
            "counted": self.counted,
        }

    def run(self) -> None:
        """Serve until the worker is gone or asks us to end."""
        alarm_reader, alarm_writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(alarm_writer)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        for source in (self.requests, self.owner, alarm_reader):
            if source is not None:
                self.selector.register(source, selectors.EVENT_READ)
        self.ending = False
        heard = time.monotonic()
        while not self.ending:
            busy = any(child.ended_ns is not None or child.kill_at_ns for child in self.children.values())
            events = self.selector.select(TICK_S if busy else self.silence_limit_s())
            ready = [key.fileobj for key, _ in events]
            if alarm_reader in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(alarm_reader, 4096)
            self.reap()
            self.report_ended()
            for key, _ in events:
                if key.data is not None:
                    key.data()
            if self.owner in ready or (self.requests in ready and not self.serve()):
                break
            if self.requests in ready:
                heard = time.monotonic()
            elif (limit_s := self.silence_limit_s()) is not None and time.monotonic() - heard >= limit_s:
                break

    def _note(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.ending = True

    def silence_limit_s(self) -> float | None:
        """Return after how long a silence the worker is gone; None: it is certain."""
        return None

    # Requests: each method answers one; an OSError becomes the answer's "error".

    def serve(self) -> bool:
        """Answer one request; False if the worker is gone."""
        received = self.requests.receive()
        if received is None:
            return False
        message, attachment = received
        answer: dict[str, Any] = {"answers": message["sequence"]}
        passed = self.nothing
        try:
            result, passed = self.answers[message["do"]](message, attachment)
            answer.update(result)
        except (OSError, Refusal) as error:
            answer["error"] = getattr(error, "strerror", None) or str(error)
            answer["errno"] = getattr(error, "errno", None)
        finally:
            self.requests.discard(attachment)
        try:
            self.requests.send(answer, passed)
        except OSError:
            return False
        finally:
            self.requests.discard(passed)
        return True

    def spawn(self, message: rpc.Message, descriptors: list[int]) -> Answer:
        return self.start(Order.from_message(message, descriptors), message)

    def start(self, order: Order, message: rpc.Message) -> Answer:
        """Start an order as a child."""
        started_ns = time.monotonic_ns()
        pid = spawn.start(order)
        self.children[pid] = Child(pid, message["job"], started_ns)
        return {"pid": pid, "started_ns": started_ns}, (os.pidfd_open(pid),)

    def signal(self, message: rpc.Message, _attachment: Any) -> Answer:
        if message["pid"] in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(message["pid"], message["signal"])
        return {}, self.nothing

    def stop(self, message: rpc.Message, _attachment: Any) -> Answer:
        """Send TERM now, and KILL to it and all it started after the grace."""
        child = self.children.get(message["pid"])
        if child is not None and child.ended_ns is None and child.kill_at_ns is None:
            child.kill_at_ns = time.monotonic_ns() + int(message["grace_s"] * 1e9)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
        return {}, self.nothing

    def sample(self, message: rpc.Message, _attachment: Any) -> Answer:
        return self.with_counters(self.counters.sample(message.get("beside_s", 0.0))), self.nothing

    def with_counters(self, sample: dict[str, Any]) -> dict[str, Any]:
        """Add the last values of the counter sources to the hosts of a sample."""
        if self.recorder is not None:
            for host in sample["hosts"]:
                host["counters"] = self.recorder.latest.get(host["host"], {})
        return sample

    def count(self, message: rpc.Message, _attachment: Any) -> Answer:
        """Begin to read counters below the `roots` of hosts.

        Return after the first values of the fast ones.
        """
        from workers.hosts.counters.recorder import Recorder  # here: the agent starts without it

        self.end_counting()
        recorder = Recorder(message["roots"], networks=message["networks"], missing=self.missing_sources)
        self.recorder = recorder
        if recorder.pid:  # some host has a source
            self.recorders.add(recorder.pid)
            self.children[recorder.pid] = Child(recorder.pid, job=False, started_ns=time.monotonic_ns())
            self.selector.register(recorder.output, selectors.EVENT_READ, self.drain)
        recorder.await_begin()
        return {}, self.nothing

    def drain(self) -> None:
        if self.recorder is not None and not self.recorder.drain():
            self.selector.unregister(self.recorder.output)

    def counted(self, message: rpc.Message, _attachment: Any) -> Answer:
        """Return what the sources reported.

        The first request asks them for their last values.
        """
        if self.recorder is None:
            return {"is_done": True, "sources": {}}, self.nothing
        if message["is_first"]:
            self.recorder.end()
        answer = {"is_done": self.recorder.is_done, "sources": self.recorder.sources}
        if not (answer["is_done"] or message["is_last"]):
            return {"is_done": False}, self.nothing
        self.end_counting()
        return answer, self.nothing

    def end_counting(self) -> None:
        if self.recorder is not None:
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(self.recorder.output)
            self.recorder.close()
            self.recorder = None

    def frames(self, message: rpc.Message, _attachment: Any) -> Answer:
        counted = frames().get(message["interface"])
        if counted is None:
            raise Refusal(f"there is no interface {message['interface']}")
        sent_too = 0 if message["interface"] == "lo" else counted["tx_packets"]  # what lo sends it receives
        return {"frames": counted["rx_packets"] + sent_too}, self.nothing

    # The end of programs

    def reap(self) -> bool:
        """Collect every ended child, adopted ones included; False if no child exists."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            child = self.children.get(pid)
            if child is not None:
                child.ended_ns = time.monotonic_ns()
                child.status = os.waitstatus_to_exitcode(status)
                child.kill_at_ns = child.ended_ns + int(SWEEP_PATIENCE_S * 1e9)
            else:
                self.adopted_ended(pid, os.waitstatus_to_exitcode(status))

    def adopted_ended(self, pid: int, status: int) -> None:
        """Handle the end of a child that no request started."""

    def report_ended(self) -> None:
        """Report ended programs, jobs only without leftovers; kill what is overdue."""
        now = time.monotonic_ns()
        for child in list(self.children.values()):
            overdue = child.kill_at_ns is not None and now >= child.kill_at_ns
            if child.ended_ns is None and not overdue:
                continue
            leftover_processes = self.leftover_processes(child)
            if child.ended_ns is not None and not leftover_processes:
                self.children.pop(child.pid)
                self.tell(child)
            elif overdue:
                self.overdue(child)
                for entry in leftover_processes:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(entry.pid, signal.SIGKILL)

    def overdue(self, child: Child) -> None:
        """Act before the leftovers of a job are killed."""

    def leftover_processes(self, child: Child) -> list[process_table.Entry]:
        """Return what lives of a job: every descendant of the agent except the tools.

        Daemons leave their session and their parent, but one cluster runs one job at a time.
        """
        if not child.job:
            return [] if child.ended_ns is not None else [entry for entry in [process_table.read(child.pid)] if entry]
        tools = frozenset(other.pid for other in self.children.values() if not other.job)
        # A look at /proc misses a process whose parent ends during the look; the second one finds it with us.
        return process_table.descendants(os.getpid(), tools) or process_table.descendants(os.getpid(), tools)

    def tell(self, child: Child) -> None:
        if child.pid in self.recorders:  # the worker did not start it
            self.recorders.remove(child.pid)
            return
        with contextlib.suppress(OSError):  # the worker is gone: the loop will see that
            self.requests.send(
                {
                    "ended": child.pid,
                    "status": child.status,
                    "ended_ns": child.ended_ns,
                    "started_ns": child.started_ns,
                }
            )

    def end_all(self) -> None:
        """Kill every descendant until none is left.

        Only "no child" of waitpid is proof: orphans become our children, while a look at /proc misses a process whose parent ends
        meanwhile. As PID 1 of a namespace our own end would do; elsewhere not.
        """
        while self.reap():
            for entry in process_table.descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(entry.pid, signal.SIGKILL)
            time.sleep(0.001)


def supervise(supervisor: Supervisor) -> None:
    """Run a supervisor until its worker is gone, and leave nothing of its programs."""
    linux.adopt_orphans()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crashed rank must not fill the disk
    gc.freeze()
    try:
        supervisor.run()
    finally:
        supervisor.end_all()
