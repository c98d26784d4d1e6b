"""Cores of a machine: hardware threads of one core count once."""

from __future__ import annotations

from pathlib import Path

from workers.agent.machine import physical_cores


def test_cores_are_counted_within_the_usable_hardware_threads(tmp_path: Path) -> None:
    for cpu, (socket, core) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1), (1, 0), (1, 1)]):
        directory = tmp_path / f"cpu{cpu}"
        directory.mkdir()
        (directory / "physical_package_id").write_text(f"{socket}\n")
        (directory / "core_id").write_text(f"{core}\n")
    topology = f"{tmp_path}/cpu{{}}/{{}}"
    assert physical_cores(range(8), topology) == 4
    assert physical_cores({0, 4}, topology) == 1
    assert physical_cores({0, 2, 5}, topology) == 3
    assert physical_cores({0, 9}, topology) == 2, "without a topology each hardware thread counts"
