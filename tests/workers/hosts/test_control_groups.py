"""In a delegated group each trial has a control group with limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workers.hosts.control_groups import Tree
from workers.agent import cgroup
from workers.agent.cgroup import Group
from workers.launchers.limits import DiskUse, Limits

LIMITS = {"memory_bytes": 400 << 20, "processes": 300}
NOBODY = 2**22 + 1
"""No process has this number: the kernel's are smaller."""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    return Tree(tmp_path, monkeypatch)


def made(tree: Tree) -> Group:
    group = Group.make(LIMITS, tree.worker)
    assert group is not None
    return group


def test_group_is_next_to_the_workers_with_both_limits_and_takes_members(tree: Tree) -> None:
    group = made(tree)
    assert group.path.parent == tree.parent
    assert (tree.parent / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert (group.path / "memory.max").read_text() == str(400 << 20)
    assert (group.path / "pids.max").read_text() == "300"
    group.join()
    assert (group.path / "cgroup.procs").read_text() == "0"


def test_two_sandboxes_of_one_agent_have_separate_groups(tree: Tree) -> None:
    first, second = made(tree), made(tree)
    first.remove()
    second.join()
    assert tree.groups() == [second.path]


def test_groups_of_killed_agents_are_removed_and_those_of_living_ones_stay(tree: Tree) -> None:
    waiting = made(tree)
    for remaining in (f"rankwire-trial-{NOBODY}-1", f"rankwire-trial-{NOBODY}", "rankwire-trial-odd"):
        (tree.parent / remaining).mkdir()
    in_use = tree.parent / f"rankwire-trial-{NOBODY}-2"
    in_use.mkdir()
    (in_use / "cgroup.procs").write_text(str(os.getpid()))
    stored = {waiting.path, made(tree).path, in_use, tree.parent / "rankwire-trial-odd"}
    assert set(tree.groups()) == stored


def test_empty_group_is_removed_and_removal_is_idempotent(tree: Tree) -> None:
    group = made(tree)
    group.remove()
    group.remove()
    assert not tree.groups()


@pytest.mark.parametrize(
    ("file", "counted", "said"),
    [
        (
            "memory.events",
            "low 0\noom 3\noom_kill 1\n",
            "It took more than the 400 MiB of memory that a trial may have: RANKWIRE_TRIAL_MEMORY_MIB sets this.",
        ),
        ("pids.events", "max 7\n", "It started all of the 300 processes that a trial may have at once."),
        ("memory.events", "low 9\noom 0\noom_kill 0\n", ""),
    ],
)
def test_refusal_of_the_kernel_is_reported_by_the_trial(tree: Tree, file: str, counted: str, said: str) -> None:
    group = made(tree)
    (group.path / file).write_text(counted)
    use = {"processes": 2, "memory_bytes": 0, "refused": group.events()}
    assert Limits(**LIMITS).exceeded(use, DiskUse(0, 0, 0)) == said


def test_without_both_controllers_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path, monkeypatch, controllers="cpu pids")
    assert Group.make(LIMITS, tree.worker) is None
    assert not tree.groups()


def test_a_limit_that_is_refused_leaves_no_group(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text = Path.write_text

    def write(path: Path, text: str) -> int:
        if path.name == "pids.max":
            raise PermissionError(path)
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", write)
    assert Group.make(LIMITS, tree.worker) is None
    assert not tree.groups()


def test_a_group_is_made_without_the_cpu_controller_if_the_kernel_refuses_it(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text, refused = Path.write_text, []

    def write(path: Path, text: str) -> int:
        if text == "+cpu":
            refused.append(path)
            raise PermissionError(path)
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", write)
    assert made(tree).path.exists()
    assert refused == [tree.parent / "cgroup.subtree_control"]


@pytest.mark.parametrize("line", ["0::/system.slice/rankwire.service/worker", "0::/"])
def test_it_knows_the_workers_own_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    expected = tmp_path / line.removeprefix("0::/")
    expected.mkdir(parents=True, exist_ok=True)
    (expected / "cgroup.procs").write_text("")
    said = tmp_path / "proc-self-cgroup"
    said.write_text(f"4:memory:/other\n{line}\n")
    monkeypatch.setattr(cgroup, "MOUNTED", (tmp_path / "not-mounted", tmp_path))
    assert cgroup.own_group(said) == (expected if expected != tmp_path else None)
