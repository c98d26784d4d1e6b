"""Counters on a trial's page: networks, energy, others, and absent sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import METRICS
from analysis.numbers import SHARE
from experiments.files import read_counters
from experiments.models import Trial

_ENERGY: Final = (
    ("energy_j", "Packages, memory, used GPUs"),
    ("energy_package_j", "Packages"),
    ("energy_dram_j", "Memory"),
    ("energy_gpu_j", "GPUs, idle ones included"),
    ("energy_host_j", "Whole hosts"),
    ("energy_host_estimated_j", "Whole hosts"),
)
_NETWORKS: Final[Mapping[str, tuple[str, str, str]]] = {
    "ports": ("fabric_sent_bytes", "fabric_received_bytes", "fabric_mpi_share"),
    "slingshot": ("slingshot_sent_bytes", "slingshot_received_bytes", ""),
    "ethernet": ("ethernet_sent_bytes", "ethernet_received_bytes", "ethernet_mpi_share"),
}
_LISTED: Final = ("fabric", "processor", "gpu", "files")
_SEEN: Final = 0.01
"""A smaller share of the messages is not named."""
_IN_WORDS: Final = {
    "fabric_mpi_share": "over the fabric",
    "ethernet_mpi_share": "over Ethernet",
    "memory_mpi_share": "in shared memory",
}
Row = Mapping[str, Any]


def counters_panel(trial: Trial) -> dict[str, Any] | None:
    """Return what the counters of a trial's hosts reported; None without them."""
    counted = read_counters(trial)
    if counted is None:
        return None
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    absent = list(_absent(counted))
    keys = {key for reports in counted.values() for key in reports}
    in_tables = {name for of_network in _NETWORKS.values() for name in of_network}
    return {
        "verdict": _verdict(values),
        "hosts": len(counted),
        "ready": len(keys) - sum(row["everywhere"] for row in absent),
        "sources": len(keys),
        "networks": _networks(counted, values),
        "energy": _energy(counted, values),
        "by_host": _by_host(counted),
        "others": [
            {"id": name, "label": metric.label, "unit": metric.unit, "value": values[name]}
            for name, metric in METRICS.items()
            if metric.section in _LISTED and name in values and name not in in_tables
        ],
        "absent": absent,
    }


def _verdict(values: Mapping[str, float]) -> str:
    """Return which networks carried the messages, the largest first."""
    shares = sorted(((values[name], words) for name, words in _IN_WORDS.items() if name in values), reverse=True)
    named = [f"{numbers.amount(share, SHARE, 2)} {words}" for share, words in shares if share >= _SEEN]
    unused = [words for share, words in shares if share < _SEEN and words != _IN_WORDS["memory_mpi_share"]]
    if not named:
        return ""
    return f"Bytes of messages: {', '.join(named)}{f'; not {unused[0]}' if unused else ''}."


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
                device = devices.setdefault(row["device"], {"sent": 0.0, "received": 0.0, "peak": 0.0})
                device[field] += row["value"]
                if row["limit"]:
                    device["peak"] = max(device["peak"], row["peak"] / row["limit"])
        details = next((r[source].get("details", "") for r in counted.values() if source in r), "")
        rows += [
            {"name": name, "trust": "measured", "share": values.get(share), "details": details, **device}
            for name, device in devices.items()
        ]
    return rows


def _energy(counted: Mapping[str, Any], values: Mapping[str, float]) -> list[dict[str, Any]]:
    seconds = [
        row["seconds"]
        for reports in counted.values()
        for report in reports.values()
        for row in report.get("values", ())
        if row["total"].endswith("_j")
    ]
    return [
        {
            "id": name,
            "label": label,
            "joules": values[name],
            "watts": values[name] / max(seconds),
            "trust": "estimated" if "estimated" in name else "measured",
        }
        for name, label in _ENERGY
        if name in values and seconds
    ]


def _by_host(counted: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the mean power of packages and memory of each host, the largest first."""
    watts: dict[str, float] = {}
    for source in ("cray", "rapl"):  # RAPL where both are
        for total in ("package_j", "dram_j"):
            sums: dict[str, float] = {}
            for host, row in _rows(counted, source, total):
                sums[host] = sums.get(host, 0.0) + row["value"] / row["seconds"]
            if total == "package_j":
                watts |= sums
            else:
                watts |= {host: watts[host] + power for host, power in sums.items() if host in watts}
    return sorted(watts.items(), key=lambda item: -item[1]) if len(watts) > 1 else []


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
            "everywhere": everywhere and row["is_source"],
            "on": "" if everywhere else ", ".join(row["hosts"]),
        }
