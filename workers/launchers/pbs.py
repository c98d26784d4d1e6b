"""OpenPBS and PBS Professional: `pbs_attach` ties logins to the job's end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.cluster_kinds.scheduler import Pbs, PbsSettings
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
GONE = re.compile(r"Unknown Job Id|has finished", re.IGNORECASE)


class PbsQueue(Queue[PbsSettings]):
    """PBS' commands."""

    good_end = "finished"

    def submit_argv(self, nodes: int) -> list[str]:
        settings = self.settings
        chunk = f"{nodes}:ncpus={settings.slots_per_host}" + (f":{settings.select}" if settings.select else "")
        chosen = (("-q", settings.queue), ("-A", settings.account))
        limit = () if settings.time_limit is None else ("-l", f"walltime={settings.time_limit}")
        return [
            *("qsub", "-N", "rankwire", "-r", "n", "-j", "oe", "-o", "/dev/null", "-S", "/bin/sh"),
            *("-l", f"select={chunk}", "-l", "place=scatter:excl"),
            *(word for option, value in chosen if value is not None for word in (option, value)),
            *limit,
            *settings.options,
        ]

    def job_in(self, output: str) -> str | None:
        job = output.strip()
        return job if re.fullmatch(r"\d+(\.[\w.-]+)?", job) else None

    def cancel_argv(self, job: str) -> list[str]:
        return ["qdel", job]

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        states = {}
        for job in jobs:
            answer = self.run(["qstat", "-x", "-f", "-F", "json", job])
            if (state := parse_qstat(job, answer.output)) is not None:
                states[job] = state
            elif GONE.search(answer.stderr):
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
    """Return the job in the output of `qstat -F json`, or None."""
    try:
        jobs: dict[str, Any] = json.loads(text).get("Jobs", {})
    except ValueError:
        return None
    fields = next((values for name, values in jobs.items() if name.split(".")[0] == job.split(".")[0]), None)
    if fields is None or fields.get("job_state") not in PHASES:
        return None
    words, phase = PHASES[fields["job_state"]]
    comment = str(fields.get("comment", "")).strip()
    if phase == "ended" and fields.get("Exit_status"):  # negative and from 256 on: PBS ended it
        words = f"ended with status {fields['Exit_status']}"
    hopeless = phase == "waiting" and "Can Never Run" in comment
    return JobState(job, words, comment, str(fields.get("exec_host", "")), phase, hopeless)
