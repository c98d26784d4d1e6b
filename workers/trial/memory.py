"""Whether memory ran out when a program failed, with how much there was and the setting. Pure but for what the kernel counts."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from analysis.numbers import amount
from workers.keeper.machine import memory_bytes
from workers.trial.rank_usage import RankUsage

NEAR_LIMIT: Final = 0.8
"""Of the limit of one process: its last request was refused, so that it never had all of it."""
_ENDED_BY: Final = {signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT}
_LIMIT_OF_CONTAINER: Final = Path("/sys/fs/cgroup/memory.max")


def out_of_memory(usages: Sequence[RankUsage], returncode: int, *, limit_bytes: int, kernel_kills: int) -> str:
    """Return the sentence for ranks that failed for lack of memory; empty if nothing shows that.

    ``limit_bytes``: of one process of a trial. ``kernel_kills``: processes that the kernel ended for lack of memory meanwhile.
    """
    signals = {-returncode, *(usage.signal for usage in usages)}
    if kernel_kills and signal.SIGKILL in signals:
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
    """Return the memory of this machine, or of the container that the worker runs in."""
    try:
        return min(int(_LIMIT_OF_CONTAINER.read_text()), memory_bytes())
    except (OSError, ValueError):
        return memory_bytes()
