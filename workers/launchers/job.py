"""One launch: program, ranks, hosts, directories. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.cluster_kinds.settings import MPIRUN
from experiments.specification.launch_plan import LaunchPlan
from workers.launchers.limits import Limits

WRAPPER = Path(__file__).resolve().parent / "rank.py"
PYTHON = (
    "/usr/bin/python3"  # the system's own: it starts in a third of the time of a managed one, and exists on every node
)
# First port and number of ports of the MPI library's TCP transport: fixed, so that ports identify its traffic, and below the
# kernel's ephemeral ports (from 32768 on), which a capture on loopback would include otherwise.
BTL_PORTS = (20000, 1000)
PROFILE_OPTION = "--mpi-profile="  # of the wrapper


@dataclass(frozen=True)
class Launch:
    """Launch command `program` of a `library` of `workers.launchers.mpi`.

    `launcher`: mpirun of the library, or one of `workers.launchers.direct`.
    """

    library: str = "openmpi"
    program: str = MPIRUN
    launcher: str = MPIRUN

    @property
    def refusal(self) -> str:
        """Beginning of the sentence for hosts without the command."""
        if self.launcher != MPIRUN:
            return f"The command {self.program} of the launcher {self.launcher} is not installed"
        return f"The launch command {self.program} of the MPI library that the program was built for is not installed"


@dataclass(frozen=True)
class Profile:
    """Library that counts time inside MPI; its level is summary or trace."""

    level: str
    library: Path


@dataclass(frozen=True)
class Job:
    """One launch of the argv `program` for each rank.

    Ranks fill the hosts in order. If the session determined them: `interface`, between the hosts; `open_mpi`, major
    version of the hosts' Open MPI; `scheduler_job`, the job that holds the hosts. `threads`: of each rank. `limits`: on
    the worker's machine. `launch` None: not chosen yet. `transport`, `bind`, `distribution`: as the specification chose;
    empty: the cluster's. `fetched`: patterns of files in subdirectories to fetch from real hosts. `profile`: None for
    none.
    """

    program: tuple[str, ...]
    ranks: int
    ranks_per_host: int
    hosts: tuple[str, ...]
    workdir: Path
    report_dir: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    btl_ports: tuple[int, int] = BTL_PORTS
    wrapper: tuple[str, ...] = (PYTHON, "-I", "-S", str(WRAPPER))
    interface: str | None = None
    open_mpi: int | None = None
    scheduler_job: str = ""
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    launch: Launch | None = None
    transport: str = ""
    bind: str = ""
    distribution: str = ""
    fetched: tuple[str, ...] = ()
    profile: Profile | None = None

    def wrapped_program(self) -> list[str]:
        """Return the argv of one rank, in the wrapper that reports its usage."""
        counting = [f"{PROFILE_OPTION}{self.profile.level}:{self.profile.library}"] if self.profile else []
        return [*self.wrapper, *counting, str(self.report_dir), *self.program]


def job_of(
    plan: LaunchPlan,
    *,
    hosts: Sequence[str],
    directory: Path,
    limits: Limits | None = None,
    profile: Profile | None = None,
) -> Job:
    """Return the launch of a plan in a trial's directory, on the first ``hosts``."""
    return Job(
        program=plan.program,
        ranks=plan.ranks,
        ranks_per_host=plan.ranks // plan.hosts,
        hosts=tuple(hosts[: plan.hosts]),
        workdir=directory / "work",
        report_dir=directory / "ranks",
        environment=plan.environment,
        threads=plan.threads,
        transport=plan.launch.get("transport", ""),
        bind=plan.launch.get("bind", ""),
        distribution=plan.launch.get("distribution", ""),
        fetched=(*plan.workload.outputs, *plan.workload.keeps),
        limits=limits or Limits(),
        profile=profile,
    )
