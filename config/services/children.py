"""Child processes that end with their parent, and servers that do not run as root."""

from __future__ import annotations

import atexit
import ctypes
import os
import pwd
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
POLL_S = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Account:
    """User and group of a service."""

    uid: int
    gid: int

    @classmethod
    def of_directory(cls, directory: Path) -> Account | None:
        """Return the account of a data directory; None for the current user.

        Under root it is the owner of existing data, else the system's `postgres` or `nobody`.
        """
        if os.geteuid() != 0:
            return None
        with suppress(FileNotFoundError):
            owner = directory.stat()
            if owner.st_uid != 0:
                return cls(owner.st_uid, owner.st_gid)
        for name in ("postgres", "nobody"):
            with suppress(KeyError):
                entry = pwd.getpwnam(name)
                return cls(entry.pw_uid, entry.pw_gid)
        return cls(65534, 65534)


def die_with_parent(parent: int, with_signal: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when its parent thread ends.

    Call it in the child, after a change of user, which clears the request. The child exits if `parent`, the process ID
    of the parent, has already ended.
    """
    if _libc.prctl(PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        os._exit(1)


def start(
    argv: Sequence[str],
    *,
    log: Path | None,
    death_signal: signal.Signals | None,
    account: Account | None = None,
    executable: str | None = None,
    cwd: Path | str = "/",
    environment: Mapping[str, str] | None = None,
    stdin: int | None = subprocess.DEVNULL,
    session: bool = True,
    pass_fds: Iterable[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program; append its output to `log`, or inherit the output.

    The program receives `death_signal` when this process ends. `session=False` keeps it in the session of the terminal.
    """
    output = _open_log(log)
    try:
        return subprocess.Popen(
            argv,
            executable=executable,
            cwd=cwd,
            env=environment,
            stdin=stdin,
            stdout=output,
            stderr=output if output is None else subprocess.STDOUT,
            start_new_session=session,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            pass_fds=tuple(pass_fds),
            preexec_fn=_before_exec(death_signal),  # after the change of user
        )
    finally:
        if output is not None:
            os.close(output)


def _open_log(log: Path | None) -> int | None:
    return None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)


def _before_exec(death_signal: signal.Signals | None) -> Callable[[], None]:
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, set())  # this process may block signals
        if death_signal is not None:
            die_with_parent(parent, death_signal)

    return prepare


@dataclass
class Fork:
    """A child that `fork` started, with the methods of `subprocess.Popen`."""

    pid: int
    returncode: int | None = field(default=None, init=False)

    def poll(self) -> int | None:
        if self.returncode is None and (status := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(status[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(POLL_S)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    module: Sequence[str],
    *,
    title: str,
    log: Path | None,
    death_signal: signal.Signals,
    cwd: Path,
    pass_fds: Iterable[int] = (),
) -> Fork:
    """Run `python -m module` in a fork of this process.

    Forks share the memory and the environment, and start without importing. The child has its own session, no
    standard input, and only the descriptors that it is passed; `ps` shows it as `title`.
    """
    parent = os.getpid()
    output = _open_log(log)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        if child := os.fork():
            return Fork(child)
        _run_module(module, title, output, (death_signal, parent), cwd, pass_fds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if output is not None:
            os.close(output)
    raise AssertionError("a fork returned")


def _run_module(
    module: Sequence[str],
    title: str,
    output: int | None,
    death: tuple[signal.Signals, int],
    cwd: Path,
    pass_fds: Iterable[int],
) -> None:
    """Become the program of `module`; never return."""
    status = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setsid()
        die_with_parent(death[1], death[0])
        _set_descriptors(output, pass_fds)
        os.chdir(cwd)
        _set_title(title)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        sys.argv = list(module)
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as an interpreter does at its end
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _set_descriptors(output: int | None, pass_fds: Iterable[int]) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
    lowest = 3
    for descriptor in sorted(pass_fds):
        os.set_inheritable(descriptor, True)
        os.closerange(lowest, descriptor)
        lowest = descriptor + 1
    os.closerange(lowest, os.sysconf("SC_OPEN_MAX"))


def _set_title(title: str) -> None:
    """Overwrite the arguments of this process, which `ps` shows."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    ctypes.memmove(start, title.encode()[: end - start - 1].ljust(end - start, b"\0"), end - start)


def stop(process: subprocess.Popen[bytes] | Fork, ladder: Sequence[tuple[signal.Signals, float]]) -> None:
    """Send signals with grace periods in seconds, then SIGKILL to the group."""
    for number, grace_s in ladder:
        if process.poll() is not None:
            break
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    # The group can have members after its leader ended. In the session of the terminal there is no such group.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
