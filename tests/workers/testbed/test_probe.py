"""Requirements of the test-bed on this machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.workers.clusters.trials import PlainLink
from workers import launchers
from workers.compiled import COMPILER_MISSING
from workers.errors import ClusterUnavailable
from workers.testbed.probe import probe

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
    monkeypatch.setattr(MODULE, "_refusal", lambda *_: "Operation not permitted")
    monkeypatch.setattr(MODULE, "_sysctl", closed.get)
    (problem,) = probe()
    assert advice in problem


def test_only_root_needs_no_user_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "has_capabilities", lambda: True)
    assert "--user" not in MODULE.unshare_argv()
    monkeypatch.setattr(MODULE, "has_capabilities", lambda: False)
    assert MODULE.unshare_argv()[1:] == [
        *("--user", "--map-root-user", "--net", "--mount", "--uts", "--pid", "--ipc"),
        *("--fork", "--kill-child", "--mount-proc"),
    ]


@pytest.fixture
def answer_probes(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Let the next probes end with these statuses; collect their commands."""

    def prepare(*ends: int | Exception) -> list[list[str]]:
        request: list[list[str]] = []
        remaining = iter(ends)

        def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            request.append(argv)
            end = next(remaining)
            if isinstance(end, Exception):
                raise end
            return subprocess.CompletedProcess(
                argv, end, "", "unshare failed: No space left on device" if end > 0 else ""
            )

        monkeypatch.setattr(MODULE, "_granted", set())
        monkeypatch.setattr(subprocess, "run", run)
        return request

    return prepare


LATE = subprocess.TimeoutExpired("unshare", 10.0)


def test_a_probe_that_was_killed_or_starved_is_no_refusal_and_is_sent_again(
    answer_probes: Callable[..., list[list[str]]],
) -> None:
    request = answer_probes(-9, LATE, 0)
    assert probe() == []
    assert len(request) == 3
    assert probe() == []  # what the kernel grants is asked once
    assert len(request) == 3


def test_probes_that_are_killed_again_and_again_end_with_a_sentence_and_are_not_remembered(
    answer_probes: Callable[..., list[list[str]]],
) -> None:
    request = answer_probes(-9, LATE, -15, 0)
    with pytest.raises(ClusterUnavailable, match="could not be found out: `true` was killed by signal 9, then did not"):
        launchers.get("testbed").open(host_count=1, link=PlainLink())
    assert len(request) == 3
    assert probe() == []


def test_a_refusal_of_the_moment_is_not_remembered(answer_probes: Callable[..., list[list[str]]]) -> None:
    answer_probes(1, 0)
    (problem,) = probe()
    assert "No space left on device" in problem
    assert probe() == []


def test_a_killed_probe_of_an_emulator_is_no_refusal_either(answer_probes: Callable[..., list[list[str]]]) -> None:
    answer_probes(-9, 0, 1)
    result = MODULE.emulators()
    assert result["netem"] == ""
    assert result["nftables"]


def test_a_relay_that_cannot_be_made_says_what_to_install(
    answer_probes: Callable[..., list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_probes(0, 0)
    monkeypatch.setattr(MODULE, "_tun_problem", lambda: "")
    monkeypatch.setattr("workers.compiled.Library.obstacle", lambda _: COMPILER_MISSING)
    assert MODULE.emulators()["relay"] == (
        "The relay cannot be made: the compiler is missing: install the Python package ziglang."
    )
