"""Whether the test-bed can run here, said plainly."""

from __future__ import annotations

import sys

import pytest

from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.errors import ClusterUnavailable
from workers.testbed import probe

MODULE = sys.modules["workers.testbed.probe"]


def test_it_has_no_complaint_on_this_machine() -> None:
    assert probe() == []
    assert launchers.get("local").probe() == []


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = "workers.hosts.programs.find_program"
    monkeypatch.setattr(programs, lambda program: None if program == "ethtool" else f"/usr/bin/{program}")
    assert probe() == ["The program ethtool is missing: install the package ethtool."]
    with pytest.raises(ClusterUnavailable, match="install the package ethtool"):
        launchers.get("testbed").open(host_count=1, link=PlainLink())


@pytest.mark.parametrize(
    ("closed", "advice"),
    [
        ({"kernel.unprivileged_userns_clone": "0"}, "sysctl -w kernel.unprivileged_userns_clone=1"),
        ({"kernel.apparmor_restrict_unprivileged_userns": "1"}, "kernel.apparmor_restrict_unprivileged_userns=0"),
        ({"user.max_user_namespaces": "0"}, "sysctl -w user.max_user_namespaces=15000"),
        ({}, "The kernel refuses the test-bed's namespaces: Operation not permitted."),
    ],
)
def test_a_forbidden_namespace_names_the_sysctl(
    closed: dict[str, str], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "_namespace_refusal", lambda: "Operation not permitted")
    monkeypatch.setattr(MODULE, "_sysctl", closed.get)
    (problem,) = probe()
    assert advice in problem


def test_root_needs_no_user_namespace_and_everybody_else_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "has_capabilities", lambda: True)
    assert "--user" not in MODULE.unshare_argv()
    monkeypatch.setattr(MODULE, "has_capabilities", lambda: False)
    assert MODULE.unshare_argv()[1:] == [
        *("--user", "--map-root-user", "--net", "--mount", "--uts", "--pid", "--ipc"),
        *("--fork", "--kill-child", "--mount-proc"),
    ]
