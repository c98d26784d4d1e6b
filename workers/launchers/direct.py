"""Launch commands of batch systems, which start ranks without mpirun. Pure.

`env` sets the variables of ranks behind them: of SLURM_... and PMIX_... they would take some for their own options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from experiments.cluster_kinds.settings import MPIRUN
from experiments.specification.transport import Transport
from workers.launchers import openmpi
from workers.launchers.job import Job, Launch
from workers.launchers.mpi import ClusterProperties, variables_of_ranks

PROGRAMS: Final = {"srun-pmix": "srun", "srun-pmi2": "srun", "flux-run": "flux", "pals": "mpiexec"}
_CPU_BIND: Final = {"core": "cores", "socket": "sockets", "numa": "ldoms", "hwthread": "threads", "none": "none"}
"""Words of srun; ldoms are NUMA nodes."""
_FLUX_AFFINITY: Final = {"core": "per-task", "none": "off"}
_PALS_BIND: Final = {"core": "core", "socket": "socket", "numa": "numa", "hwthread": "thread", "none": "none"}
_NOT_KEPT: Final[Mapping[str, Mapping[str, str]]] = {
    "flux-run": dict.fromkeys(("socket", "numa", "hwthread"), "flux run binds ranks to cores or not at all"),
    "pals": {"cyclic": "PALS fills one host after another"},
}


def srun(job: Job, cluster: ClusterProperties, interface: str) -> list[str]:
    """Return a step of the job, beside those of the agents."""
    bind, distribution = cluster.placement
    if bind == "default" and cluster.shared_cores:
        bind = "none"
    within_host = ":block" if bind in _CPU_BIND else ""
    return [
        *(cluster.launch.program, f"--jobid={job.scheduler_job}", "--overlap", "--mem=0", "--kill-on-bad-exit=1"),
        *(f"--nodes={len(job.hosts)}", f"--nodelist={','.join(job.hosts)}"),
        *(f"--ntasks={job.ranks}", f"--ntasks-per-node={job.ranks_per_host}", f"--mpi={interface}"),
        f"--distribution={distribution}{within_host}",
        *(("--overcommit",) if cluster.shared_cores else ()),
        *((f"--cpus-per-task={job.threads}",) if job.threads > 1 and not cluster.shared_cores else ()),
        *(("--threads-per-core=1",) if job.threads > 1 and bind == "core" else ()),
        *((f"--cpu-bind={_CPU_BIND[bind]}",) if bind in _CPU_BIND else ()),
        *cluster.transport.arguments,
        *_ranks(job, cluster),
    ]


def flux_run(job: Job, cluster: ClusterProperties) -> list[str]:
    """Return a job of the Flux instance that the batch job is."""
    program, (bind, distribution) = cluster.launch.program, cluster.placement
    if bind == "default" and (cluster.shared_cores or job.threads > 1):
        bind = "none"
    return [
        *(program, "proxy", job.scheduler_job, program, "run", "--exclusive"),
        *(f"--nodes={len(job.hosts)}", f"--ntasks={job.ranks}", f"--cores-per-task={job.threads}"),
        f"--requires=hosts:{','.join(job.hosts)}",
        *(("--taskmap=cyclic",) if distribution == "cyclic" else ()),
        *((f"--setopt=cpu-affinity={_FLUX_AFFINITY[bind]}",) if bind in _FLUX_AFFINITY else ()),
        *cluster.transport.arguments,
        *_ranks(job, cluster),
    ]


def pals(job: Job, cluster: ClusterProperties) -> list[str]:
    """Return mpiexec of HPE's PALS, which reads PBS' variable of the job."""
    bind, threads = cluster.placement.bind, job.threads
    target = "depth" if bind == "core" and threads > 1 else _PALS_BIND.get(bind)
    return [
        *("env", f"PBS_JOBID={job.scheduler_job}", cluster.launch.program),
        *("-n", str(job.ranks), "--ppn", str(job.ranks_per_host), "--hosts", ",".join(job.hosts)),
        *(("--depth", str(threads)) if threads > 1 else ()),
        *(("--cpu-bind", target) if target is not None else ()),
        *cluster.transport.arguments,
        *_ranks(job, cluster),
    ]


COMMANDS: Final[Mapping[str, Callable[[Job, ClusterProperties], list[str]]]] = {
    "srun-pmix": partial(srun, interface="pmix"),
    "srun-pmi2": partial(srun, interface="pmi2"),
    "flux-run": flux_run,
    "pals": pals,
}


def refusals(launch: Launch, transport: Transport, placement: openmpi.Placement) -> list[str]:
    """Return what a launcher cannot keep of placement and transport, in sentences."""
    if launch.launcher == MPIRUN:
        return []
    not_kept = _NOT_KEPT.get(launch.launcher, {})
    unplaced = [
        f"The launcher {launch.launcher} cannot keep “{word}”: {not_kept[word]}. Choose another word, or the launcher mpirun."
        for word in placement
        if word in not_kept
    ]
    of_mpirun = next((word for word in transport.arguments if word in openmpi.PARAMETER_OPTIONS), None)
    if of_mpirun is None:
        return unplaced
    return [
        *unplaced,
        f"The argument {of_mpirun} of the transport {transport.name} is mpirun's: {launch.launcher} does not know it. "
        "Write a variable instead, such as OMPI_MCA_pml=ucx.",
    ]


def _ranks(job: Job, cluster: ClusterProperties) -> list[str]:
    """Return the program of a rank behind the variables of library, transport and job."""
    variables = variables_of_ranks(job, cluster)
    return ["env", *(f"{name}={variables[name]}" for name in sorted(variables)), *job.wrapped_program()]
