"""Hosts that cannot be reached: one step for each reason, with its fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.cluster_kinds.ssh import SshSettings
from experiments.models import Cluster, ClusterTest
from tests.experiments import factories
from tests.workers.cluster_check.steps import steps_by_name
from workers import account
from workers.cluster_check.run import steps_of
from workers.cluster_check.step import Step
from workers.launchers.ssh_words import why_unreached

NO_SSHD = {"hosts": ["127.0.0.1", "127.0.0.2"], "port": 1}


def test_a_missing_key_is_reported_before_and_once_for_all_hosts(tmp_path: Path) -> None:
    key = str(tmp_path / "nokey")
    before: list[Step] = []
    steps = steps_of("ssh", {**NO_SSHD, "key": key}, lambda trying, steps: before.extend(steps))
    assert (before[0].state, before[0].value) == ("warning", "Private key not found")
    assert key in before[0].seen
    (reach,) = [step for step in steps if step.state != "skipped"]
    assert reach.value == "2 of 2 failed"
    assert reach.seen.count(key) == 1
    assert reach.seen.endswith("The same holds for 127.0.0.2.")
    assert reach.commands == (f"ls -l {key}",)


def test_a_missing_ssh_configuration_is_named_with_a_command_that_shows_it(tmp_path: Path) -> None:
    config = str(tmp_path / "noconfig")
    settings, reach = steps_of("ssh", {**NO_SSHD, "config": config}, lambda trying, steps: None)[:2]
    assert settings.seen == f"The worker runs {account.in_words()}."
    assert f"the ssh configuration {config} cannot be opened: No such file" in reach.seen
    assert "“ssh configuration”" in reach.remedy
    assert reach.commands == (f"ls -l {config}",)
    wrong = SshSettings(hosts=("n1",), config="/etc/ssh/of lab")
    assert why_unreached("n1", 1.0, "Connection refused", wrong).commands == ("ssh -F '/etc/ssh/of lab' n1",)


def test_a_key_of_an_unknown_user_is_reported() -> None:
    steps = steps_of("ssh", {**NO_SSHD, "key": "~no-such-user/key"}, lambda trying, steps: None)
    assert (steps[0].state, steps[0].value) == ("warning", "Private key not found")
    assert steps[0].commands == ("ls -l ~no-such-user/key",), "a shell expands the home"


def test_hosts_that_fail_for_different_reasons_have_one_step_with_a_fix_for_each() -> None:
    hosts = [*NO_SSHD["hosts"], "no-such-host.invalid"]  # type: ignore[misc]
    steps = steps_of("ssh", {**NO_SSHD, "hosts": hosts}, lambda trying, steps: None)
    assert steps[0].state == "ok"
    (reach,) = [step for step in steps if step.name == "Reach"]
    assert reach.value == "3 of 3 failed"
    refused, unresolved = reach.seen.splitlines()
    assert "sshd" in refused
    assert "no-such-host.invalid" in unresolved
    assert reach.remedy == f"Run these commands {account.in_words()}."
    assert reach.commands[2:] == ("getent hosts no-such-host.invalid",)


@pytest.mark.django_db
def test_a_step_that_failed_for_several_reasons_is_named_once() -> None:
    factories.load_defaults()
    rack = Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["n1"]})
    failed = {"name": "Reach", "state": "problem", "value": "", "seen": "", "remedy": "", "commands": []}
    ClusterTest.ask(rack)
    test = ClusterTest.begin(rack, "host:1:1")
    assert test is not None
    test.end([failed, failed])
    assert ClusterTest.failure_of(rack) == "The last check of Rack failed: Reach."


def test_failing_scheduler_without_a_login_host_asks_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "sacct"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho 'sinfo: fatal: Could not establish a configuration source' >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reach = steps_by_name("slurm", {})["Reach"]
    assert "configuration source" in reach.seen
    assert "“Login host”" in reach.remedy
