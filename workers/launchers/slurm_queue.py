"""What Slurm says about jobs: the exact commands, and their answers read. No answer is no answer, never a success."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.numbers import amount
from experiments.cluster_kinds.slurm import SlurmSettings
from workers.errors import ClusterUnavailable

COMMAND_LIMIT_S = 30.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 20.0
SILENCE_LIMIT_S = 120.0
END_LIMIT_S = 10.0  # until the controller has noticed what a broken connection told us first

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "STAGE_OUT", "SUSPENDED"}
RUNNING = {"RUNNING", "COMPLETING", "SIGNALING", "STOPPED"}
# Reasons of a pending job that waiting does not cure (squeue(1), JOB REASON CODES).
# Limits of what runs at the same time (QOSMaxJobsPerUserLimit, AssocGrpNodeLimit, QOSGrpCPURunMinutesLimit) are cured by it;
# limits of one job, and budgets that are used up (AssocGrpCPUMinutesLimit), are not.
HOPELESS = re.compile(
    r"AccountNotAllowed|BadConstraints|InvalidAccount|InvalidQOS|JobHeldAdmin|PartitionNodeLimit|PartitionTimeLimit"
    r"|QOSNotAllowed|QOSUsageThreshold|NotSatisfied|Max\w*PerJob|MaxMemPerLimit|Grp(?!\w*Run)\w*Minutes",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class JobState:
    """One job as Slurm sees it; `nodes` in Slurm's own short form."""

    job: str
    state: str
    reason: str = ""
    nodes: str = ""

    @property
    def waiting(self) -> bool:
        return self.state in WAITING

    @property
    def running(self) -> bool:
        return self.state in RUNNING

    @property
    def hopeless(self) -> bool:
        """Whether it would wait for ever."""
        return self.waiting and HOPELESS.search(self.reason) is not None

    def words(self) -> str:
        """`state (reason)` as Slurm names them."""
        return self.state + (f" ({self.reason})" if self.reason not in ("", "None") else "")


@dataclass(frozen=True)
class Answer:
    """What a Slurm command said; status None: it did not answer in time."""

    status: int | None
    output: str
    complaints: str


class SlurmQueue:
    """Slurm's commands, run here or on the login host."""

    def __init__(self, settings: SlurmSettings) -> None:
        self.settings = settings

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The command as it is run: over ssh when the settings name a login host."""
        login = self.settings.login
        return list(argv) if login is None else [*login.ssh(login.host), "exec " + shlex.join(argv)]

    def run(self, argv: Sequence[str], text: str = "") -> Answer:
        """Run one command with `text` as its input. Raises ClusterUnavailable when there is no such program."""
        try:
            result = subprocess.run(
                self.wrap(argv), input=text, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Answer(None, "", "")
        except OSError as error:
            raise ClusterUnavailable(f"Slurm's command {argv[0]} cannot be run: {error.strerror}.") from error
        return Answer(result.returncode, result.stdout, result.stderr.strip())

    def submit(self, nodes: int, script: str) -> str:
        """Submit a batch script; returns the job's number. Raises ClusterUnavailable with Slurm's reason."""
        answer = self.run(sbatch_argv(self.settings, nodes), script)
        job = answer.output.strip().partition(";")[0]
        if answer.status == 0 and job.isdigit():
            return job
        raise ClusterUnavailable(f"Slurm did not accept the job: {refusal(answer, self.settings)}.")

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        """The state of every job that Slurm tells about; those it is silent about are absent.

        One squeue for all; what has left the queue is asked of the accounting, and without that of the controller.
        """
        wanted = sorted(set(jobs), key=int)
        states = parse_squeue(self.run(squeue_argv(wanted)).output)
        if missing := [job for job in wanted if job not in states]:
            states |= parse_sacct(self.run(sacct_argv(missing)).output)
        for job in (job for job in wanted if job not in states):
            states |= parse_scontrol(self.run(["scontrol", "--oneliner", "show", "job", job]).output)
        return {job: state for job, state in states.items() if job in wanted}

    def wait_for_start(
        self, job: str, tell: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> JobState:
        """Wait, ever more patiently, until the job has its nodes. Raises ClusterUnavailable when it never will."""
        begun = answered = time.monotonic()
        pause_s = FIRST_PAUSE_S
        while True:
            state = self.states([job]).get(job)
            now = time.monotonic()
            if state is not None:
                answered = now
                if state.state == "RUNNING":
                    return state
                if not state.waiting or state.hopeless:
                    raise ClusterUnavailable(f"Slurm job {job} cannot run: {state.words()}.")
                tell(f"Slurm job {job}: {state.words()}")
            elif now - answered > SILENCE_LIMIT_S:
                raise ClusterUnavailable(f"Slurm gives no answer about job {job}: its state is unknown.")
            else:
                tell(f"Slurm job {job}: unknown, Slurm gives no answer")
            if now - begun > self.settings.pending_limit_s:
                raise ClusterUnavailable(
                    f"Slurm job {job} did not start within {amount(self.settings.pending_limit_s, 's')}."
                )
            _pause_and_listen(pause_s, tell, pause)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)

    def nodes(self, state: JobState) -> tuple[str, ...]:
        """The names of a job's nodes, in Slurm's order."""
        names = self.run(["scontrol", "show", "hostnames", state.nodes]).output.split()
        if not names:
            raise ClusterUnavailable(f"Slurm does not name the nodes of job {state.job}.")
        return tuple(names)

    def partition(self, job: str) -> dict[str, Any]:
        """Name of a job's partition and how many `hosts` one job can have there; empty where Slurm does not tell."""
        name = self.settings.partition
        if name is None:
            told = self.run(["scontrol", "--oneliner", "show", "job", job]).output
            name = next((word.partition("=")[2] for word in told.split() if word.startswith("Partition=")), "")
        hosts = (
            parse_partition(self.run(["scontrol", "--oneliner", "show", "partition", name]).output) if name else None
        )
        return {} if hosts is None else {"name": name, "hosts": hosts}

    def cancel(self, job: str) -> None:
        """Give the job's nodes back; a job that has ended already is no error."""
        self.run(["scancel", "--quiet", job])

    def why_ended(self, job: str, broken: str, pause: Callable[[float], None] = time.sleep) -> str:
        """Why a job's hosts were lost, in sentences; ``broken`` is what the connection itself has told.

        A job that still runs after a while did not end, and one that completed did so because its keeper had gone.
        """
        state = self._settled(job, pause)
        if state is None:
            return f"Slurm gives no answer about job {job}: its state is unknown."
        if state.waiting:
            return f"Slurm put job {job} back into the queue ({state.words()}): what ran is lost."
        nodes = state.nodes or "its nodes"
        if state.running or state.state == "COMPLETED":
            return f"{broken} Slurm says of job {job} on {nodes}: {state.words()}."
        return f"Slurm job {job} on {nodes} ended: {state.words()}."

    def _settled(self, job: str, pause: Callable[[float], None]) -> JobState | None:
        """The state of a job, asked again for a while as long as it is one of a job that has not ended."""
        deadline = time.monotonic() + END_LIMIT_S
        pause_s = FIRST_PAUSE_S
        while (state := self.states([job]).get(job)) is not None and state.running:
            if time.monotonic() + pause_s > deadline:
                break
            pause(pause_s)
            pause_s *= 1.5
        return state


def _pause_and_listen(pause_s: float, tell: Callable[[str], None], pause: Callable[[float], None]) -> None:
    """Wait in short steps: whoever listens may end the waiting."""
    while pause_s > 0:
        pause(min(pause_s, 1.0))
        pause_s -= 1.0
        tell("")


def sbatch_argv(settings: SlurmSettings, nodes: int) -> list[str]:
    """Nodes for us alone. The script comes by standard input; it prints nothing that would need a file."""
    chosen = {
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "constraint": settings.constraint,
        "reservation": settings.reservation,
        "time": settings.time_limit,
    }
    return [
        *("sbatch", "--parsable", "--job-name=rankwire", "--no-requeue", "--exclusive", f"--nodes={nodes}"),
        *("--output=/dev/null", "--chdir=/"),
        *(f"--{name}={value}" for name, value in chosen.items() if value is not None),
        *settings.options,
    ]


def srun_argv(job: str, node: str) -> list[str]:
    """In front of what is run on one node of a job, beside whatever runs there."""
    return [
        *("srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"),
        *("--cpu-bind=none", "--mpi=none", "--mem=0"),
    ]


def squeue_argv(jobs: Sequence[str]) -> list[str]:
    """One question for all jobs, ended ones too as long as the controller remembers them."""
    return ["squeue", "--noheader", "--states=all", f"--jobs={','.join(jobs)}", "--format=%i|%T|%r|%N"]


def sacct_argv(jobs: Sequence[str]) -> list[str]:
    """The same question to the accounting."""
    listed = ",".join(jobs)
    return [
        "sacct",
        "--allocations",
        "--noheader",
        "--parsable2",
        f"--jobs={listed}",
        "--format=JobIDRaw,State,NodeList",
    ]


def parse_squeue(text: str) -> dict[str, JobState]:
    """`id|state|reason|nodes` per line."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[0]: JobState(row[0], row[1], row[2].strip("() "), row[3]) for row in rows if len(row) == 4}


def parse_sacct(text: str) -> dict[str, JobState]:
    """`id|state|nodes` per line; "CANCELLED by 0" is CANCELLED."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[0]: JobState(row[0], row[1].split()[0], "", row[2]) for row in rows if len(row) == 3 and row[1]}


def parse_scontrol(text: str) -> dict[str, JobState]:
    """`JobId=12 ... JobState=FAILED Reason=NonZeroExitCode ... NodeList=n[1-4]`."""
    states = {}
    for line in text.splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "JobId" in values and "JobState" in values:
            nodes = values.get("NodeList", "").replace("(null)", "")
            states[values["JobId"]] = JobState(values["JobId"], values["JobState"], values.get("Reason", ""), nodes)
    return states


def parse_partition(text: str) -> int | None:
    """The smaller of `TotalNodes=3` and `MaxNodes=4` (or UNLIMITED); None where there is neither."""
    values = dict(word.split("=", 1) for word in text.split() if "=" in word)
    counts = [values[name] for name in ("TotalNodes", "MaxNodes") if name in values]
    return min((int(count) for count in counts if count.isdigit()), default=None)


def refusal(answer: Answer, settings: SlurmSettings) -> str:
    """Slurm's own reason without its decoration, with the partition or account it speaks of."""
    if answer.status is None:
        return f"no answer within {amount(COMMAND_LIMIT_S, 's')}"
    lines = [
        line.rpartition("error: ")[2].strip().rstrip(".") for line in answer.complaints.splitlines() if line.strip()
    ]
    if not lines:
        return f"sbatch ended with status {answer.status}"
    reason = lines[-1].removeprefix("Batch job submission failed: ")
    if "partition" in reason.lower() and settings.partition is not None:
        reason += f" ({settings.partition})"
    if "account" in reason.lower() and settings.account is not None:
        reason += f" ({settings.account})"
    return reason
