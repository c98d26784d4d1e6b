"""Usage of each rank from the reports of the rank wrapper, and run metrics."""

from __future__ import annotations

import itertools
import json
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from experiments.common import plain_files

REPORT_LIMIT_BYTES: Final = 64 << 10


@dataclass(frozen=True)
class RankUsage:
    """getrusage of one rank's program; start and end by CLOCK_MONOTONIC there."""

    rank: int
    host: str
    user_s: float
    system_s: float
    max_rss_bytes: int
    voluntary_switches: int
    involuntary_switches: int
    exit_status: int | None
    signal: int | None
    started_ns: int
    ended_ns: int
    started_at: float
    mpi_libraries: Sequence[str] = ()
    """Files of an MPI library in the program's memory; empty if none was found."""
    mpi_world: Mapping[str, str] = field(default_factory=dict)
    """Launcher's variables of the program's environment that describe its world."""

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s

    @property
    def failed(self) -> bool:
        return bool(self.exit_status or self.signal)


def read_rank_usage(report_dir: Path) -> list[RankUsage]:
    """Return the reports by rank; killed ranks may lack one. Raises NotPlain."""
    names = [column.name for column in fields(RankUsage)]
    usages = []
    for path in report_dir.glob("rank-*.json"):
        report = json.loads(plain_files.read_text(path, limit_bytes=REPORT_LIMIT_BYTES))
        usages.append(RankUsage(**{name: report[name] for name in names if name in report}))
    return sorted(usages, key=lambda usage: usage.rank)


def run_metrics(elapsed_s: float, usages: Sequence[RankUsage], ranks: int | None = None) -> dict[str, float]:
    """Return run metrics; only `elapsed_s` if a rank's report is missing.

    A sum over some of the ranks would look like a fast trial.
    """
    metrics = {"elapsed_s": elapsed_s}
    if not usages or (ranks is not None and len(usages) != ranks):
        return metrics
    cpu_s = [usage.cpu_s for usage in usages]
    metrics |= {
        "cpu_user_s": sum(usage.user_s for usage in usages),
        "cpu_system_s": sum(usage.system_s for usage in usages),
        "cpu_s": sum(cpu_s),
        "cpu_mean_rank_s": statistics.fmean(cpu_s),
        "cpu_max_rank_s": max(cpu_s),
        "cpu_utilisation": sum(cpu_s) / (elapsed_s * len(usages)),
        "max_rss_bytes": max(usage.max_rss_bytes for usage in usages),
        "context_switches_voluntary": sum(usage.voluntary_switches for usage in usages),
        "context_switches_involuntary": sum(usage.involuntary_switches for usage in usages),
    }
    if (mean := statistics.fmean(cpu_s)) > 0:
        metrics["cpu_imbalance"] = max(cpu_s) / mean - 1
    return metrics


def ranks_on(usages: Sequence[RankUsage]) -> dict[str, str]:
    """Return the ranks of every host as "0-3, 8", by their first rank."""
    by_host: dict[str, list[int]] = {}
    for usage in sorted(usages, key=lambda usage: usage.rank):
        by_host.setdefault(usage.host, []).append(usage.rank)
    return {host: ", ".join(_runs(ranks)) for host, ranks in by_host.items()}


def ranks_by_address(
    usages: Sequence[RankUsage], addresses: Mapping[str, frozenset[str]], ranks: int
) -> dict[str, list[int]]:
    """Return the ranks at every address of the hosts; empty if a report is missing.

    Addresses that several hosts have (loopback, bridges of containers) are left out.
    """
    if len(usages) < ranks:
        return {}
    holders = Counter(address for host_addresses in addresses.values() for address in host_addresses)
    by_host: dict[str, list[int]] = {}
    for usage in sorted(usages, key=lambda usage: usage.rank):
        by_host.setdefault(usage.host, []).append(usage.rank)
    return {
        address: by_host[host]
        for host, host_addresses in addresses.items()
        if host in by_host
        for address in host_addresses
        if holders[address] == 1
    }


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield ranges of ascending numbers."""
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in group]
        yield str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
