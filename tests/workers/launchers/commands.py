"""A job whose launch command the tests know, and how they write commands."""

from __future__ import annotations

from pathlib import Path

from workers.launchers import Job
from workers.launchers.job import WRAPPER

WATER = Job(
    program=("lmp", "-in", "in.water"),
    ranks=4,
    ranks_per_host=2,
    hosts=("n1", "n2"),
    workdir=Path("/trial/work"),
    report_dir=Path("/trial/ranks"),
    environment={"OMP_NUM_THREADS": "1", "A": "two words"},
    btl_ports=(30000, 100),
    open_mpi=4,
)
SSH = {"hosts": ["n1", "n2", "n3"]}
RANK = ["/usr/bin/python3", "-I", "-S", str(WRAPPER), "/trial/ranks", "lmp", "-in", "in.water"]


def words(command: str) -> list[str]:
    return command.split()
