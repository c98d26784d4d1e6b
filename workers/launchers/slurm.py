"""Nodes that Slurm allots: keepers run as steps of the job, and `srun` is how they reach each other."""

from __future__ import annotations

from experiments.cluster_kinds.scheduler import Slurm, SlurmSettings
from workers.hosts.remote_agent import start_argv
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher, agent_script
from workers.launchers.schedulers.slurm_queue import SlurmQueue, srun_argv


class SlurmLauncher(SchedulerLauncher):
    """`srun` from the first node to the others."""

    kind = Slurm()
    queue_type = SlurmQueue
    programs = (("sbatch", "slurm-client"), ("srun", "slurm-client"))
    greeting = ("sinfo", "--noheader", "--format=%P %D %T")
    settings: SlurmSettings

    def connection(self, allocation: Allocation, node: str) -> list[str]:
        return self.queue.wrap([*srun_argv(allocation.job, node), *start_argv(self.settings.python)])

    def agent(self, allocation: Allocation) -> str:
        return agent_script([*srun_argv(allocation.job, "$node"), "--input=none"])
