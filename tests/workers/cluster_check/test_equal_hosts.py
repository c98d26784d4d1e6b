"""The check says in what hosts differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workers.cluster_check.hosts import equal_hosts

LARGER = {"cpu": {"cores": 64, "model": "EPYC"}, "kernel": "6.1.0"}
HIDDEN = {"interface": {"mtu": 1400}, "variables": {"HOME": "/x"}, "memory_bytes": 7}
"""Differences with steps of their own, and those of equal hosts."""


@pytest.mark.parametrize(
    ("others", "state", "value"),
    [
        ({}, "ok", "Yes"),
        ({"n2": HIDDEN}, "ok", "Yes"),
        ({"n2": LARGER | HIDDEN}, "warning", "n2 differs"),
        ({"n2": LARGER, "n3": {"mpi": "none"}}, "warning", "n2, n3 differ from n1"),
    ],
)
def test_hosts_that_differ_are_named_with_their_facts(others: dict[str, Any], state: str, value: str) -> None:
    session: Any = SimpleNamespace(remote_agents={"n1": None, "n2": None, "n3": None}, hosts=("n1", "n2", "n3"))
    step = equal_hosts(session, {"memory_bytes": 8, "other_hosts": others})
    assert (step.state, step.value) == (state, value)
    assert ("n2: cpu.cores 64, cpu.model EPYC, kernel 6.1.0" in step.seen) == (
        others.get("n2", {}).keys() >= LARGER.keys()
    )


def test_one_machine_has_nothing_to_compare() -> None:
    session: Any = SimpleNamespace(remote_agents={})
    assert equal_hosts(session, {}).state == "skipped"
