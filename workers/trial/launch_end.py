"""A launch command that outlives its ranks: launchers hang now and then when a rank dies while they still start the others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from workers.trial.rank_usage import RankUsage, read_rank_usage

END_LIMIT_S: Final = 30.0
"""Open MPI takes three seconds to end a job of which a rank died, more on a busy machine; a time limit may be days."""


class LaunchEnd:
    """Whether it is time that a launch command ended, by the reports of its ranks."""

    def __init__(self, report_dir: Path, ranks: int) -> None:
        self._report_dir = report_dir
        self._ranks = ranks
        self._due_since: float | None = None

    def overdue(self) -> Sequence[RankUsage]:
        """What the ranks reported where one failed, or all ended, longer ago than the limit; else nothing."""
        usages = read_rank_usage(self._report_dir)
        if len(usages) < self._ranks and not any(usage.failed for usage in usages):
            return ()
        now = time.monotonic()
        if self._due_since is None:
            self._due_since = now
        return usages if now - self._due_since >= END_LIMIT_S else ()
