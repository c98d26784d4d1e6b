"""What a trial launches: one place for the preview, which shows the command, and the run, which runs it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import workloads
from experiments.spec import design
from workers.launchers import Job, Profile
from workers.launchers.confinement import Confinement


def job_for(
    workload: str,
    parameters: Mapping[str, Any],
    *,
    cluster: str,
    hosts: Sequence[str],
    directory: Path,
    confinement: Confinement | None = None,
    profile: Profile | None = None,
) -> Job:
    """Return the launch of a configuration by a trial with this directory, on the first of the session's ``hosts`` of a cluster."""
    threads = design.threads_of(workload, parameters)
    known = workloads.get(workload, parameters)
    return Job(
        program=design.program(workload, parameters, cluster),
        ranks=design.ranks_of(parameters),
        ranks_per_host=int(parameters["ranks_per_host"]),
        hosts=tuple(hosts[: int(parameters["hosts"])]),
        workdir=directory / "work",
        report_dir=directory / "ranks",
        environment={**design.environment(workload, parameters, cluster), "OMP_NUM_THREADS": str(threads)},
        threads=threads,
        fetched=(*known.outputs, *known.keeps),
        confinement=confinement or Confinement(),
        profile=profile,
    )
