"""Slurm: agents run as steps of the job, and `srun` connects the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.cluster_kinds.hosts import host_names
from experiments.cluster_kinds.scheduler import Slurm, SlurmSettings
from workers.hosts.remote_agent import start_argv
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher, remote_shell_script
from workers.launchers.schedulers.queue import REASON_LENGTH, SHOWN_LENGTH, Answer, JobState, Phase, Queue, clock_s

WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "STAGE_OUT", "SUSPENDED"}
FORGOTTEN = "Invalid job id specified"
ENDING = {"COMPLETING", "SIGNALING", "STOPPED"}
# Reasons of a pending job that waiting does not cure (squeue(1), JOB REASON CODES).
# Limits of concurrent jobs (QOSMaxJobsPerUserLimit, AssocGrpNodeLimit, QOSGrpCPURunMinutesLimit) are cured by it;
# limits of one job, and budgets that are used up (AssocGrpCPUMinutesLimit), are not.
HOPELESS = re.compile(
    r"AccountNotAllowed|BadConstraints|InvalidAccount|InvalidQOS|JobHeldAdmin|PartitionNodeLimit|PartitionTimeLimit"
    r"|QOSNotAllowed|QOSUsageThreshold|NotSatisfied|Max\w*PerJob|MaxMemPerLimit|Grp(?!\w*Run)\w*Minutes",
    re.IGNORECASE,
)


class SlurmQueue(Queue[SlurmSettings]):
    """Slurm's commands."""

    job_line = re.compile(r"(?:Submitted batch job )?([0-9]+)(?:;[\w.-]+)?")
    good_end = "COMPLETED"

    def submit_argv(self, nodes: int, name: str) -> list[str]:
        return sbatch_argv(self.settings, nodes, name)

    def cancel_argv(self, name: str) -> list[str]:
        return ["scancel", "--quiet", f"--name={name}"]

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        """Ask squeue for all jobs, then accounting, then the controller for missing ones."""
        numbers = sorted(set(jobs), key=int)
        states = parse_squeue(self.run(squeue_argv(numbers)).output)
        if missing := [job for job in numbers if job not in states]:
            states |= parse_sacct(self.run(sacct_argv(missing)).output)
        for job in (job for job in numbers if job not in states):
            answer = self.run(["scontrol", "--oneliner", "show", "job", job])
            states |= parse_scontrol(answer.output) or parse_forgotten(job, answer)
        return {job: state for job, state in states.items() if job in numbers}

    def node_names(self, nodes: str) -> tuple[str, ...]:
        return tuple(host_names(nodes))

    def left_s(self, job: str, held_s: float) -> float | None:
        """Ask Slurm, which knows limits of the partition and later changes."""
        answer = self.run(["squeue", "--noheader", f"--jobs={job}", "--format=%i|%L"]).output
        rows = (line.strip().partition("|") for line in answer.splitlines())
        return next((clock_s(left) for number, _, left in rows if number == job), None)

    def refusal(self, answer: Answer, program: str) -> str:
        return refusal(answer, self.settings) or super().refusal(answer, program)

    def partition(self, job: str) -> dict[str, Any]:
        """Return name and `hosts` limit of a job's partition; empty if unknown."""
        name = self.settings.partition
        if name is None or "," in name:
            answer = self.run(["scontrol", "--oneliner", "show", "job", job]).output
            name = next((word.partition("=")[2] for word in answer.split() if word.startswith("Partition=")), "")
        hosts = (
            parse_partition(self.run(["scontrol", "--oneliner", "show", "partition", name]).output) if name else None
        )
        return {} if hosts is None else {"name": name[:SHOWN_LENGTH], "hosts": hosts}


class SlurmLauncher(SchedulerLauncher):
    """`srun` from the first node to the others."""

    kind = Slurm()
    queue_type = SlurmQueue
    programs = (("sbatch", "slurm-client"), ("srun", "slurm-client"))
    greeting = ("sinfo", "--noheader", "--format=%P %D %T")
    settings: SlurmSettings

    def connection(self, allocation: Allocation, node: str) -> list[str]:
        return self.queue.clean([*srun_argv(allocation.job, node), *start_argv(self.settings.python)])

    def remote_shell(self, allocation: Allocation) -> str:
        return remote_shell_script([*srun_argv(allocation.job, "$node"), "--input=none"])


def sbatch_argv(settings: SlurmSettings, nodes: int, name: str) -> list[str]:
    """Return the command for exclusive nodes, which reads the script as its input."""
    chosen = {
        "partition": settings.partition,
        "account": settings.account,
        "qos": settings.qos,
        "constraint": settings.constraint,
        "reservation": settings.reservation,
        "time": settings.time_limit,
    }
    return [
        *("sbatch", "--parsable", f"--job-name={name}", "--no-requeue", "--exclusive", f"--nodes={nodes}"),
        *("--output=/dev/null", "--chdir=/"),
        *(f"--{name}={value}" for name, value in chosen.items() if value is not None),
        *settings.options,
    ]


def srun_argv(job: str, node: str) -> list[str]:
    """Return the prefix that runs a command on one node of a job, besides other steps."""
    return [
        *("srun", f"--jobid={job}", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}"),
        *("--cpu-bind=none", "--mpi=none", "--mem=0"),
    ]


def squeue_argv(jobs: Sequence[str]) -> list[str]:
    """Return one question for all jobs, ended ones included."""
    return ["squeue", "--noheader", "--states=all", f"--jobs={','.join(jobs)}", "--format=%i|%T|%r|%N"]


def sacct_argv(jobs: Sequence[str]) -> list[str]:
    """Return the same question to accounting."""
    options = ("--allocations", "--noheader", "--parsable2", "--format=JobIDRaw,State,NodeList")
    return ["sacct", *options, f"--jobs={','.join(jobs)}"]


def parse_squeue(text: str) -> dict[str, JobState]:
    """Parse `id|state|reason|nodes` per line."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[0]: _state(row[0], row[1], row[2].strip("() "), row[3]) for row in rows if len(row) == 4}


def parse_sacct(text: str) -> dict[str, JobState]:
    """Parse `id|state|nodes` per line; "CANCELLED by 0" is CANCELLED."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return {row[0]: _state(row[0], row[1].split()[0], "", row[2]) for row in rows if len(row) == 3 and row[1].strip()}


def parse_scontrol(text: str) -> dict[str, JobState]:
    """Parse `JobId=12 ... JobState=FAILED Reason=NonZeroExitCode ... NodeList=n[1-4]`."""
    states = {}
    for line in text.splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "JobId" in values and "JobState" in values:
            nodes = values.get("NodeList", "").replace("(null)", "")
            states[values["JobId"]] = _state(values["JobId"], values["JobState"], values.get("Reason", ""), nodes)
    return states


def parse_forgotten(job: str, answer: Answer) -> dict[str, JobState]:
    """Parse `Invalid job id specified`: the job ended longer ago than MinJobAge."""
    return {job: JobState(job, FORGOTTEN)} if FORGOTTEN in answer.stderr else {}


def parse_partition(text: str) -> int | None:
    """Return the smaller of `TotalNodes=3` and `MaxNodes=4` (or UNLIMITED), or None."""
    values = dict(word.split("=", 1) for word in text.split() if "=" in word)
    counts = [values[name] for name in ("TotalNodes", "MaxNodes") if name in values]
    return min((int(count) for count in counts if re.fullmatch("[0-9]{1,9}", count)), default=None)


def _state(job: str, state: str, reason: str, nodes: str) -> JobState:
    phase: Phase = (
        "waiting" if state in WAITING else "running" if state == "RUNNING" else "ending" if state in ENDING else "ended"
    )
    hopeless = phase == "waiting" and HOPELESS.search(reason[:REASON_LENGTH]) is not None
    return JobState(job, state, reason, nodes, phase, hopeless)


def refusal(answer: Answer, settings: SlurmSettings) -> str:
    """Return Slurm's own reason, with partition or account; empty without one."""
    said = [line for line in answer.stderr.splitlines() if line.strip()]
    errors = [line for line in said if "error: " in line] or said
    lines = [line.rpartition("error: ")[2].strip().rstrip(".") for line in errors]
    if not lines:
        return ""
    reason = lines[-1].removeprefix("Batch job submission failed: ")
    if "partition" in reason.lower() and settings.partition is not None:
        reason += f" ({settings.partition})"
    if "account" in reason.lower() and settings.account is not None:
        reason += f" ({settings.account})"
    return reason
