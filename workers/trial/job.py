"""What a trial launches: one place for the preview, which shows the command, and the run, which runs it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.specification.launch_plan import LaunchPlan
from workers.launchers import Job, Profile
from workers.launchers.limits import Confinement


def job_for(
    plan: LaunchPlan,
    *,
    hosts: Sequence[str],
    directory: Path,
    confinement: Confinement | None = None,
    profile: Profile | None = None,
) -> Job:
    """Return the launch of a plan by a trial with this directory, on the first of the session's ``hosts``."""
    return Job(
        program=plan.program,
        ranks=plan.ranks,
        ranks_per_host=plan.ranks // plan.hosts,
        hosts=tuple(hosts[: plan.hosts]),
        workdir=directory / "work",
        report_dir=directory / "ranks",
        environment=plan.environment,
        threads=plan.threads,
        fetched=(*plan.workload.outputs, *plan.workload.keeps),
        confinement=confinement or Confinement(),
        profile=profile,
    )
