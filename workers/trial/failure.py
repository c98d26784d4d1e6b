"""Causes of failed runs, in one sentence each, with the last lines of output."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from analysis.numbers import amount
from experiments.common import plain_files
from experiments.errors import NotPlain
from workers.agent.machine import memory_bytes
from workers.trial.rank_usage import RankUsage

TAIL_LINES: Final = 12
TAIL_BYTES: Final = 8192
_NOISE: Final = re.compile(
    r"plm:(rsh|ssh): Warning: setpgid\(\d+,\d+\) failed in parent"  # a race inside Open MPI that harms nothing
    r"|srun: cluster configuration lacks support for cpu binding"
)
NEAR_LIMIT: Final = 0.8
"""Of the limit of one process: its last request was refused, so that it never had all of it."""
THIS_MACHINE: Final = ""
_ENDED_BY: Final = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT}
_LIMIT_OF_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")
_STORAGE: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}


def tail(file: Path, *, lines: int = TAIL_LINES) -> str:
    """Return the last lines of a text file; "" if missing, a remark for others."""
    try:
        with plain_files.opened(file) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = stream.read(TAIL_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""
    except NotPlain as error:
        return f"({error})"
    return "\n".join(text.splitlines()[-lines:])


def with_output(sentence: str, *, stdout: Path, stderr: Path) -> str:
    """Return ``sentence`` followed by the last lines that the run printed."""
    said = _without_noise(tail(stderr)) or tail(stdout)
    return f"{sentence}\n\nLast lines of output:\n{said}" if said else f"{sentence} It printed no output."


def _without_noise(text: str) -> str:
    """Remove launchers' messages that good runs print too."""
    return "\n".join(line for line in text.splitlines() if not _NOISE.search(line))


def storage_failure(error: OSError) -> str | None:
    """Return the sentence for a storage error that users can fix, else None."""
    if error.errno not in _STORAGE:
        return None
    where = f" at {Path(str(error.filename)).name}" if error.filename else ""
    return f"The results could not be stored: {error.strerror}{where}."


def out_of_memory(usages: Sequence[RankUsage], returncode: int, *, limit_bytes: int, killed_on: Sequence[str]) -> str:
    """Return the sentence for ranks that ran out of memory; else empty.

    ``limit_bytes``: of one process. ``killed_on``: hosts whose kernel ended a process for lack of memory, or ``THIS_MACHINE``.
    """
    signals = {-returncode, *(usage.signal for usage in usages)}
    if killed_on and signal.SIGKILL in signals:
        if THIS_MACHINE not in killed_on:
            return (
                f"Memory ran out on {', '.join(killed_on)}: the kernel ended a process because the memory of the host or of the "
                "scheduler's job was in use. Use fewer ranks per host or a smaller problem, or ask the scheduler for more."
            )
        return (
            f"Memory ran out: the kernel ended a process because all of the {amount(available_bytes(), 'B')} was in use. "
            "Use fewer ranks or a smaller problem, or limit trials by RANKWIRE_TRIAL_MEMORY_MIB."
        )
    failed = [usage for usage in usages if usage.signal in _ENDED_BY or usage.exit_status]
    most = max((usage.max_rss_bytes for usage in failed), default=0)
    if most >= NEAR_LIMIT * limit_bytes:
        return (
            f"Memory ran out: a rank had {amount(most, 'B')} of the {amount(limit_bytes, 'B')} that a process may have "
            "(RANKWIRE_TRIAL_MEMORY_MIB)."
        )
    return ""


def available_bytes() -> int:
    """Return the memory of this machine, or of the worker's container."""
    try:
        return min(int(_LIMIT_OF_CONTAINER.read_text()), memory_bytes())
    except (OSError, ValueError):
        return memory_bytes()


def cause(program: str, returncode: int, usages: Sequence[RankUsage], ranks: int) -> str:
    """Return what failed, by ``returncode`` of the launch, without a full stop."""
    if returncode < 0:  # mpirun passes the signal of a rank on as 128 + number: this one was meant for itself
        return f"The launch command of {program} was killed by {_signal_name(-returncode)}"
    # The first rank to die took the others with it: mpirun ends them with SIGTERM or SIGKILL.
    bad = sorted((u for u in usages if u.exit_status or u.signal), key=lambda u: u.ended_ns)
    if bad:
        first = bad[0]
        end = (
            f"was killed by {_signal_name(first.signal)}"
            if first.signal
            else f"ended with exit status {first.exit_status}"
        )
        return f"{program} failed: rank {first.rank} of {ranks} on {first.host} {end}"
    return f"The launch command of {program} ended with exit status {returncode}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
