"""Start of one program: session, descriptors, host, niceness, or an OSError."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, Protocol

from workers.agent import linux

NETWORKS = Path("/run/netns")
HOST_NAMES = Path("/run/uts")
START_LIMIT_S = 20.0  # below the time that a worker waits for an answer; other programs of a sandbox can stop a new one


class Sandbox(Protocol):
    """Confinement of a program (`workers.agent.sandbox`): fork, enter, restrict."""

    def fork(self) -> int: ...
    def enter(self) -> None: ...
    def restrict(self) -> None: ...


@dataclass
class Order:
    """Program to start. `descriptors` become its 0, 1, 2, 3 ..., in order."""

    argv: list[str]
    environment: dict[str, str]
    directory: str
    host: str | None = None
    niceness: int = 0
    descriptors: list[int] = field(default_factory=list)
    sandbox: Sandbox | None = None

    @classmethod
    def from_message(cls, message: dict[str, Any], descriptors: list[int]) -> Order:
        return cls(
            argv=message["argv"],
            environment=message["environment"],
            directory=message["directory"],
            host=message.get("host"),
            niceness=message.get("niceness", 0),
            descriptors=descriptors,
        )


def start(order: Order) -> int:
    """Fork and execute; return the pid after execve. Raises its OSError."""
    report_reader, report_writer = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork() if order.sandbox is None else order.sandbox.fork()
    if pid == 0:
        _become(order, parent, report_writer)
    os.close(report_writer)
    if select.select([report_reader], [], [], START_LIMIT_S)[0]:
        report = os.read(report_reader, select.PIPE_BUF)
    else:
        report = b"%d it did not start in time" % errno.ETIMEDOUT
    os.close(report_reader)
    if report:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        number, _, what = report.decode(errors="replace").partition(" ")
        raise OSError(int(number), what)
    return pid


def _become(order: Order, parent: int, report: int) -> NoReturn:
    """Apply the order and execute; in the child, never returns."""
    report = _high(report)
    try:
        if order.sandbox is not None:
            # From the loss of its rights until execve a program of the same sandbox could trace it, and speak as the agent.
            linux.control(linux.PR_SET_DUMPABLE, 0)
        else:  # programs in a sandbox end with it, and see no parent
            linux.die_with_parent(signal.SIGKILL)
            if os.getppid() != parent:  # the agent died before the line above could ask for its signal
                os._exit(1)
        os.setsid()
        if order.host is not None:
            linux.setns(NETWORKS / order.host, linux.CLONE_NEWNET)
            linux.setns(HOST_NAMES / order.host, linux.CLONE_NEWUTS)
        if order.sandbox is not None:
            order.sandbox.enter()
        if order.niceness:
            os.nice(order.niceness)
        _restore_signals()
        os.chdir(order.directory)
        _arrange(order.descriptors)
        if order.sandbox is not None:
            order.sandbox.restrict()
        os.execvpe(order.argv[0], order.argv, order.environment)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(report, f"{error.errno} {error.strerror}".encode())
    except BaseException as error:
        os.write(report, f"0 {error!r}".encode())
    sys.stderr.flush()
    os._exit(127)


def _restore_signals() -> None:
    """Restore the defaults of signals that Python ignores."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _arrange(descriptors: list[int]) -> None:
    """Move descriptors to 0, 1, 2 ... via high numbers, so that none is lost."""
    for target, descriptor in enumerate([_high(descriptor) for descriptor in descriptors]):
        os.dup2(descriptor, target, inheritable=True)


def _high(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)
