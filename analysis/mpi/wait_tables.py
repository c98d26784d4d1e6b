"""Explained waits as metrics of the catalogue and as stored tables. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from analysis.mpi.wait_sums import CAUSES, LONG_WAIT_NS, Waits

MOST_PAIRS: Final = 2_000
"""Pairs of ranks in the table, those that waited longest first."""
NO_RUN_DELAY: Final = "the kernel of the hosts does not count run delay"
SHARE_METRICS: Final = {cause: f"mpi_wait_{cause}_share" for cause in CAUSES}
OF_ONE_RANK: Final = ("mpi_waiting_rank", "mpi_waiting_rank_share", "mpi_waited_for_rank", "mpi_waited_for_share")
METRICS: Final = ("mpi_wait_share", *SHARE_METRICS.values(), *OF_ONE_RANK)
NOBODY_WAITED: Final = "no rank waited so long in a receive or collective that the wait was explained"


def metrics(waits: Waits, windows_s: Mapping[int, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the metrics of a trial's waits, and why others are absent.

    ``windows_s``: of every rank, seconds from MPI_Init to MPI_Finalize.
    """
    values = {"mpi_wait_share": waits.whole_s / sum(windows_s.values())}
    if not waits.pairs:
        return values, dict.fromkeys(METRICS[1:], NOBODY_WAITED)
    values |= {metric: waits.share(cause) for cause, metric in SHARE_METRICS.items()}
    waited_s: dict[int, float] = defaultdict(float)
    for pair in waits.pairs:
        waited_s[pair.receiver] += pair.whole_s if windows_s.get(pair.receiver) else 0.0
    missing = {}
    if not waits.run_delay_known:
        missing[SHARE_METRICS["no_core"]] = NO_RUN_DELAY
        del values[SHARE_METRICS["no_core"]]
    rank = max(waited_s, key=lambda number: waited_s[number] / (windows_s.get(number) or 1.0))
    if not waited_s[rank]:
        return values, missing | dict.fromkeys(OF_ONE_RANK, NOBODY_WAITED)
    late = CAUSES.index("late_sender")
    latest = max((pair for pair in waits.pairs if pair.receiver == rank), key=lambda pair: pair.seconds[late])
    values |= {"mpi_waiting_rank": float(rank), "mpi_waiting_rank_share": waited_s[rank] / windows_s[rank]}
    if not latest.seconds[late]:
        return values, missing | dict.fromkeys(OF_ONE_RANK[2:], "the rank that waits longest waits for no late sender")
    values |= {
        "mpi_waited_for_rank": float(latest.sender),
        "mpi_waited_for_share": latest.seconds[late] / waited_s[rank],
    }
    return values, missing


def table(waits: Waits) -> dict[str, Any]:
    """Return the stored pairs: [sender, receiver, waits, seconds of each cause]."""
    return {
        "causes": list(CAUSES),
        "long_wait_s": LONG_WAIT_NS / 1e9,
        "pairs": [[pair.sender, pair.receiver, pair.waits, *pair.seconds] for pair in waits.pairs[:MOST_PAIRS]],
        "pairs_left_out": max(0, len(waits.pairs) - MOST_PAIRS),
        "unknown_s": dict(waits.unknown_s),
    }
