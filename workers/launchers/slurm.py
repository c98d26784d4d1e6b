"""Nodes that Slurm allots: one batch job holds them for a session, keepers run on them as steps of that job.

The batch script ends as soon as the first node's keeper does, so that nodes go back even if nobody is left to give them
back: a killed worker ends its `srun` connections, those end the keepers, the first one ends the job.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.cluster_kinds.slurm import Slurm, SlurmSettings
from workers.errors import ClusterUnavailable
from workers.hosts.programs import missing_programs
from workers.hosts.remote_keeper import RemoteKeeper, start_argv
from workers.launchers.base import Launcher, Link, Reached, Rehearsal, Session, Tell, say_nothing
from workers.launchers.job import Job
from workers.launchers.remote import HostsLauncher, RemoteSession
from workers.launchers.slurm_queue import SlurmQueue, sbatch_argv, srun_argv
from workers.launchers.ssh_words import SSH_FAILED, why_unreached

KEEPER_WAIT_S = 120
TEST_PENDING_S = 60.0
SSH_OPTIONS_WITH_VALUE = "|".join(f"-{letter}" for letter in "bceFiIJLlmoOpQRSwWDEB")
"""As patterns of a shell: the value is the next word (ssh(1))."""


class SlurmLauncher(HostsLauncher):
    """mpirun on the first node; `srun` from there to the others."""

    kind = Slurm()
    settings: SlurmSettings

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings)
        self.queue = SlurmQueue(self.settings)

    def probe(self) -> list[str]:
        here = {"sbatch": "slurm-client", "srun": "slurm-client"}
        return missing_programs({"ssh": "openssh-client"} if self.settings.login else here)

    def reach(self) -> list[Reached]:
        """Slurm's controller, through the login host where there is one."""
        begun = time.monotonic()
        place = self.settings.login.host if self.settings.login else "the worker's machine"
        try:
            answer = self.queue.run(["sinfo", "--noheader", "--format=%P %D %T"])
        except ClusterUnavailable as error:
            return [Reached(place, time.monotonic() - begun, problem=str(error))]
        took_s = time.monotonic() - begun
        if answer.status == 0:
            return [Reached(place, took_s)]
        if self.settings.login and answer.status == SSH_FAILED:
            return [why_unreached(place, took_s, answer.complaints, self.settings.login)]
        said = answer.complaints.splitlines()[-1:] or ["nothing"]
        sentence = f"Slurm's commands do not work on {place}: {said[0].strip().rstrip('.')}."
        return [
            Reached(place, took_s, problem=sentence, remedy="Does sinfo work there by hand, without a login shell?")
        ]

    def for_test(self, reached: Sequence[str]) -> tuple[Launcher, int]:
        """Two nodes, and no day of waiting for them."""
        limit_s = min(self.settings.pending_limit_s, TEST_PENDING_S)
        return type(self)({**self.settings.model_dump(exclude_unset=True), "pending_limit_s": limit_s}), 2

    def host_names(self, host_count: int) -> tuple[str, ...]:
        """Placeholders: Slurm names the nodes when it allots them."""
        return tuple(f"node{number}" for number in range(1, host_count + 1))

    def rehearse(self, job: Job) -> Rehearsal:
        rehearsal = super().rehearse(job)
        first, last = job.hosts[0], job.hosts[-1]
        nodes = f"{first} is the node" if first == last else f"{first} to {last} are the nodes"
        batch = self.queue.wrap(sbatch_argv(self.settings, len(job.hosts)))
        notes = [f"{nodes} that Slurm allocates and names.", *rehearsal.notes]
        return dataclasses.replace(rehearsal, preparation=[batch], notes=notes)

    def connection(self, job: str, node: str) -> list[str]:
        """The command of a keeper's connection. Pure."""
        return self.queue.wrap([*srun_argv(job, node), *start_argv(self.settings.python)])

    def open(self, *, host_count: int, link: Link, tell: Tell = say_nothing) -> Session:
        if problems := [*self.probe(), *self.refusals(link)]:
            raise ClusterUnavailable(" ".join(problems))
        scratch = Path(self.settings.scratch, f"rankwire-{secrets.token_hex(6)}")
        job = self.queue.submit(host_count, holding_script(scratch))
        keepers: dict[str, RemoteKeeper] = {}
        try:
            nodes = self.queue.nodes(self.queue.wait_for_start(job, tell))
            for node in nodes:
                keepers[node] = RemoteKeeper(node, self.connection(job, node))
            facts: dict[str, Any] = {"back_end": "Slurm", "slurm_job": job}
            if partition := self.queue.partition(job):
                facts["partition"] = partition
            session = SlurmSession(self, keepers, scratch, agent_script(job), facts)
        except BaseException:
            for keeper in keepers.values():
                keeper.close()
            self.queue.cancel(job)
            raise
        session.hold(job)
        return session


class SlurmSession(RemoteSession):
    """Ends with its job."""

    launcher: SlurmLauncher
    job: str | None = None

    def hold(self, job: str) -> None:
        """Give the nodes back at the end, also if a keeper does not answer any more."""
        self.job = job
        self._stack.callback(self.launcher.queue.cancel, job)

    def why_lost(self, error: ClusterUnavailable) -> str:
        """Slurm's word about the job before that of the connection, unless the job had not ended before it."""
        return str(error) if self.job is None else self.launcher.queue.why_ended(self.job, str(error))


def holding_script(scratch: Path) -> str:
    """The batch job: hold the nodes as long as the keeper on this first one lives; give it two minutes to appear."""
    alive = f'kill -0 "$(cat {scratch}/keeper-"$(hostname)".pid)" 2>/dev/null'
    return f"""\
#!/bin/sh
waited=0
until {alive}; do
    waited=$((waited + 1))
    [ "$waited" -le {KEEPER_WAIT_S} ] || exit 1
    sleep 1
done
while {alive}; do
    sleep 1
done
"""


def agent_script(job: str) -> str:
    """How the MPI library on the first node starts its daemon on another: `agent [OPTION...] NODE COMMAND...`, as with ssh.

    Hydra takes every agent for an ssh and puts ssh's options first: MPICH's -x, Intel MPI's -q -x. They mean nothing to srun.
    """
    step = srun_argv(job, "$node")
    words = " ".join(word.replace("$node", '"$node"') for word in step)
    return f"""\
#!/bin/sh
while :; do
    case $1 in
    {SSH_OPTIONS_WITH_VALUE}) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
node=$1
shift
exec {words} --input=none sh -c "$*"
"""
