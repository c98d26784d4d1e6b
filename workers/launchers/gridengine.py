"""Grid Engine: slots of a parallel environment that takes hosts whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import dropwhile
from xml.etree import ElementTree

from experiments.cluster_kinds.scheduler import Gridengine, GridengineSettings
from workers.launchers.schedulers.login import LoginLauncher
from workers.launchers.schedulers.queue import Answer, JobState, Phase, Queue, in_order

MOST_TAGS = 400_000
"""Of an answer: each element takes over 100 bytes of memory."""


class GridengineQueue(Queue[GridengineSettings]):
    """Grid Engine's commands."""

    job_line = re.compile(r'(?:Your job )?([0-9]+)(?: \(".*"\) has been submitted)?')
    good_end = "ended by itself"

    def submit_argv(self, nodes: int, name: str) -> list[str]:
        settings = self.settings
        limit = None if settings.time_limit is None else f"h_rt={settings.time_limit}"
        chosen = (("-q", settings.queue), ("-P", settings.project), ("-l", limit))
        return [
            *("qsub", "-terse", "-N", name, "-S", "/bin/sh", "-r", "n"),
            *("-o", "/dev/null", "-e", "/dev/null", "-wd", "/"),
            *("-pe", settings.parallel_environment, str(nodes * settings.slots_per_host)),
            *(word for option, value in chosen if value is not None for word in (option, value)),
            *settings.options,
        ]

    def cancel_argv(self, name: str) -> list[str]:
        return ["qdel", name]

    def refusal(self, answer: Answer, program: str) -> str:
        """Parse `Unable to run job: REASON.`, followed by `Exiting.`"""
        match = re.search(r"Unable to run job: (?:job rejected: )?(.*)", answer.stderr)
        if match is not None:
            return match[1].strip().rstrip(".")
        said = "\n".join(line for line in answer.stderr.splitlines() if line.strip() != "Exiting.")
        return super().refusal(Answer(answer.status, answer.output, said), program)

    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        """Return the states; unlisted jobs have ended, and accounting comes late or never."""
        answer = self.run(["qstat", "-xml", "-g", "t"])
        listed = parse_qstat(answer.output) if answer.status == 0 else None
        if listed is None:
            return {}
        return {job: listed.get(job) or self._ended(job) for job in jobs}

    def _ended(self, job: str) -> JobState:
        answer = self.run(["qacct", "-j", job]).output
        fields = ((*line.split(maxsplit=1), "", "")[:2] for line in answer.splitlines())
        of_job = dropwhile(lambda field: (field[0], field[1].strip()) != ("jobnumber", job), fields)
        failed = next((value for name, value in of_job if name == "failed" and re.match("[0-9]", value)), None)
        if failed is None:
            return JobState(job, "ended")
        number, _, reason = (part.strip(" :") for part in failed.partition(" "))
        return JobState(job, self.good_end) if number == "0" else JobState(job, "ended", reason or f"failed {number}")

    def node_names(self, nodes: str) -> tuple[str, ...]:
        return tuple(nodes.split())


class GridengineLauncher(LoginLauncher):
    """Launcher over ssh: a job's slots limit its steps (`qrsh -inherit`)."""

    kind = Gridengine()
    queue_type = GridengineQueue
    programs = (("qsub", "gridengine-client"), ("qstat", "gridengine-client"))
    greeting = ("qstat",)
    settings: GridengineSettings


def parse_qstat(text: str) -> dict[str, JobState] | None:
    """Return every waiting or running job, its master node first; None if unreadable.

    A site's own text may be around the document.
    """
    document = text[max(text.find("<?xml"), 0) : text.rfind("</job_info>") + len("</job_info>")]
    if "<!DOCTYPE" in document or document.count("<") > MOST_TAGS:
        return None
    try:
        root = ElementTree.fromstring(document)  # noqa: S314 - without entities, and of bounded size
    except ElementTree.ParseError:
        return None
    rows: dict[str, list[tuple[str, str, str]]] = {}
    for entry in root.iter("job_list"):
        fields = {name: (entry.findtext(name) or "") for name in ("JB_job_number", "state", "queue_name", "master")}
        host = fields["queue_name"].partition("@")[2]
        rows.setdefault(fields["JB_job_number"], []).append((fields["state"], host, fields["master"]))
    return {job: _state(job, parts) for job, parts in rows.items()}


def _state(job: str, parts: list[tuple[str, str, str]]) -> JobState:
    """Map the letters of qstat(1).

    qw waits, t is transferred, r runs, d is deleted, E failed to start, h is held.
    """
    state = parts[0][0]
    by_rank = sorted(parts, key=lambda part: part[2] != "MASTER")
    phase: Phase = "waiting"
    if "d" in state or state in ("s", "S", "T"):
        phase = "ending"
    elif "r" in state and "q" not in state:
        phase = "running"
    reason = "it could not be started; see qstat -j" if "E" in state else ""
    return JobState(job, state, reason, " ".join(in_order(host for _, host, _ in by_rank)), phase, "E" in state)
