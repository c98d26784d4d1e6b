"""Child processes that end with their parent, and servers that do not run as root."""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1  # linux/prctl.h
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
    output = None if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
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


def _before_exec(death_signal: signal.Signals | None) -> Callable[[], None]:
    parent = os.getpid()

    def prepare() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, set())  # this process may block signals
        if death_signal is not None:
            die_with_parent(parent, death_signal)

    return prepare


def stop(process: subprocess.Popen[bytes], ladder: Sequence[tuple[signal.Signals, float]]) -> None:
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
