"""LSF."""

from __future__ import annotations

import re
from collections.abc import Iterable

from experiments.cluster_kinds.scheduler import Lsf, LsfSettings
from workers.launchers.schedulers.login import LoginLauncher
from workers.launchers.schedulers.queue import REASON_LENGTH, JobState, Phase, Queue, clock_s, in_order

PHASES: dict[str, Phase] = {
    "PEND": "waiting", "PSUSP": "waiting", "WAIT": "waiting", "RUN": "running", "USUSP": "ending", "SSUSP": "ending",
    "UNKWN": "ending", "PROV": "waiting", "ZOMBI": "ended", "DONE": "ended", "EXIT": "ended",
}  # fmt: skip
FIELDS = "jobid stat exec_host pend_reason exit_reason delimiter='|'"
GONE = re.compile(r"Job <(\d+)> is not found")
HOPELESS = re.compile(r"never be (dispatched|satisfied)|not eligible .* any host", re.IGNORECASE)


class LsfQueue(Queue[LsfSettings]):
    """LSF's commands."""

    job_line = re.compile(r"Job <([0-9]+)> is submitted to (?:default )?queue <[^<>]*>\.")
    good_end = "DONE"

    def submit_argv(self, nodes: int, name: str) -> list[str]:
        settings = self.settings
        slots = settings.slots_per_host
        chosen = (
            ("-q", settings.queue),
            ("-P", settings.project),
            ("-R", settings.resources),
            ("-W", settings.time_limit),
        )
        return [
            *("bsub", "-J", name, "-rn", "-o", "/dev/null", "-e", "/dev/null", "-cwd", "/", "-L", "/bin/sh"),
            *("-x", "-n", str(nodes * slots), "-R", f"span[ptile={slots}]"),
            *(word for option, value in chosen if value is not None for word in (option, value)),
            *settings.options,
        ]

    def cancel_argv(self, name: str) -> list[str]:
        return ["bkill", "-J", name, "0"]

    def limit_s(self, text: str) -> float | None:
        """Parse `[hours:]minutes`; None with `/host model`, whose speed counts."""
        return clock_s(text, last=60.0)

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        answer = self.run(["bjobs", "-a", "-noheader", "-o", FIELDS, *jobs])
        gone = GONE.findall(f"{answer.output}\n{answer.stderr}")
        return {**{job: JobState(job, "not found") for job in gone}, **parse_bjobs(answer.output)}

    def node_names(self, nodes: str) -> tuple[str, ...]:
        """Read `32*n1:32*n2` or `n1:n2`."""
        return in_order(part.rpartition("*")[2] for part in nodes.split(":"))


class LsfLauncher(LoginLauncher):
    """ssh to the nodes."""

    kind = Lsf()
    queue_type = LsfQueue
    programs = (("bsub", "lsf-client"), ("bjobs", "lsf-client"))
    greeting = ("bqueues",)
    settings: LsfSettings


def parse_bjobs(text: str) -> dict[str, JobState]:
    """Parse `id|stat|hosts|pending reason|exit reason` per line; "-" means none."""
    states = {}
    for row in (line.strip().split("|") for line in text.splitlines()):
        if len(row) == 5 and row[1] in PHASES:
            job, state, hosts, pending, ended = ("" if cell.strip() == "-" else cell.strip() for cell in row)
            phase = PHASES[state]
            reason = (pending if phase == "waiting" else ended)[:REASON_LENGTH].rstrip(";. ")
            hopeless = phase == "waiting" and HOPELESS.search(reason) is not None
            states[job] = JobState(job, state, reason, hosts, phase, hopeless)
    return states
