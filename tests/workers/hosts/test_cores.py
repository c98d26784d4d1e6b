"""Cores of a machine: hardware threads of one core count once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from experiments.common import processors
from experiments.common.processors import Core, core_count, cores
from tests.workers.hosts.trees import write_processors


def test_cores_are_read_by_socket_and_numa_node_with_their_hardware_threads(tmp_path: Path) -> None:
    system = write_processors(tmp_path, sockets=2, numa_nodes=2, cores=2, threads=2)
    assert cores(system) == [
        *(Core(0, 0, (0, 8)), Core(0, 0, (1, 9)), Core(0, 1, (2, 10)), Core(0, 1, (3, 11))),
        *(Core(1, 2, (4, 12)), Core(1, 2, (5, 13)), Core(1, 3, (6, 14)), Core(1, 3, (7, 15))),
    ]
    (system / "cpu/cpu12/topology/thread_siblings_list").unlink()  # offline: the kernel shortens its sibling's list
    (system / "cpu/cpu4/topology/thread_siblings_list").write_text("4\n")
    assert Core(1, 2, (4,)) in cores(system)


def test_core_count_counts_cores_within_the_usable_hardware_threads(tmp_path: Path) -> None:
    system = write_processors(tmp_path, sockets=2, cores=2, threads=2)
    assert core_count(range(8), system) == 4
    assert core_count({0, 4}, system) == 1
    assert core_count({0, 2, 5}, system) == 3
    assert core_count({0, 9}, system) == 2, "without a topology each hardware thread counts"
    assert core_count({0, 4}, tmp_path / "none") == 2
    assert cores(tmp_path / "none") == []


def test_describe_returns_the_usable_cpus_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = processors.describe()
    assert set(here["allowed"]) == os.sched_getaffinity(0)
    assert set(here["allowed"]) <= {cpu for _, _, cpus in here["cores"] for cpu in cpus}
    monkeypatch.setattr(processors, "SYSTEM", write_processors(tmp_path, cores=1, threads=8))
    assert processors.describe()["cores"] == [[0, 0, tuple(range(8))]]
    assert processors.usable_cores() == 1
