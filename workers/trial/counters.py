"""Metrics of a trial from the counters of its hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from analysis.catalogue import METRICS
from analysis.numbers import plural
from workers.trial.rank_usage import RankUsage

Counted = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Reports by host and source."""
_SECTIONS: Final = ("energy", "fabric", "processor", "gpu", "files")
_IDENTIFIERS: Final = tuple(metric.id for metric in METRICS.values() if metric.section in _SECTIONS)
NOT_READ: Final = "the counters of the hosts were not read"
METERS: Final = ("rapl", "cray")
_SUMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "energy_package_j": ("package_j", METERS),
    "energy_dram_j": ("dram_j", METERS),
    "energy_gpu_j": ("gpu_j", ("nvml", "rocm", "cray")),
    "energy_host_j": ("host_j", ("cray",)),
    "energy_host_estimated_j": ("host_estimated_j", ("ipmi",)),
}
"""Metrics that add up a total of all hosts, with the sources that may give it, the best first."""


class Totals:
    """Totals of all hosts, or why there is none."""

    def __init__(self, counted: Counted) -> None:
        self.counted = counted
        self.reasons: dict[str, str] = {}

    def by_host(self, total: str, sources: Sequence[str]) -> dict[str, list[Mapping[str, Any]]]:
        """Return the rows of a total by host, of the first source that has it on all hosts; else {}."""
        reasons: dict[str, str] = {}
        for source in sources:
            found, lacking = {}, {}
            for host, reports in self.counted.items():
                rows, reason = _rows(reports.get(source, {}), total)
                if reason:
                    lacking[host] = reason
                else:
                    found[host] = rows
            if not lacking:
                return found
            some = f"{len(found)} of {plural(len(self.counted), 'host')}: " if found else ""
            title = next((reports[source]["title"] for reports in self.counted.values() if source in reports), source)
            reasons.setdefault(source, f"{title}: {some}{next(iter(lacking.values()))}")
        self.reasons[total] = next(iter(reasons.values()), NOT_READ)
        return {}

    def sum(self, total: str, sources: Sequence[str]) -> float | None:
        found = self.by_host(total, sources)
        return sum(row["value"] for rows in found.values() for row in rows) if found else None


def _rows(report: Mapping[str, Any], total: str) -> tuple[list[Mapping[str, Any]], str]:
    """Return the rows of a total, or why this source has none on this host."""
    if report.get("state") != "ready":
        return [], report.get("reason") or "it did not answer"
    if total in report["missing"]:
        return [], report["missing"][total]
    rows = [row for row in report.get("values", ()) if row["total"] == total]
    failed = next((f"{row['name']}: {row['absent']}" for row in rows if "absent" in row), "")
    if "values" not in report:
        failed = "it did not answer after the program's end"
    return rows, failed or ("" if rows else "this device has none")


def counter_metrics(
    counted: Counted,
    *,
    elapsed_s: float,
    rate: float | None,
    tables: Mapping[str, Any] | None,
    usages: Sequence[RankUsage],
) -> tuple[dict[str, float], dict[str, str]]:
    """Return metrics, and why others are absent.

    ``rate``: the deciding metric in results per second; ``tables``: of the time inside MPI.
    """
    totals = Totals(counted)
    if not counted:
        return {}, dict.fromkeys(_IDENTIFIERS, NOT_READ)
    values: dict[str, float | None] = {name: totals.sum(*of) for name, of in _SUMS.items()}
    reasons = {name: totals.reasons.get(total, "") for name, (total, _) in _SUMS.items()}
    values |= _energy(totals, elapsed_s, rate)
    metrics = {name: value for name, value in values.items() if value is not None}
    no_energy = reasons["energy_package_j"] or "a total of the energy is missing"
    absent = {name: reasons.get(name) or no_energy for name in _IDENTIFIERS if name not in metrics}
    if "energy_per_result_j" in absent and "energy_j" in metrics:
        absent["energy_per_result_j"] = "the deciding metric is no rate"
    return metrics, absent


def _energy(totals: Totals, elapsed_s: float, rate: float | None) -> dict[str, float | None]:
    """Return the deciding energy: packages, memory if it has a meter, and used GPUs."""
    meters = [(source, totals.by_host("package_j", (source,))) for source in METERS]
    source, packages = next((meter for meter in meters if meter[1]), ("", {}))
    if not packages:
        return {}
    memory = totals.by_host("dram_j", (source,))
    if not memory and any(_has(reports.get(source, {}), "dram_j") for reports in totals.counted.values()):
        totals.reasons["package_j"] = totals.reasons[
            "dram_j"
        ]  # a sum of hosts with and without it compares with nothing
        return {}
    power = {}
    for host, rows in packages.items():
        joules = [*rows, *memory.get(host, ())]
        power[host] = sum(row["value"] for row in joules) / rows[0]["seconds"]
    energy = sum(row["value"] for of in (packages, memory) for rows in of.values() for row in rows)
    energy += sum(_used_gpus(reports) for reports in totals.counted.values())
    seconds = max(rows[0]["seconds"] for rows in packages.values())
    return {
        "energy_j": energy,
        "power_mean_w": energy / seconds,
        "energy_delay_js": energy * elapsed_s,
        "energy_per_result_j": energy / seconds / rate if rate else None,
        "power_host_max_w": max(power.values()),
        "power_host_min_w": min(power.values()),
    }


def _has(report: Mapping[str, Any], total: str) -> bool:
    return any(row["total"] == total for row in report.get("values", ()))


def _used_gpus(reports: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the energy of a host's GPUs whose use was not 0, or not known."""
    return sum(
        row["value"]
        for report in reports.values()
        for row in report.get("values", ())
        if row["total"] == "gpu_j" and "value" in row and _use(report, row["device"]) > 0
    )


def _use(report: Mapping[str, Any], device: str) -> float:
    rows: Iterator[Mapping[str, Any]] = (row for row in report["values"] if row["device"] == device)
    return next((row.get("peak", 1.0) for row in rows if row["total"] == "gpu_share"), 1.0)
