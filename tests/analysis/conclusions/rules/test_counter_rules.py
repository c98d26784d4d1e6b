"""Findings from counters of hosts, ranked by what they explain."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.conclusions import Finding
from analysis.conclusions.rules.report import find
from tests.analysis.scaling.studies import simulated, usl_time
from tests.words import plain


def findings_of(rule: str, **metrics: float) -> list[Finding]:
    columns: dict[str, Any] = {"elapsed_s": usl_time(300, 0.3, 0.04)}
    columns |= {name: (lambda n, value=value: value) for name, value in metrics.items()}
    return [finding for finding in find(simulated(columns, noise=0.01)).findings if finding.rule == rule]


@pytest.mark.parametrize(
    ("rule", "metrics", "quiet", "words"),
    [
        ("port_saturated", {"fabric_peak_share": 0.97}, {"fabric_peak_share": 0.6}, "A fabric port reached"),
        (
            "port_saturated",
            {"ethernet_peak_share": 0.97},
            {"ethernet_peak_share": 0.6},
            "An Ethernet interface reached",
        ),
        (
            "networks_disagree",
            {"networks_per_mpi_byte": 0.4, "mpi_between_hosts_bytes": 1e9},
            {"networks_per_mpi_byte": 1.06, "mpi_between_hosts_bytes": 1e9, "mpi_collective_bytes": 0.0},
            "Ports and interfaces sent 40 %",
        ),
        (
            "networks_disagree",
            {"networks_per_mpi_byte": 9.0, "mpi_between_hosts_bytes": 1e9, "mpi_collective_bytes": 1e6},
            {"networks_per_mpi_byte": 9.0, "mpi_between_hosts_bytes": 1e9, "mpi_collective_bytes": 1e9},
            "Ports and interfaces sent 8 GB more",
        ),
        ("fabric_congestion", {"fabric_wait_share": 0.2}, {"fabric_wait_share": 0.01}, "Fabric ports had data"),
        (
            "link_errors",
            {"fabric_worst_port_errors": 12.0, "fabric_errors": 13.0},
            {"fabric_errors": 0.0},
            "Fabric ports counted",
        ),
        ("throttled_host", {"throttle_events": 3.0}, {"throttle_events": 0.0}, "Heat slowed cores"),
        (
            "uneven_power",
            {"power_host_max_w": 150.0, "power_host_min_w": 100.0},
            {"power_host_max_w": 105.0, "power_host_min_w": 100.0},
            "One host draws",
        ),
    ],
)
def test_rule_reports_its_counter_and_nothing_else(
    rule: str, metrics: dict[str, float], quiet: dict[str, float], words: str
) -> None:
    (finding,) = findings_of(rule, **metrics)
    assert plain(finding.statement).startswith(words)
    assert findings_of(rule, **quiet) == []
    assert findings_of(rule) == []


def test_congestion_explains_its_share_of_the_time_in_mpi() -> None:
    (finding,) = findings_of("fabric_congestion", fabric_wait_share=0.2, mpi_on_cpu_share=0.1, mpi_blocked_share=0.4)
    assert finding.explains == pytest.approx(0.1, rel=0.05)
    (unprofiled,) = findings_of("fabric_congestion", fabric_wait_share=0.2)
    assert unprofiled.explains is None
