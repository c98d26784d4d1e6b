"""Nodes of a scheduler: one batch job holds them while agents run on them.

The batch script ends with the first node's agent, so that nodes are returned without a worker: a killed worker ends its
connections, those end the agents, the first agent ends the job.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from analysis.numbers import plural
from experiments.cluster_kinds.scheduler import SchedulerKind, SchedulerSettings
from workers.errors import ClusterUnavailable, HostsLost, TrialFailed
from workers.hosts.programs import missing_programs
from workers.hosts.remote_agent import RemoteAgent
from workers.launchers.base import Launcher, Link, Reached, Rehearsal, Session, Tell, ignore_progress
from workers.launchers.job import Job
from workers.launchers.remote import HostsLauncher, RemoteSession
from workers.launchers.schedulers.queue import Queue
from workers.launchers.ssh_words import SSH_FAILED, why_unreached

AGENT_WAIT_S = 120
NAME_LENGTH = 15
"""Limit of a job's name in some versions of PBS."""
TEST_PENDING_S = 60.0
SSH_OPTIONS_WITH_VALUE = "|".join(f"-{letter}" for letter in "bceFiIJLlmoOpQRSwWDEB")
"""As patterns of a shell: the value is the next word (ssh(1))."""


@dataclasses.dataclass
class Allocation:
    """Nodes of one job, and since when. ``lasting``: for consecutive sessions."""

    queue: Queue[Any]
    job: str
    nodes: tuple[str, ...]
    scratch: Path
    lasting: bool = False
    facts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    since: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        """The job's name."""
        return job_name(self.scratch)

    def alive(self) -> bool:
        """Return whether the job has its nodes; a silent scheduler does not mean an end."""
        state = self.queue.states([self.job]).get(self.job)
        return state is None or state.phase == "running"

    def left_s(self) -> float | None:
        """Return the job's remaining time; None without a limit."""
        return self.queue.left_s(self.job, time.monotonic() - self.since)

    def close(self) -> None:
        self.queue.cancel(self.name)


class SchedulerLauncher(HostsLauncher):
    """Launch command on the first node of a job."""

    kind: ClassVar[SchedulerKind]
    queue_type: ClassVar[type[Queue[Any]]]
    programs: ClassVar[tuple[tuple[str, str], ...]]
    """Commands that the worker's machine needs without a login host, and their packages."""
    greeting: ClassVar[tuple[str, ...]]
    """A command that succeeds if the scheduler works."""
    settings: SchedulerSettings

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings)
        self.queue = self.queue_type(self.settings, self.kind.title)

    @abstractmethod
    def connection(self, allocation: Allocation, node: str) -> list[str]:
        """Return the command of an agent's connection. Pure."""

    @abstractmethod
    def remote_shell(self, allocation: Allocation) -> str:
        """Return the script by which the MPI library starts daemons: NODE COMMAND... Pure."""

    def script(self, scratch: Path, *, lasting: bool = False) -> str:
        """Return the batch script. Pure."""
        return "#!/bin/sh\n" + holding_script(scratch, lasting=lasting)

    def probe(self) -> list[str]:
        return missing_programs({"ssh": "openssh-client"} if self.settings.login else dict(self.programs))

    def reach(self) -> list[Reached]:
        """Contact the scheduler, through the login host if there is one."""
        begun = time.monotonic()
        login_host = self.settings.login.host if self.settings.login else "the worker's machine"
        try:
            answer = self.queue.run(self.greeting)
        except ClusterUnavailable as error:
            return [Reached(login_host, time.monotonic() - begun, problem=str(error))]
        took_s = time.monotonic() - begun
        if answer.status == 0:
            return [Reached(login_host, took_s)]
        if self.settings.login and answer.status == SSH_FAILED:
            return [why_unreached(login_host, took_s, answer.stderr, self.settings.login)]
        said = answer.stderr.splitlines()[-1:] or ["nothing"]
        sentence = f"{self.kind.title}'s commands do not work on {login_host}: {said[0].strip().rstrip('.')}."
        remedy = (
            f"Check that {self.greeting[0]} works there without a login shell."
            if self.settings.login
            else f"Fill in “Login host”, with an account on a host where {self.greeting[0]} works."
        )
        return [Reached(login_host, took_s, problem=sentence, remedy=remedy)]

    def for_test(self, reached: Sequence[str]) -> tuple[Launcher, int]:
        """Request two nodes, with a short wait."""
        limit_s = min(self.settings.pending_limit_s, TEST_PENDING_S)
        return type(self)({**self.settings.model_dump(exclude_unset=True), "pending_limit_s": limit_s}), 2

    def host_names(self, host_count: int) -> tuple[str, ...]:
        """Return placeholders: the scheduler names the nodes later."""
        return tuple(f"node{number}" for number in range(1, host_count + 1))

    def rehearse(self, job: Job) -> Rehearsal:
        rehearsal = super().rehearse(job)
        first, last = job.hosts[0], job.hosts[-1]
        nodes = f"{first} is the node" if first == last else f"{first} to {last} are the nodes"
        batch = self.queue.wrap(self.queue.submit_argv(len(job.hosts), "rankwire-RANDOM"))
        notes = [f"{nodes} that {self.kind.title} allocates and names.", *rehearsal.notes]
        return dataclasses.replace(rehearsal, preparation=[batch], notes=notes)

    def allocate(self, host_count: int, tell: Tell = ignore_progress, *, lasting: bool = False) -> Allocation:
        """Wait until a job has its nodes. Raises ClusterUnavailable."""
        if problems := self.probe():
            raise ClusterUnavailable(" ".join(problems))
        scratch = Path(self.settings.scratch, f"rankwire-{secrets.token_hex(6)}")
        job = self.queue.submit(host_count, self.script(scratch, lasting=lasting), job_name(scratch))
        try:
            nodes = self.queue.nodes(self.queue.wait_for_start(job, tell))
            if len(nodes) != host_count:
                difference = f"{self.kind.title} gave {plural(len(nodes), 'host')} to job {job}, not {host_count}"
                raise ClusterUnavailable(
                    f"{difference}. Check the number of slots of a host in the cluster's settings."
                )
            facts: dict[str, Any] = {"back_end": self.kind.title, f"{self.kind.name}_job": job}
            if partition := self.queue.partition(job):
                facts["partition"] = partition
        except BaseException:
            self.queue.cancel(job_name(scratch))
            raise
        return Allocation(self.queue, job, nodes, scratch, lasting, facts)

    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        if problems := self.refusals(link):
            raise ClusterUnavailable(" ".join(problems))
        allocation = self.allocate(host_count, tell)
        try:
            session = self.open_on(allocation, host_count)
        except BaseException:
            allocation.close()
            raise
        session.hold()
        return session

    def open_on(self, allocation: Allocation, host_count: int) -> SchedulerSession:
        """Open a session on the first nodes of a job. Raises ClusterUnavailable."""
        agents: dict[str, RemoteAgent] = {}
        try:
            for node in allocation.nodes[:host_count]:
                agents[node] = RemoteAgent(node, self.connection(allocation, node))
            return SchedulerSession(self, agents, allocation)
        except BaseException:
            for agent in agents.values():
                agent.close()
            raise


class SchedulerSession(RemoteSession):
    """Session that ends with its job."""

    launcher: SchedulerLauncher

    def __init__(self, launcher: SchedulerLauncher, agents: Mapping[str, RemoteAgent], allocation: Allocation) -> None:
        self.allocation = allocation
        self.scheduler_job = allocation.job
        super().__init__(
            launcher, agents, allocation.scratch, launcher.remote_shell(allocation), dict(allocation.facts)
        )

    def hold(self) -> None:
        """Return the nodes at the end, also if an agent does not answer."""
        self._stack.callback(self.allocation.close)

    def why_lost(self, error: TrialFailed) -> str:
        """Return the scheduler's reason, or the connection's if the job had not ended."""
        return self.launcher.queue.why_ended(self.allocation.job, str(error))

    def as_lost(self, error: TrialFailed) -> TrialFailed:
        """Convert errors to HostsLost if the job ended: its signal may come later."""
        if not isinstance(error, ClusterUnavailable) and not self.allocation.alive():
            return HostsLost(self.why_lost(error))
        return super().as_lost(error)


def job_name(scratch: Path) -> str:
    """Return the unique name of the job that uses a scratch directory."""
    return scratch.name[:NAME_LENGTH]


def holding_script(scratch: Path, *, lasting: bool = False) -> str:
    """Return the batch job, which holds the nodes while the first node's agent lives.

    An agent has two minutes to appear. A lasting job gives the next agent two minutes too: another session follows. The
    shell reads the file itself: between trials the agent kills every program with the directory in its command line.
    """
    wait = f"""\
waited=0
until alive; do
    waited=$((waited + 1))
    [ "$waited" -le {AGENT_WAIT_S} ] || exit 1
    sleep 1
done
while alive; do
    sleep 1
done
"""
    alive = 'alive() { read -r agent <"$noted" && kill -0 "$agent"; } 2>/dev/null'
    start = f'noted="{scratch}/agent-$(hostname).pid"\n{alive}\n'
    return start + (f"while :; do\n{wait}done\n" if lasting else wait)


def remote_shell_script(step: Sequence[str], command: str = 'sh -c "$*"') -> str:
    """Return a script that runs ``step`` for a node.

    It is called as `rsh [OPTION...] NODE COMMAND...`. Hydra passes ssh's options first (MPICH's -x, Intel MPI's -q -x),
    which are ignored.
    """
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
exec {words} {command}
"""
