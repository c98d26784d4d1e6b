"""Metrics of a trial from the counters of its hosts."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.catalogue import METRICS
from analysis.mpi.counters import METRICS as OF_RANKS
from analysis.numbers import plural
from workers.hosts.counters.source import ESTIMATED, MEASURED
from workers.hosts.sampling import BYTES_PER_TICK
from workers.trial.inside_mpi import LEAST_BYTES, sent_between_hosts
from workers.trial.rank_usage import RankUsage

Counted = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Reports by host and source."""
_SECTIONS: Final = ("energy", "fabric", "processor", "gpu", "files")
_IDENTIFIERS: Final = tuple(
    metric.id for metric in METRICS.values() if metric.section in _SECTIONS and metric.id not in OF_RANKS
)
NOT_READ: Final = "the counters of the hosts were not read"
METERS: Final = ("rapl", "cray")
_PORTS, _NET = ("ports",), ("ethernet",)
_CARDS = ("nvml", "rocm", "amdgpu")
_GPUS = (*_CARDS, "cray")
_SUMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "energy_package_j": ("package_j", METERS),
    "energy_dram_j": ("dram_j", METERS),
    "energy_gpu_j": ("gpu_j", _GPUS),
    "energy_host_j": ("host_j", ("cray",)),
    "energy_host_estimated_j": ("host_estimated_j", ("ipmi",)),
    **{
        f"fabric_{name}": (f"fabric_{name}", _PORTS)
        for name in ("sent_bytes", "received_bytes", "sent_packets", "received_packets", "errors", "discards")
    },
    "fabric_retransmissions": ("fabric_retransmissions", _PORTS),
    "fabric_cnps": ("fabric_cnps", _PORTS),
    **{
        f"ethernet_{name}": (f"ethernet_{name}", _NET)
        for name in ("sent_bytes", "received_bytes", "sent_packets", "received_packets", "drops", "errors")
    },
    **{name: (name, ("ethtool",)) for name in ("ethernet_pauses", "ethernet_discards", "ethernet_ecn_marks")},
    "slingshot_sent_bytes": ("slingshot_sent_bytes", ("slingshot",)),
    "slingshot_received_bytes": ("slingshot_received_bytes", ("slingshot",)),
    "throttle_events": ("throttle_events", ("throttling",)),
    "nfs_read_bytes": ("nfs_read_bytes", ("nfs",)),
    "nfs_written_bytes": ("nfs_written_bytes", ("nfs",)),
    "nfs_wait_s": ("nfs_wait_s", ("nfs",)),
    "lustre_read_bytes": ("lustre_read_bytes", ("lustre",)),
    "lustre_written_bytes": ("lustre_written_bytes", ("lustre",)),
}
"""Metrics that add up a total of all hosts, with the sources that may give it, the best first."""
_OTHERS: Final[Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str, Callable[[Sequence[float]], float]]]] = {
    "fabric_peak_share": (("fabric_sent_bytes", "fabric_received_bytes"), _PORTS, "use", max),
    "ethernet_peak_share": (("ethernet_sent_bytes", "ethernet_received_bytes"), _NET, "use", max),
    "frequency_mean_hz": (("frequency_hz",), ("frequency",), "value", statistics.fmean),
    "temperature_max_c": (("temperature_c",), ("temperature",), "peak", max),
    "gpu_used_share": (("gpu_share",), _CARDS, "value", statistics.fmean),
    "gpu_memory_bytes": (("gpu_memory_bytes",), _CARDS, "peak", max),
    "gpu_frequency_hz": (("gpu_frequency_hz",), ("nvml", "amdgpu"), "value", statistics.fmean),
    "gpu_throttled_share": (("gpu_throttled_share",), ("nvml",), "value", statistics.fmean),
}
"""Metrics of another field of the rows, joined otherwise."""
_IO: Final = {
    "io_read_bytes": "read_bytes",
    "io_written_bytes": "write_bytes",
    "io_requested_read_bytes": "rchar",
    "io_requested_written_bytes": "wchar",
}
_NETWORKS: Final[Mapping[str, str]] = {
    "fabric_mpi_share": "fabric_sent_bytes",
    "slingshot_mpi_share": "slingshot_sent_bytes",
    "ethernet_mpi_share": "ethernet_sent_bytes",
}
_OF_CALLS: Final = ("memory_mpi_share", "mpi_between_hosts_bytes")
_OF_MPI: Final = (*_OF_CALLS, *_NETWORKS, "networks_per_mpi_byte")
_NO_PEAK: Final = "the rate of a port is not known, or the trial was shorter than two samples"
_NO_DELAYS: Final = "the kernel counts no delays of storage (kernel.task_delayacct is 0)"


@dataclass(frozen=True, slots=True)
class Provenance:
    """Source of a metric and its trust: measured, estimated or from calls."""

    source: str
    trust: str


_FROM_CALLS: Final = Provenance("Calls of the ranks", "from calls")
_APPORTIONED: Final = Provenance("Calls of the ranks; counters of ports and interfaces", ESTIMATED)
_OF_RANKS: Final = Provenance("/proc/self/io of what started the ranks", MEASURED)


@dataclass(frozen=True, slots=True)
class CounterMetrics:
    """Metrics by identifier, why others are absent, and the provenance of each."""

    values: Mapping[str, float]
    absent: Mapping[str, str]
    provenance: Mapping[str, Provenance]

    def by_source(self) -> dict[str, dict[str, Any]]:
        """Return trust and metrics of each source, as trials store them.

        What a source measures and what it estimates are two of them.
        """
        sources: dict[str, dict[str, Any]] = {}
        for metric, (name, trust) in ((metric, (of.source, of.trust)) for metric, of in self.provenance.items()):
            is_other = sources.get(name, {"trust": trust})["trust"] != trust
            of_trust = sources.setdefault(f"{name}, {trust}" if is_other else name, {"trust": trust, "metrics": []})
            of_trust["metrics"].append(metric)
        return sources


class Totals:
    """Totals of all hosts, or why there is none."""

    def __init__(self, counted: Counted) -> None:
        self.counted = counted
        self.reasons: dict[str, str] = {}
        self.used: dict[str, Provenance] = {}
        """By total that all hosts have."""

    def by_host(self, total: str, sources: Sequence[str]) -> dict[str, list[Mapping[str, Any]]]:
        """Return the rows of a total by host; {} if no source has it on all hosts."""
        reasons: dict[str, str] = {}
        for source in sources:
            rows_of, lacking = {}, {}
            for host, reports in self.counted.items():
                rows, reason = _rows(reports.get(source, {}), total)
                if reason:
                    lacking[host] = reason
                else:
                    rows_of[host] = rows
            title = next((reports[source]["title"] for reports in self.counted.values() if source in reports), source)
            if not lacking:
                self.used[total] = Provenance(title, _least_sure(rows_of))
                return rows_of
            some = f"{len(rows_of)} of {plural(len(self.counted), 'host')}: " if rows_of else ""
            reasons.setdefault(source, f"{title}: {some}{next(iter(lacking.values()))}")
        self.reasons.setdefault(total, next(iter(reasons.values()), NOT_READ))
        return {}

    def sum(self, total: str, sources: Sequence[str]) -> float | None:
        by_host = self.by_host(total, sources)
        return sum(row["value"] for rows in by_host.values() for row in rows) if by_host else None


def _least_sure(rows_of: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    trusts = {row.get("trust", MEASURED) for rows in rows_of.values() for row in rows}
    return ESTIMATED if ESTIMATED in trusts else MEASURED


def _rows(report: Mapping[str, Any], total: str) -> tuple[list[Mapping[str, Any]], str]:
    """Return the rows of a total, or why this source has none on this host."""
    if report.get("state") != "ready":
        return [], report.get("reason") or "not ready before the program ended"
    if reason := report.get("missing", {}).get(total):
        return [], reason
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
) -> CounterMetrics:
    """Return metrics, why others are absent, and where they come from.

    ``rate``: the deciding metric in results per second; ``tables``: of the time inside MPI.
    """
    totals = Totals(counted)
    of_files, reasons = _input_output(usages)
    metrics, provenance = dict(of_files), dict.fromkeys(of_files, _OF_RANKS)
    if not counted:
        absent = {name: reasons.get(name, NOT_READ) for name in _IDENTIFIERS if name not in metrics}
        return CounterMetrics(metrics, absent, provenance)
    meters = _meters(totals)
    for name, (total, sources) in _SUMS.items():
        if (value := totals.sum(total, meters if sources == METERS else sources)) is not None:
            metrics[name], provenance[name] = value, totals.used[total]
        reasons[name] = totals.reasons.get(total, "")
    for name, (of_totals, sources, field, joined) in _OTHERS.items():
        by_total = [totals.by_host(total, sources) for total in of_totals]
        values = [_field(row, field) for by_host in by_total for rows in by_host.values() for row in rows]
        if all(by_total) and (numbers := [value for value in values if value is not None]):
            metrics[name], provenance[name] = joined(numbers), totals.used[of_totals[0]]
        reasons[name] = next((totals.reasons[total] for total in of_totals if total in totals.reasons), _NO_PEAK)
    jobs = [row for reports in counted.values() for row in _rows(reports.get("slurm", {}), "job_estimated_j")[0]]
    if job := next((row for row in jobs if "value" in row), None):
        # The job's first host reads it for all.
        metrics["energy_job_estimated_j"] = job["value"]
        provenance["energy_job_estimated_j"] = Provenance("Energy, job (Slurm)", ESTIMATED)
    reasons["energy_job_estimated_j"] = _no_job_energy(counted)
    waits, (energy, energy_from) = _waits(totals), _energy(totals, meters, elapsed_s, rate)
    metrics |= waits | energy
    provenance |= {
        name: totals.used["fabric_errors" if name.endswith("errors") else "fabric_wait_ticks"] for name in waits
    }
    provenance |= energy_from
    reasons |= {name: reasons["fabric_sent_bytes"] or totals.reasons.get("fabric_wait_ticks", "") for name in _OF_PORTS}
    uncounted = _uncounted(totals, metrics)
    sent_by = {name: None if uncounted else metrics.get(sent) for name, sent in _NETWORKS.items()}
    shares = mpi_shares(tables, sent_by)
    metrics |= shares
    provenance |= {name: _FROM_CALLS if name in _OF_CALLS else _APPORTIONED for name in shares}
    reasons |= dict.fromkeys(_OF_MPI, "the bytes of messages, or of the networks between hosts, are not known")
    reasons |= dict.fromkeys(set(_OF_MPI) - set(_OF_CALLS), uncounted) if uncounted else {}
    no_energy = totals.reasons.get("package_j") or totals.reasons.get("dram_j", "")
    absent = {name: reasons.get(name) or no_energy for name in _IDENTIFIERS if name not in metrics}
    if "energy_per_result_j" in absent and "energy_j" in metrics:
        absent["energy_per_result_j"] = "the deciding metric is no rate"
    return CounterMetrics(metrics, absent, provenance)


def _no_job_energy(counted: Counted) -> str:
    reasons = [_rows(reports.get("slurm", {}), "job_estimated_j")[1] for reports in counted.values()]
    return next((f"Energy, job (Slurm): {reason}" for reason in reasons if "first host" not in reason), NOT_READ)


_OF_PORTS: Final = ("fabric_wait_share", "fabric_worst_port_errors")


def _field(row: Mapping[str, Any], field: str) -> float | None:
    """Return a field of a row; its `use` is the peak's share of the possible rate."""
    if field != "use":
        return float(row[field])
    return min(1.0, row["peak"] / row["limit"]) if row["limit"] and row["peak"] else None


def _waits(totals: Totals) -> dict[str, float]:
    """Return how ports waited, and the errors of the worst of them."""
    metrics = {}
    waits, data = (totals.by_host(total, _PORTS) for total in ("fabric_wait_ticks", "fabric_sent_bytes"))
    ports = {(host, row["device"]) for host, rows in waits.items() for row in rows}
    ticks = sum(row["value"] for rows in waits.values() for row in rows)
    sent = sum(row["value"] for host, rows in data.items() for row in rows if (host, row["device"]) in ports)
    if waits and data and ticks + sent:
        metrics["fabric_wait_share"] = ticks / (ticks + sent / BYTES_PER_TICK)
    by_port: dict[tuple[str, str], float] = {}
    for host, rows in totals.by_host("fabric_errors", _PORTS).items():
        for row in rows:
            by_port[host, row["device"]] = by_port.get((host, row["device"]), 0.0) + row["value"]
    return metrics | ({"fabric_worst_port_errors": max(by_port.values())} if by_port else {})


def mpi_shares(tables: Mapping[str, Any] | None, sent_by: Mapping[str, float | None]) -> dict[str, float]:
    """Return shares of the bytes of messages, and bytes of networks per such byte.

    ``sent_by``: bytes that each network's devices sent, by the metric of its share.
    """
    if tables is None:
        return {}
    everything, between = sum(row["sent_bytes"] for row in tables["ranks"]), sent_between_hosts(tables)
    if not everything or len(tables["ranks"]) < 2:
        return {}
    shares = {"memory_mpi_share": 1 - between / everything, "mpi_between_hosts_bytes": float(between)}
    crossed = sum(sent or 0.0 for sent in sent_by.values())
    if between >= LEAST_BYTES and any(sent is not None for sent in sent_by.values()):
        shares["networks_per_mpi_byte"] = crossed / between
    # Ports that sent less than the ranks between hosts did not carry it all: a network without counters did.
    if crossed >= between and crossed:
        shares |= {name: between / everything * sent / crossed for name, sent in sent_by.items() if sent is not None}
    return shares


def _input_output(usages: Sequence[RankUsage]) -> tuple[dict[str, float], dict[str, str]]:
    """Return bytes of all ranks; a sum over some of them would be no total."""
    if not usages or not all("rchar" in usage.io for usage in usages):
        reason = "the kernel shows no /proc/self/io of what started the ranks"
        return {}, {**dict.fromkeys(_IO, reason), "io_wait_s": reason}
    metrics = {name: float(sum(usage.io.get(field, 0) for usage in usages)) for name, field in _IO.items()}
    if all("wait_ms" in usage.io for usage in usages):
        metrics["io_wait_s"] = sum(usage.io["wait_ms"] for usage in usages) / 1e3
    return metrics, {"io_wait_s": _NO_DELAYS}


def _meters(totals: Totals) -> tuple[str, ...]:
    """Return the meters of processors; one that meters memory too comes first.

    No other one replaces it if it was there and has no value: trials of an experiment would have energies of two meters.
    """

    def reports_of(source: str) -> list[Mapping[str, Any]]:
        return [of_host.get(source, {}) for of_host in totals.counted.values()]

    def is_partial(source: str) -> bool:
        return not all(
            _is_lost(report) or all(_rows(report, total)[0] for total in ("package_j", "dram_j"))
            for report in reports_of(source)
        )

    meters = tuple(sorted(METERS, key=is_partial))
    first = reports_of(meters[0])
    is_there = all(_is_lost(report) or _rows(report, "package_j")[0] for report in first)
    return meters[:1] if is_there and any(_rows(report, "package_j")[1] for report in first) else meters


def _is_lost(report: Mapping[str, Any]) -> bool:
    """Return whether a source was read before the program and has no values after it."""
    return "values" not in report and (report.get("state") == "ready" or "read_s" in report)


def _uncounted(totals: Totals, metrics: Mapping[str, float]) -> str:
    """Return why the bytes of a network that hosts have are not known; "" if they are."""
    for sent in _NETWORKS.values():
        total, sources = _SUMS[sent]
        reports = [of_host.get(source, {}) for of_host in totals.counted.values() for source in sources]
        if sent not in metrics and any(report.get("state") == "ready" or "read_s" in report for report in reports):
            return totals.reasons[total]
    return ""


def _energy(
    totals: Totals, meters: Sequence[str], elapsed_s: float, rate: float | None
) -> tuple[dict[str, float], dict[str, Provenance]]:
    """Return the deciding energy: packages, memory if it has a meter, and used GPUs."""
    of_packages = ((source, totals.by_host("package_j", (source,))) for source in meters)
    source, packages = next((meter for meter in of_packages if meter[1]), ("", {}))
    if not packages:
        return {}, {}
    memory = totals.by_host("dram_j", (source,))
    if not memory and any(_has(reports.get(source, {}), "dram_j") for reports in totals.counted.values()):
        totals.reasons["package_j"] = totals.reasons[
            "dram_j"
        ]  # a sum of hosts with and without it compares with nothing
        return {}, {}
    gpus: dict[str, list[Mapping[str, Any]]] = {}
    sources = [totals.used["package_j"].source]
    for host, reports in totals.counted.items():
        gpus[host], title, reason = _used_gpus(reports)
        if reason:
            totals.reasons["package_j"] = reason
            return {}, {}
        sources += [title] if gpus[host] else []
    power = {}
    for host, rows in packages.items():
        joules = [*rows, *memory.get(host, ())]
        power[host] = sum(row["value"] for row in joules) / rows[0]["seconds"]
    parts = (packages, memory, gpus)
    energy = sum(row["value"] for of in parts for rows in of.values() for row in rows)
    seconds = max(rows[0]["seconds"] for rows in packages.values())
    of_hosts = {"power_host_max_w": max(power.values()), "power_host_min_w": min(power.values())}
    of_all = {
        "energy_j": energy,
        "power_mean_w": energy / seconds,
        "energy_delay_js": energy * elapsed_s,
        **({"energy_per_result_j": energy / seconds / rate} if rate else {}),
    }
    trust = ESTIMATED if ESTIMATED in map(_least_sure, parts) else MEASURED
    provenance = dict.fromkeys(of_all, Provenance("; ".join(dict.fromkeys(sources)), trust))
    return of_all | of_hosts, provenance | dict.fromkeys(of_hosts, totals.used["package_j"])


def _has(report: Mapping[str, Any], total: str) -> bool:
    return any(row["total"] == total for row in report.get("values", ()))


def _used_gpus(reports: Mapping[str, Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], str, str]:
    """Return energies of a host's used GPUs and their source, or why none is known."""
    reason = ""
    for source in _GPUS:
        report = reports.get(source, {})
        if report.get("state") != "ready":
            continue
        if "values" not in report:
            reason = reason or f"{report['title']}: it did not answer after the program's end"
            continue
        meters = {row["device"]: row for row in report["values"] if row["total"] == "gpu_j"}
        used = [device for device in _devices(report, meters) if _use(report, device) > 0]
        without_meter = next((device for device in used if device not in meters), None)
        if without_meter is not None:
            reason = reason or f"{report['title']}: {without_meter} was used and reports no energy"
            continue
        for device in used:
            if "absent" in meters[device]:
                return [], "", f"{report['title']}: {meters[device]['name']}: {meters[device]['absent']}"
        if meters:  # other sources read the same ones
            return [meters[device] for device in used], report["title"], ""
    return [], "", reason


def _devices(report: Mapping[str, Any], meters: Iterable[str]) -> list[str]:
    """Return the devices that have a meter, or whose use is known."""
    return list(dict.fromkeys((*meters, *(row["device"] for row in report["values"] if row["total"] == "gpu_share"))))


def _use(report: Mapping[str, Any], device: str) -> float:
    """Return the highest use of a device; 1 if it is unknown."""
    rows = (row for row in report["values"] if row["device"] == device and row["total"] == "gpu_share")
    return next((float(row["peak"]) for row in rows if "absent" not in row), 1.0)
