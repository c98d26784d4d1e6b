"""Usage of each rank from the reports of the rank wrapper, and run metrics."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, FiniteFloat, StringConstraints, TypeAdapter, ValidationError

from experiments.common import plain_files
from experiments.common.storable import LARGEST_INTEGER
from experiments.errors import NotPlain
from workers.agent.contention import ranges

REPORT_LIMIT_BYTES: Final = 64 << 10
REPORTS_LIMIT_BYTES: Final = 32 << 20
"""Of all ranks; the wrapper writes less than 1 KB for each."""
Count = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
Seconds = Annotated[FiniteFloat, Field(ge=0, le=LARGEST_INTEGER)]
Text = Annotated[str, StringConstraints(pattern=r"^[ -~]{0,200}$")]


@dataclass(frozen=True)
class RankUsage:
    """getrusage of one rank's program; start and end by CLOCK_MONOTONIC there."""

    rank: Count
    host: Text
    user_s: Seconds
    system_s: Seconds
    max_rss_bytes: Count
    voluntary_switches: Count
    involuntary_switches: Count
    exit_status: Count | None
    signal: Count | None
    started_ns: Count
    ended_ns: Count
    started_at: Seconds
    mpi_libraries: Annotated[Sequence[Text], Field(max_length=100)] = ()
    """Files of an MPI library in the program's memory; empty if none was found."""
    mpi_world: Annotated[Mapping[Text, Text], Field(max_length=100)] = field(default_factory=dict)
    """Launcher's variables of the program's environment that describe its world."""
    io: Annotated[Mapping[Text, Count], Field(max_length=100)] = field(default_factory=dict)
    """Bytes of /proc/self/io of what started the rank, and `wait_ms` if the kernel counts it; empty without them."""

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s

    @property
    def failed(self) -> bool:
        return bool(self.exit_status or self.signal)


_REPORT: Final = TypeAdapter(RankUsage)


def read_rank_usage(report_dir: Path) -> list[RankUsage]:
    """Return the reports by rank; killed ranks may lack one.

    Raises NotPlain, also for a report that the rank wrapper did not write: programs of the trial can write there.
    """
    usages, room = [], REPORTS_LIMIT_BYTES
    for path in report_dir.glob("rank-*.json"):
        try:
            text = plain_files.read_text(path, limit_bytes=min(REPORT_LIMIT_BYTES, room))
            room -= len(text)
            usage = _REPORT.validate_json(text, strict=True)
        except ValidationError:
            raise NotPlain(f"{path.name} is not the report of a rank") from None
        if path.name != f"rank-{usage.rank}.json":
            raise NotPlain(f"{path.name} is the report of another rank")
        usages.append(usage)
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
    return {host: ranges(ranks) for host, ranks in by_host.items()}


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
