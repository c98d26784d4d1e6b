"""Counters on a trial's page: networks, energy, others, and absent sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import METRICS
from analysis.conclusions.rules.counters import LEAST_PER_MPI_BYTE, MOST_OF_HEADERS
from analysis.numbers import SHARE
from experiments.files import read_counters
from experiments.models import Trial
from experiments.models.states import METRIC_SOURCES
from workers.hosts.counters.source import ESTIMATED, MEASURED
from workers.hosts.sampling import RATES

_ENERGY: Final = (
    ("energy_j", "package_j", "Packages, memory, used GPUs"),
    ("energy_package_j", "package_j", "Packages"),
    ("energy_dram_j", "dram_j", "Memory"),
    ("energy_gpu_j", "gpu_j", "GPUs, idle ones included"),
    ("energy_host_j", "host_j", "Whole hosts"),
    ("energy_host_estimated_j", "host_estimated_j", "Whole hosts"),
    ("energy_job_estimated_j", "job_estimated_j", "Whole job, by Slurm"),
)
"""Metric, the total whose reads give its seconds, and label."""
_NETWORKS: Final[Mapping[str, tuple[str, str, str]]] = {
    "ports": ("fabric_sent_bytes", "fabric_received_bytes", "fabric_mpi_share"),
    "slingshot": ("slingshot_sent_bytes", "slingshot_received_bytes", "slingshot_mpi_share"),
    "ethernet": ("ethernet_sent_bytes", "ethernet_received_bytes", "ethernet_mpi_share"),
}
_METERS: Final = ("rapl", "cray")
_LISTED: Final = ("fabric", "processor", "gpu", "files")
_PROGRAMS: Final = ("ipmitool", "sacct", "ethtool", "rocm-smi", "likwid-perfctr")
_MANY_TIMES: Final = 10
"""From which a ratio is named as such: no percentage of thousands."""
_SEEN: Final = 0.01
"""A smaller share of the messages is not named."""
Row = Mapping[str, Any]


def counters_panel(trial: Trial) -> dict[str, Any] | None:
    """Return what the counters of a trial's hosts reported; None without them."""
    counted = read_counters(trial)
    if counted is None:
        return None
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    absent = list(_absent(counted))
    keys = {key for reports in counted.values() for key in reports}
    networks, payload = _networks(counted, values), trial.measurements.filter(scope="mpi", metric="payload_bytes")
    hosts = trial.configuration.hosts
    # Virtual hosts report once, as their machine.
    virtual = len(counted) < hosts and trial.cluster is not None and trial.cluster.traits.hosts_are_virtual
    in_tables = {name for of_network in _NETWORKS.values() for name in of_network}
    return {
        "verdict": _verdict(values, networks, is_counted=not _lost(counted), is_virtual=virtual),
        "cross_check": _cross_check(values, payload.values_list("value", flat=True).first()),
        "busiest": _busiest(counted),
        "hosts": f"the machine of {hosts} virtual hosts" if virtual else numbers.plural(len(counted), "host"),
        "ready": len(keys) - sum(row["everywhere"] for row in absent),
        "sources": len(keys),
        "networks": networks,
        "energy": _energy(counted, values, trial.conditions.get(METRIC_SOURCES, {})),
        "per_result": values.get("energy_per_result_j"),
        "by_host": _by_host(counted),
        "others": [
            {"id": name, "label": metric.label, "unit": metric.unit, "value": values[name]}
            for name, metric in METRICS.items()
            if metric.section in _LISTED and name in values and name not in in_tables
        ],
        "absent": absent,
    }


def _lost(counted: Mapping[str, Any]) -> bool:
    """Return whether a network of a host lost the bytes that it sent."""
    sent = {of_network[0] for of_network in _NETWORKS.values()}
    reports = [reports.get(source, {}) for reports in counted.values() for source in _NETWORKS]
    rows = [row for report in reports for row in report.get("values", ()) if row["total"] in sent]
    return any("absent" in row for row in rows) or any(sent & set(report.get("missing", ())) for report in reports)


def _verdict(
    values: Mapping[str, float], networks: Sequence[Mapping[str, Any]], *, is_counted: bool, is_virtual: bool
) -> str:
    """Return which networks carried the messages, the largest first.

    ``is_counted``: whether all networks of the hosts have their bytes; ``is_virtual``: whether one machine has all hosts.
    """
    sent, within = values.get("mpi_sent_bytes"), values.get("memory_mpi_share")
    if not sent or within is None:
        return ""
    total, between = numbers.amount(sent, "B", 3), (1 - within) * sent
    if not between:
        return f"All {total} that ranks sent each other stayed in the hosts."
    over = {
        row["name"]: row["share"] / (1 - within) for row in networks if row.get("sent") and row["share"] is not None
    }
    named = sorted(((share, name) for name, share in over.items() if share >= _SEEN), reverse=True)
    way = "over a network without counters" if is_counted else "over networks whose counters are not complete"
    if is_virtual:
        way = "between virtual hosts of one machine, over links without counters"
    elif len(named) == 1:
        way = f"over {named[0][1]}"
    elif named:
        way = " and ".join(f"{numbers.amount(share, SHARE, 2)} over {name}" for share, name in named)
    rest = "; the rest stayed in the hosts" if within else ""
    return f"{numbers.amount(between, 'B', 3)} of the {total} that ranks sent each other went {way}{rest}."


def _cross_check(values: Mapping[str, float], payload_bytes: float | None) -> str:
    """Compare the bytes of calls with those of ports, and of the recorded packets."""
    between, ratio = values.get("mpi_between_hosts_bytes"), values.get("networks_per_mpi_byte")
    if between is None or ratio is None:
        return ""
    why = "headers explain up to 10 % more"
    if ratio < LEAST_PER_MPI_BYTE:
        why = "a network without counters carried the rest"
    elif ratio > MOST_OF_HEADERS:
        why = "collectives, files or other programs sent the rest"
    words = f"Calls requested {numbers.amount(between, 'B', 3)} between hosts, ports and interfaces sent "
    change = numbers.percent_change(ratio) if ratio < _MANY_TIMES else f"{numbers.grouped(round(ratio))} times as much"
    words += f"{numbers.amount(ratio * between, 'B', 3)} ({change}): {why}."
    seen = f" Recorded packets carried {numbers.amount(payload_bytes, 'B', 3)}." if payload_bytes else ""
    return f"{words}{seen}"


def _busiest(counted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the port or interface that came nearest to its rate in one second."""
    rows = [
        {"host": host, "device": row["device"], "peak": row["peak"], "limit": row["limit"]}
        for source, totals in _NETWORKS.items()
        for total in totals[:2]
        for host, row in _rows(counted, source, total)
        if row["limit"] and row["peak"]
    ]
    return max(rows, key=lambda row: row["peak"] / row["limit"], default=None)


def rate_limits(trial: Trial) -> dict[str, float]:
    """Return the rate of a host's links by quantity, if all hosts have the same."""
    counted = read_counters(trial) or {}
    limits = {}
    for source, (*totals, _) in _NETWORKS.items():
        for total in totals:
            rates: dict[str, dict[str, float]] = {host: {} for host in counted}
            for host, row in _rows(counted, source, total):
                rates[host][row["device"]] = row["limit"]
            of_hosts = {sum(rate.values()) if all(rate.values()) else 0.0 for rate in rates.values()}
            if total in RATES and len(of_hosts) == 1 and (limit := of_hosts.pop()):
                limits[RATES[total]] = limit
    return limits


def _rows(counted: Mapping[str, Any], source: str, total: str) -> Iterator[tuple[str, Row]]:
    for host, reports in counted.items():
        for row in reports.get(source, {}).get("values", ()):
            if row["total"] == total and "value" in row:
                yield host, row


def _networks(counted: Mapping[str, Any], values: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the devices of all hosts by name, with bytes, peak and share."""
    rows: list[dict[str, Any]] = []
    if "memory_mpi_share" in values:
        rows.append({"name": "Shared memory", "share": values["memory_mpi_share"], "trust": "from calls"})
    for source, (sent, received, share) in _NETWORKS.items():
        devices: dict[str, dict[str, Any]] = {}
        for total, field in ((sent, "sent"), (received, "received")):
            for _, row in _rows(counted, source, total):
                device = devices.setdefault(
                    row["device"], {"sent": 0.0, "received": 0.0, "peak": 0.0, "trust": MEASURED}
                )
                device[field] += row["value"]
                if row.get("trust") == ESTIMATED:
                    device["trust"] = ESTIMATED
                if row["limit"]:
                    device["peak"] = max(device["peak"], row["peak"] / row["limit"])
        details = next((r[source].get("details", "") for r in counted.values() if source in r), "")
        total = sum(device["sent"] for device in devices.values())
        of_all = values.get(share)
        rows += [
            {
                "name": name,
                "share": None if of_all is None or not total else of_all * device["sent"] / total,
                "details": details,
                **device,
            }
            for name, device in devices.items()
        ]
    return rows


def _energy(
    counted: Mapping[str, Any], values: Mapping[str, float], sources: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return joules and watts of each metric of energy.

    ``sources``: trust and metrics by source.
    """
    trusts = {metric: source["trust"] for source in sources.values() for metric in source["metrics"]}
    seconds: dict[str, float] = {}
    for reports in counted.values():
        for row in (row for report in reports.values() for row in report.get("values", ()) if "value" in row):
            seconds[row["total"]] = max(seconds.get(row["total"], 0.0), row["seconds"])
    return [
        {
            "id": name,
            "label": label,
            "joules": values[name],
            "watts": values[name] / seconds[total],
            "trust": trusts.get(name, ESTIMATED if "estimated" in name else MEASURED),
        }
        for name, total, label in _ENERGY
        if name in values and seconds.get(total)
    ]


def _by_host(counted: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the mean power of packages and memory of each host, the largest first.

    They are of the meter that has both on all hosts; else of RAPL, and of pm_counters on hosts without it.
    """
    packages, memory = (
        {source: _watts(counted, source, f"{part}_j") for source in _METERS} for part in ("package", "dram")
    )
    complete = [source for source in _METERS if len(packages[source]) == len(memory[source]) == len(counted)]
    watts: dict[str, float] = {}
    for source in complete[:1] or reversed(_METERS):
        watts |= {host: power + memory[source].get(host, 0.0) for host, power in packages[source].items()}
    return sorted(watts.items(), key=lambda item: -item[1]) if len(watts) > 1 else []


def _watts(counted: Mapping[str, Any], source: str, total: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for host, row in _rows(counted, source, total):
        sums[host] = sums.get(host, 0.0) + row["value"] / row["seconds"]
    return sums


def _absent(counted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield absent sources and lost values; those with a fix first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for host, reports in counted.items():
        for report in reports.values():
            reasons = [report["reason"]] if report["state"] != "ready" and "reason" in report else []
            if report["state"] == "ready":
                reasons += [f"{row['name']}: {row['absent']}" for row in report.get("values", ()) if "absent" in row]
                reasons += report.get("missing", {}).values()
            for reason in reasons:
                row = found.setdefault(
                    (report["title"], reason),
                    {"title": report["title"], "reason": reason, "hosts": [], "is_source": report["state"] != "ready"},
                )
                row |= {"fix": report.get("fix", ""), "guide": report.get("guide", "")}
                row["hosts"].append(host)
    for row in sorted(found.values(), key=lambda row: not row["fix"]):
        everywhere = len(row["hosts"]) == len(counted)
        yield {
            **row,
            "reason": _first_up(row["reason"]),
            "everywhere": everywhere and row["is_source"],
            "on": "" if everywhere else ", ".join(row["hosts"]),
        }


def _first_up(reason: str) -> str:
    """Return a reason as a sentence; names of devices and programs stay."""
    first, _, _ = reason.partition(" ")
    is_name = first in _PROGRAMS or any(letter.isdigit() or letter in "_/" for letter in first)
    return reason if is_name else reason[:1].upper() + reason[1:]
