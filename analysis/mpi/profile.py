"""A trial's profile from those of its ranks: metrics, and tables of its page."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis.mpi.efficiencies import efficiencies
from analysis.mpi.functions import CLASSES, FUNCTIONS
from analysis.mpi.record import RankProfile, Row

FORMAT: Final = 1
MOST_PAIRS: Final = 20_000
"""Pairs of ranks in the table of messages, those with most bytes first."""
_CLASS_OF: Final = {function.name: function.kind for function in FUNCTIONS}
RUN_DELAY_METRICS: Final = (
    *(
        "mpi_descheduled_share",
        "mpi_blocked_outside_share",
        "mpi_descheduled_inside_share",
        "mpi_busiest_descheduled_s",
    ),
)
NO_RUN_DELAY: Final = "the kernel of a host does not count run delay (/proc/thread-self/schedstat)"
CLASS_METRICS: Final = {
    "point-to-point": "mpi_point_to_point_share",
    "collective": "mpi_collective_share",
    "synchronisation": "mpi_synchronisation_share",
    "waiting": "mpi_waiting_share",
    "one-sided": "mpi_one_sided_share",
    "input/output": "mpi_input_output_share",
}


def metrics(ranks: Sequence[RankProfile]) -> dict[str, float]:
    """Return the metrics of the section mpi from all ranks of one run.

    Raises ValueError without useful time.
    """
    window_s = max(rank.window_s for rank in ranks)
    whole_s = sum(rank.window_s for rank in ranks)
    useful = [rank.useful_s for rank in ranks]
    ratios = efficiencies(useful, window_s)
    no_core, blocked = sum(rank.no_core_s for rank in ranks), sum(rank.blocked_s for rank in ranks)
    inside = sum(rank.mpi_s for rank in ranks)
    by_class = _seconds_by_class(ranks)
    busiest = max(ranks, key=lambda rank: rank.useful_s)
    return {
        "mpi_window_s": window_s,
        "mpi_useful_s": sum(useful),
        "mpi_useful_max_rank_s": max(useful),
        "mpi_busiest_rank": float(busiest.rank),
        "mpi_busiest_computing_s": busiest.computing_s,
        "mpi_load_balance": ratios.load_balance,
        "mpi_communication_efficiency": ratios.communication,
        "mpi_parallel_efficiency": ratios.parallel,
        "mpi_useful_share": (sum(useful) - no_core) / whole_s,
        "mpi_no_core_share": no_core / whole_s,
        "mpi_on_cpu_share": (inside - blocked) / whole_s,
        "mpi_blocked_share": blocked / whole_s,
        **_run_delay(ranks, busiest),
        **{identifier: by_class[name] / whole_s for name, identifier in CLASS_METRICS.items()},
        "mpi_calls": float(sum(rank.calls for rank in ranks)),
        "mpi_messages": float(sum(int(rank.sizes[0].sum()) for rank in ranks)),
        "mpi_sent_bytes": float(sum(int(rank.peers[:, 1].sum()) for rank in ranks)),
        "mpi_collective_bytes": float(sum(_collective_bytes(rank) for rank in ranks)),
        "mpi_profile_cost_share": sum(rank.calls * rank.call_cost_s + rank.counters.cost_s for rank in ranks) / whole_s,
    }


def _run_delay(ranks: Sequence[RankProfile], busiest: RankProfile) -> dict[str, float]:
    """Return descheduled and blocked time; empty if a kernel counts no run delay."""
    delays = [rank.delay_s for rank in ranks if rank.delay_s is not None]
    if len(delays) < len(ranks) or busiest.delay_s is None:
        return {}
    whole_s = sum(rank.window_s for rank in ranks)
    outside, inside = (sum(seconds) for seconds in zip(*delays, strict=True))
    return {
        "mpi_descheduled_share": outside / whole_s,
        "mpi_blocked_outside_share": (sum(rank.no_core_s for rank in ranks) - outside) / whole_s,
        "mpi_descheduled_inside_share": inside / whole_s,
        "mpi_busiest_descheduled_s": busiest.delay_s[0],
    }


def tables(ranks: Sequence[RankProfile], hosts: Mapping[int, str], level: str) -> dict[str, Any]:
    """Return the stored tables of a run as plain data; ``hosts`` by rank.

    Times in seconds; sizes by powers of two (entry 0: empty, entry k: from 2**(k-1) bytes on); pairs as
    [from, to, messages, bytes]; ``inside``: for every rank its share of time inside MPI in each ``bin_s`` of its window.
    """
    pairs = heapq.nlargest(MOST_PAIRS, _pairs(ranks), key=lambda pair: pair[3])
    between = (sent for source, to, _, sent in _pairs(ranks) if hosts.get(source) != hosts.get(to))
    return {
        "format": FORMAT,
        "level": level,
        "ranks": [_rank(rank, hosts.get(rank.rank, "")) for rank in ranks],
        "functions": _functions(ranks),
        "sizes": {
            name: np.sum([rank.sizes[index] for rank in ranks], axis=0).tolist()
            for index, name in enumerate(("point_to_point", "collective"))
        },
        "pairs": pairs,
        "pairs_left_out": sum(int(np.count_nonzero(rank.peers[:, 0])) for rank in ranks) - len(pairs),
        "between_hosts_bytes": sum(between),
        "inside": [{"rank": rank.rank, "bin_s": rank.bin_s, "shares": _shares(rank)} for rank in ranks],
    }


def _rank(rank: RankProfile, host: str) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "host": host,
        "began_s": (rank.began_ns + rank.real_offset_ns) / 1e9,
        "window_s": rank.window_s,
        "computing_s": rank.computing_s,
        "no_core_s": rank.no_core_s,
        **_outside(rank),
        "on_cpu_s": rank.mpi_s - rank.blocked_s,
        "blocked_s": rank.blocked_s,
        "calls": rank.calls,
        "calls_of_other_threads": sum(row.calls for row in rank.of_others),
        "messages": int(rank.sizes[0].sum()),
        "sent_bytes": int(rank.peers[:, 1].sum()),
        "init_s": rank.init_s,
        "call_cost_s": rank.call_cost_s,
        "end": rank.end,
        "inside": rank.inside,
        "counters": {**rank.counters.values, "counted_share": rank.counters.counted_share},
    }


def _outside(rank: RankProfile) -> dict[str, float]:
    """Return a rank's run delay and blocked time outside MPI; empty if unknown."""
    if rank.delay_s is None:
        return {}
    outside, inside = rank.delay_s
    return {"descheduled_s": outside, "blocked_outside_s": rank.no_core_s - outside, "descheduled_inside_s": inside}


def _functions(ranks: Sequence[RankProfile]) -> list[dict[str, Any]]:
    """Return one row per called function, the longest first.

    ``max_rank_s`` is the time of the rank that spent most in it.
    """
    by_name: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for rank in ranks:
        for row in (*rank.rows, *rank.of_others):
            by_name[row.name].append((rank.rank, row))
    rows = []
    for name, rows_of_ranks in by_name.items():
        most = max(rows_of_ranks, key=lambda pair: pair[1].seconds)
        rows.append(
            {
                "name": f"MPI_{name}",
                "class": _CLASS_OF[name],
                "ranks": len({rank for rank, _ in rows_of_ranks}),
                "calls": sum(row.calls for _, row in rows_of_ranks),
                "seconds": sum(row.seconds for _, row in rows_of_ranks),
                "longest_s": max(row.longest_s for _, row in rows_of_ranks),
                "bytes": sum(row.bytes for _, row in rows_of_ranks),
                "max_rank": most[0],
                "max_rank_s": most[1].seconds,
            }
        )
    return sorted(rows, key=lambda row: -row["seconds"])


def _seconds_by_class(ranks: Sequence[RankProfile]) -> dict[str, float]:
    """Return the seconds by class of the threads that began MPI."""
    seconds: dict[str, float] = dict.fromkeys(CLASSES, 0.0)
    for rank in ranks:
        for row in rank.rows:
            seconds[_CLASS_OF[row.name]] += row.seconds
    return seconds


def _collective_bytes(rank: RankProfile) -> int:
    return sum(row.bytes for row in (*rank.rows, *rank.of_others) if _CLASS_OF[row.name] == "collective")


def _pairs(ranks: Sequence[RankProfile]) -> Iterator[list[int]]:
    """Yield the pairs, one at a time: there are up to 4096 for each rank."""
    for rank in ranks:
        for to in np.flatnonzero(rank.peers[:, 0]).tolist():
            yield [rank.rank, to, *rank.peers[to].tolist()]


def _shares(rank: RankProfile) -> list[float]:
    """Return the share inside MPI of each bin; the last bin ends with the window."""
    last_s = rank.window_s - (len(rank.bins) - 1) * rank.bin_s
    lengths_s = [*[rank.bin_s] * (len(rank.bins) - 1), last_s if 0 < last_s < rank.bin_s else rank.bin_s]
    return [
        round(min(1.0, float(seconds) / length_s), 4) for seconds, length_s in zip(rank.bins, lengths_s, strict=False)
    ]
