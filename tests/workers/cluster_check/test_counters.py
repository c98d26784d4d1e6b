"""Counters in the check of a cluster: on some hosts, with a fix, on none."""

from __future__ import annotations

from typing import Any, cast

from workers.cluster_check.counters import counters
from workers.launchers import Session


class Counted:
    """A session whose hosts report these sources."""

    def __init__(self, **hosts: dict[str, Any]) -> None:
        self.hosts = hosts

    def begin_counters(self) -> None:
        pass

    def end_counters(self) -> dict[str, Any]:
        return self.hosts


def ready(title: str) -> dict[str, Any]:
    return {"state": "ready", "title": title, "details": "2 packages", "missing": {}, "read_s": 0.0001}


def absent(title: str, reason: str, fix: str = "") -> dict[str, Any]:
    return {"state": "absent", "title": title, "reason": reason, "fix": fix}


def test_counters_name_the_hosts_and_the_fix() -> None:
    root_only = absent("RAPL", "readable by root only", "chmod")
    session = Counted(
        n1={"rapl": ready("RAPL"), "ports": absent("Ports", "none")},
        n2={"rapl": root_only, "ports": absent("Ports", "none")},
    )
    rapl, others = counters(cast(Session, session))
    assert (rapl.state, rapl.value, rapl.commands) == ("warning", "1 of 2 hosts", ("chmod",))
    assert rapl.seen.startswith("On n2: readable by root only.")
    assert rapl.remedy.endswith("Run this command on n2, as an account with sudo.")
    assert (others.name, others.state, others.seen) == (
        "Counters of devices that hosts lack",
        "skipped",
        "Fabric ports: none.",
    )


def test_sources_that_hosts_lack_are_counted_and_listed_by_line() -> None:
    session = Counted(n1={"rapl": absent("RAPL", "none"), "ports": absent("Ports", "none")})
    (lacking,) = counters(cast(Session, session))
    assert (lacking.value, len(lacking.seen.splitlines())) == ("2 sources", 2)


def test_meters_state_the_power_of_a_host_without_a_trial() -> None:
    def meter(package_w: float, **more: Any) -> dict[str, Any]:
        rows = [
            {"total": total, "value": watts * 1.5, "seconds": 1.5}
            for total, watts in (("package_j", package_w), ("dram_j", 8.0))
        ]
        return {**ready("RAPL"), "values": [{**rows[0], **more}, rows[1]]}

    session = Counted(**{host: {"rapl": meter(watts)} for host, watts in (("n1", 140.0), ("n2", 90.0), ("n3", 141.0))})
    (step,) = counters(cast(Session, session))
    assert step.facts == {"idle_watts_per_host": 148.0}, "the median: a busy host moves it little"
    (lost,) = counters(cast(Session, Counted(n1={"rapl": meter(140.0, absent="it was reset")})))
    assert lost.facts == {}
    cores = {**ready("RAPL"), "values": [{"total": "core_j", "value": 60.0, "seconds": 1.5}]}
    (partly,) = counters(cast(Session, Counted(n1={"rapl": meter(140.0)}, n2={"rapl": cores})))
    assert partly.facts == {"idle_watts_per_host": 148.0}, "a host without these meters is skipped"


def test_counters_that_all_hosts_have_are_well() -> None:
    (step,) = counters(cast(Session, Counted(n1={"rapl": ready("RAPL")}, n2={"rapl": ready("RAPL")})))
    assert (step.state, step.value) == ("ok", "2 of 2 hosts")


def test_reports_that_lack_details_are_shown_without() -> None:
    session = Counted(n1={"rapl": {"state": "ready", "title": "RAPL"}})
    (rapl,) = counters(cast(Session, session))
    assert (rapl.state, rapl.value) == ("ok", "1 of 1 host")
