"""OpenPBS and PBS Professional: `pbs_attach` ties logins to the job's end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from experiments.cluster_kinds.scheduler import Pbs, PbsSettings
from workers.agent.rpc import MOST_CONTAINERS
from workers.launchers.schedulers.launcher import Allocation
from workers.launchers.schedulers.login import LoginLauncher
from workers.launchers.schedulers.queue import JobState, Phase, Queue, in_order

# The letters of qstat(1B), as its manual explains them.
PHASES: dict[str, tuple[str, Phase]] = {
    "Q": ("queued", "waiting"), "H": ("held", "waiting"), "W": ("waiting for its time", "waiting"),
    "T": ("moved", "waiting"), "M": ("moved to another server", "ended"), "S": ("suspended", "ending"),
    "U": ("suspended for its user", "ending"), "R": ("running", "running"), "B": ("begun", "running"),
    "E": ("exiting", "ending"), "F": ("finished", "ended"), "X": ("expired", "ended"),
}  # fmt: skip
GONE = r"Unknown Job Id {job}\b|\b{job} Job has finished"


class PbsQueue(Queue[PbsSettings]):
    """PBS' commands."""

    job_line = re.compile(r"([0-9]+(?:\.[A-Za-z][\w.-]*)?)")
    good_end = "finished"

    def submit_argv(self, nodes: int, name: str) -> list[str]:
        settings = self.settings
        chunk = f"{nodes}:ncpus={settings.slots_per_host}" + (f":{settings.select}" if settings.select else "")
        chosen = (("-q", settings.queue), ("-A", settings.account))
        limit = () if settings.time_limit is None else ("-l", f"walltime={settings.time_limit}")
        return [
            *("qsub", "-N", name, "-r", "n", "-j", "oe", "-o", "/dev/null", "-S", "/bin/sh"),
            *("-l", f"select={chunk}", "-l", "place=scatter:excl"),
            *(word for option, value in chosen if value is not None for word in (option, value)),
            *limit,
            *settings.options,
        ]

    def cancel_argv(self, name: str) -> list[str]:
        return ["sh", "-c", 'qselect -N "$0" | xargs qdel', name]

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        states = {}
        for job in jobs:
            answer = self.run(["qstat", "-x", "-f", "-F", "json", job])
            if (state := parse_qstat(job, answer.output)) is not None:
                states[job] = state
            elif re.search(GONE.format(job=re.escape(job)), answer.stderr, re.IGNORECASE):
                states[job] = JobState(job, "finished")
        return states

    def node_names(self, nodes: str) -> tuple[str, ...]:
        """Read `n1/0*32+n2/0*32`."""
        return in_order(part.partition("/")[0] for part in nodes.split("+"))


class PbsLauncher(LoginLauncher):
    """ssh to the nodes, and into the job there."""

    kind = Pbs()
    queue_type = PbsQueue
    programs = (("qsub", "openpbs-client"), ("qstat", "openpbs-client"))
    greeting = ("qstat", "-B")
    settings: PbsSettings

    def attached(self, allocation: Allocation, argv: Sequence[str]) -> list[str]:
        return [self.settings.attach, "-j", allocation.job, *argv]


def parse_qstat(job: str, text: str) -> JobState | None:
    """Return the job in `qstat -F json`, or None; other text may surround it."""
    begin = re.search(r'\{\s*"timestamp"', text)
    if text.count("[") + text.count("{") > MOST_CONTAINERS:  # each takes over 50 bytes of memory
        return None
    try:
        answer, _ = json.JSONDecoder().raw_decode(text, begin.start() if begin else 0)
    except (ValueError, RecursionError):
        return None
    jobs = answer.get("Jobs") if isinstance(answer, dict) else None
    numbers = {name.split(".")[0]: values for name, values in jobs.items()} if isinstance(jobs, dict) else {}
    fields = numbers.get(job.split(".")[0])
    if not isinstance(fields, dict) or str(fields.get("job_state")) not in PHASES:
        return None
    words, phase = PHASES[fields["job_state"]]
    comment = str(fields.get("comment", "")).strip()
    if phase == "ended" and fields.get("Exit_status"):  # negative and from 256 on: PBS ended it
        words = f"ended with status {fields['Exit_status']}"
    hopeless = phase == "waiting" and "Can Never Run" in comment
    return JobState(job, words, comment, str(fields.get("exec_host", "")), phase, hopeless)
