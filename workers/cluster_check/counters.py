"""Checks of the counter sources of hosts: what each reported there."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Final

from analysis.numbers import amount, plural
from workers.cluster_check.step import Step, ok, skipped, warning, with_sudo
from workers.hosts.counters.sources import SOURCES
from workers.launchers import Session
from workers.trial.counters import METERS

NAME = "Counters"
LACKING: Final = "Counters of devices that hosts lack"
IDLE_S: Final = 1.0
"""Between the reads of meters, in which no trial runs on the hosts."""


def counters(session: Session) -> list[Step]:
    """Return a step for each source that is there or has a fix, and one for others."""
    session.begin_counters()
    time.sleep(IDLE_S)
    counted = session.end_counters()
    steps, lacking = [], []
    for source in SOURCES:
        reports = {host: of_host[source.key] for host, of_host in counted.items() if source.key in of_host}
        ready = {host: report for host, report in reports.items() if report["state"] == "ready"}
        absent = {host: report for host, report in reports.items() if host not in ready}
        fix = next((report["fix"] for report in absent.values() if report.get("fix")), "")
        if ready or fix:
            facts = _idle_power(ready.values()) if source.key in METERS else {}
            steps.append(dataclasses.replace(_step(source.title, ready, absent, fix), facts=facts))
        elif absent:
            lacking.append(f"{source.title}: {_reason(absent)}.")
    if lacking:
        steps.append(dataclasses.replace(skipped(LACKING, "\n".join(lacking)), value=plural(len(lacking), "source")))
    return steps or [skipped(NAME, "Because no host reported any.")]


def _idle_power(reports: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the median power of packages and memory without a trial."""
    watts = []
    for report in reports:
        rows = [row for row in report.get("values", ()) if row["total"] in ("package_j", "dram_j")]
        if not rows or any("absent" in row or row["seconds"] < IDLE_S / 2 for row in rows):
            continue
        watts.append(sum(row["value"] / row["seconds"] for row in rows))
    middle = median(watts) if watts else 0.0
    return {"idle_watts_per_host": round(middle, 1)} if middle > 0 else {}


def _step(title: str, ready: Mapping[str, Any], absent: Mapping[str, Any], fix: str) -> Step:
    name = f"{NAME}: {title}"
    number = f"{len(ready)} of {plural(len(ready) + len(absent), 'host')}"
    details = dict.fromkeys(report.get("details", "") for report in ready.values())
    missing = dict.fromkeys(reason for report in ready.values() for reason in report.get("missing", {}).values())
    slowest = max((report.get("read_s", 0.0) for report in ready.values()), default=0.0)
    seen = [*details, *missing, *([f"{amount(slowest, 's', 2)} for a read"] if ready else [])]
    if not absent:
        return ok(name, number, f"{'; '.join(seen)}.")
    because = f"On {', '.join(absent)}: {_reason(absent)}."
    if fix:
        remedy = "The how-to “Let users read RAPL” names the risk and a permanent rule. This one holds until the next restart."
        words = " ".join([because, *([f"{'; '.join(seen)}."] if ready else [])])
        return warning(name, number, words, remedy, fix, at=with_sudo(host or "this machine" for host in absent))
    return warning(name, number, f"{because} {'; '.join(seen)}.")


def _reason(absent: Mapping[str, Any]) -> str:
    return "; ".join(dict.fromkeys(report.get("reason") or "it did not answer" for report in absent.values()))
