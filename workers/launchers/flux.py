"""Flux: `flux exec` reaches the nodes of a job, from outside and from each other."""

from __future__ import annotations

import re
from collections.abc import Iterable

from experiments.cluster_kinds.hosts import host_names
from experiments.cluster_kinds.scheduler import Flux, FluxSettings
from workers.hosts.remote_agent import start_argv
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher, remote_shell_script
from workers.launchers.schedulers.queue import JOB_LENGTH, JobState, Phase, Queue

PHASES: dict[str, Phase] = {
    "DEPEND": "waiting", "PRIORITY": "waiting", "SCHED": "waiting", "RUN": "running", "CLEANUP": "ending", "INACTIVE": "ended",
}  # fmt: skip
FORMAT = "{id.dec}|{state}|{status}|{nodelist}"
_UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "m": 60.0, "h": 3600.0, "d": 86400.0}


class FluxQueue(Queue[FluxSettings]):
    """Flux' commands, with decimal job numbers (the usual form is not ASCII)."""

    job_line = re.compile(r"([fƒ][1-9A-HJ-NP-Za-km-z]+)")
    good_end = "COMPLETED"

    def submit_argv(self, nodes: int, name: str) -> list[str]:
        settings = self.settings
        chosen = {
            "queue": settings.queue,
            "bank": settings.bank,
            "requires": settings.requires,
            "time-limit": settings.time_limit,
        }
        return [
            *("flux", "batch", f"--job-name={name}", f"--nodes={nodes}", f"--nslots={nodes}", "--exclusive"),
            *("--output=/dev/null", "--error=/dev/null", "--cwd=/"),
            *(f"--{name}={value}" for name, value in chosen.items() if value is not None),
            *settings.options,
        ]

    def number_of(self, job: str) -> str | None:
        lines = self.run(["flux", "job", "id", "--to=dec", job]).output.split("\n")
        return next((line.strip() for line in lines if line.strip().isdecimal() and len(line) <= JOB_LENGTH), None)

    def cancel_argv(self, name: str) -> list[str]:
        return ["sh", "-c", 'flux cancel $(flux jobs --no-header --name="$0" --format={id.dec})', name]

    def limit_s(self, text: str) -> float | None:
        """Parse a duration: a number with s, m, h or d; `flux batch` defaults to minutes."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|[smhd]?)", text.strip())
        return None if match is None else float(match[1]) * (_UNITS[match[2]] if match[2] else 60.0)

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        return parse_jobs(self.run(["flux", "jobs", "-a", "--no-header", f"--format={FORMAT}", *jobs]).output)

    def node_names(self, nodes: str) -> tuple[str, ...]:
        """Expand `n[1-4]`."""
        return tuple(host_names(nodes))


class FluxLauncher(SchedulerLauncher):
    """Launcher that addresses nodes by their rank in the job."""

    kind = Flux()
    queue_type = FluxQueue
    programs = (("flux", "flux-core"),)
    greeting = ("flux", "uptime")
    settings: FluxSettings

    def connection(self, allocation: Allocation, node: str) -> list[str]:
        rank = allocation.nodes.index(node)
        step = ["flux", "exec", f"--jobid={allocation.job}", f"--rank={rank}"]
        return self.queue.clean([*step, *start_argv(self.settings.python)])

    def remote_shell(self, allocation: Allocation) -> str:
        ranks = " ".join(f"{node}) echo {rank} ;;" for rank, node in enumerate(allocation.nodes))
        of_node = f'"$(case $node in {ranks} esac)"'
        step = ["flux", "exec", "--noinput", f"--jobid={allocation.job}", f"--rank={of_node}"]
        head, _, last = remote_shell_script([]).rpartition("exec ")
        return f"{head}exec {' '.join(step)} {last.strip()}\n"


def parse_jobs(text: str) -> dict[str, JobState]:
    """Parse `id|state|status|nodes` per line; status shows how ended jobs ended."""
    states = {}
    for row in (line.strip().split("|") for line in text.splitlines()):
        if len(row) == 4 and row[1] in PHASES:
            phase = PHASES[row[1]]
            states[row[0]] = JobState(row[0], row[2] if phase == "ended" else row[1], "", row[3], phase)
    return states
