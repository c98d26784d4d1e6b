"""Variables of an outer job, which submissions and trials must not inherit.

Standard library and Python 3.9 only: this runs with every agent.
"""

from __future__ import annotations

from collections.abc import Mapping

OF_JOBS = (
    "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SACCT_", "SINFO_", "SCANCEL_", "SCONTROL_", "SLURM_", "SLURMD_", "PBS_", "LSB_", "BSUB_",
    "LS_JOBPID", "LS_SUBCWD", "SGE_", "PE_", "FLUX_JOB_", "FLUX_KVS_", "FLUX_TASK_", "PALS_", "ALPS_", "JSM_",
    "OMPI_", "ORTE_", "PRTE_", "PMIX_", "PMI_", "PMI2_", "HYDRA_", "HYDI_", "MPIEXEC_", "I_MPI_",
)  # fmt: skip
"""Beginnings of names: options of the schedulers' commands, and what batch systems and launch commands set in a job."""
OF_SITES = (
    "SLURM_CONF", "SLURM_JWT", "PBS_CONF_FILE", "PBS_EXEC", "PBS_HOME", "PBS_SERVER", "PBS_DEFAULT",
    "SGE_ROOT", "SGE_CELL", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT", "SGE_ARCH", "I_MPI_ROOT",
)  # fmt: skip
"""Names among these that say where a scheduler or a library is, and stay."""
FORGET_JOB = (
    f"for name in $(env | sed -nE 's/^(({'|'.join(OF_JOBS)})[A-Za-z0-9_]*)=.*/\\1/p'); "
    f"do case $name in {'|'.join(OF_SITES)}) ;; *) unset $name ;; esac; done"
)
"""The same as a line of a POSIX shell."""


def without_job(variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without the variables of a job."""
    return {name: value for name, value in variables.items() if name in OF_SITES or not name.startswith(OF_JOBS)}
