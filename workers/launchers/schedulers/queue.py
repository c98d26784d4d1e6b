"""Queue of a scheduler: a job is submitted, waits, holds its nodes, ends.

A missing answer is never a success. Subclasses give the exact commands and parse their answers; waiting is common to all.
Login scripts and sites' wrappers print before the answers: what a login host prints is cut by a marker, and every answer is
read by a strict pattern. Jobs are cancelled by their unique names, which are known even if their numbers are not.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from analysis.numbers import amount
from experiments.cluster_kinds.hosts import MOST_HOSTS, as_alias
from experiments.cluster_kinds.scheduler import SchedulerSettings
from workers.agent.variables import FORGET_JOB, without_job
from workers.errors import ClusterUnavailable
from workers.hosts.programs import run_bounded
from workers.launchers.ssh_words import SSH_FAILED, explain, never_connected

COMMAND_LIMIT_S = 30.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 20.0
SILENCE_LIMIT_S = 120.0
SHOWN_LENGTH = 300  # of a reason, of names of nodes, and of an answer that cannot be read
STDERR_LENGTH = 8192
"""Last characters that are kept: a login host may print 16 MiB."""
REASON_LENGTH = 2000
"""First characters of a job's reason that are searched: patterns would search long ones for days."""
JOB_LENGTH = 100
MARKED = f"""{FORGET_JOB}; printf '\\n%s\\n' "$0"; "$@"; status=$?; printf '\\n%s\\n' "$0"; exit $status"""
END_LIMIT_S = 10.0  # until the scheduler has noticed the end that a broken connection showed first

Phase = Literal["waiting", "running", "ending", "ended"]
S = TypeVar("S", bound=SchedulerSettings)
_CLOCK = re.compile(r"(?:([0-9]{1,9})-)?(?:(?:([0-9]{1,9}):)?([0-9]{1,9}):)?([0-9]{1,9})")


@dataclass(frozen=True)
class JobState:
    """State of a job in the scheduler's own words; ``nodes`` in its own short form."""

    job: str
    state: str
    reason: str = ""
    nodes: str = ""
    phase: Phase = "ended"
    hopeless: bool = False
    """True if it would wait for ever."""

    @property
    def waiting(self) -> bool:
        return self.phase == "waiting"

    @property
    def running(self) -> bool:
        """Return whether it has its nodes, or has not returned all of them."""
        return self.phase in ("running", "ending")

    def words(self) -> str:
        """Return `state (reason)` in the scheduler's words."""
        words = self.state + (f" ({self.reason})" if self.reason not in ("", "None") else "")
        return words[:SHOWN_LENGTH]


@dataclass(frozen=True)
class Answer:
    """Answer of a scheduler's command; status None: no answer in time."""

    status: int | None
    output: str
    stderr: str
    unreached: bool = False
    """True if ssh never connected to the login host."""


class Queue(ABC, Generic[S]):
    """Commands of a scheduler, run here or on the login host."""

    job_line: ClassVar[re.Pattern[str]]
    """A line by which the submit command reports a job; its group is the number."""
    good_end: ClassVar[str] = ""
    """The state of a job whose script ended by itself: not a reason why its hosts were lost."""

    def __init__(self, settings: S, title: str) -> None:
        """Store the settings and the scheduler's ``title`` for messages."""
        self.settings = settings
        self.title = title

    @abstractmethod
    def submit_argv(self, nodes: int, name: str) -> list[str]:
        """Return the submit command for whole nodes; the script is its input. Pure."""

    def job_in(self, output: str) -> str | None:
        """Return the one job that the submit command reports; None for none or several."""
        jobs = {match[1] for line in output.splitlines() if (match := self.job_line.fullmatch(line.strip()))}
        return jobs.pop() if len(jobs) == 1 and max(map(len, jobs)) <= JOB_LENGTH else None

    @abstractmethod
    def cancel_argv(self, name: str) -> list[str]:
        """Return the command that cancels a job by its name. Pure."""

    @abstractmethod
    def states(self, jobs: Iterable[str]) -> dict[str, JobState]:
        """Return the states of jobs; jobs without an answer are absent."""

    def nodes(self, state: JobState) -> tuple[str, ...]:
        """Return a job's nodes in the scheduler's order. Raises ClusterUnavailable."""
        try:
            names = self.node_names(state.nodes)
            if len(names) > MOST_HOSTS:
                raise ValueError(f"there are more than {MOST_HOSTS}")
            names = tuple(map(as_alias, names))
        except ValueError as error:
            raise ClusterUnavailable(f"{self.title} does not name the nodes of job {state.job}: {error}.") from None
        if not names:
            raise ClusterUnavailable(f"{self.title} does not name the nodes of job {state.job}.")
        return names

    @abstractmethod
    def node_names(self, nodes: str) -> tuple[str, ...]:
        """Return the nodes of the scheduler's short form. Pure; raises ValueError."""

    def partition(self, job: str) -> dict[str, Any]:
        """Return name and `hosts` limit of a job's queue; empty if unknown."""
        return {}

    def left_s(self, job: str, held_s: float) -> float | None:
        """Return the time left of a job held for ``held_s`` seconds; None: no limit."""
        limit_s = self.limit_s(self.settings.time_limit or "")
        return None if limit_s is None else limit_s - held_s

    def limit_s(self, text: str) -> float | None:
        """Parse a time limit; None for none and for an unreadable one. Pure."""
        return clock_s(text)

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Return the command, over ssh if the settings name a login host."""
        login = self.settings.login
        return list(argv) if login is None else [*login.ssh(login.host), "exec " + shlex.join(argv)]

    def clean(self, argv: Sequence[str]) -> list[str]:
        """Return the command of `wrap`, without job variables of logins."""
        return self.wrap(argv if self.settings.login is None else ["sh", "-c", f'{FORGET_JOB}; exec "$@"', "sh", *argv])

    def run(self, argv: Sequence[str], text: str = "") -> Answer:
        """Run one command with `text` as its input. Raises ClusterUnavailable."""
        marker = None if self.settings.login is None else f"rankwire-{secrets.token_hex(8)}"
        command = argv if marker is None else ["sh", "-c", MARKED, marker, *argv]
        try:
            result = run_bounded(self.wrap(command), text, limit_s=COMMAND_LIMIT_S, environment=without_job(os.environ))
        except subprocess.TimeoutExpired:
            return Answer(None, "", "")
        except OSError as error:
            raise ClusterUnavailable(f"{self.title}'s command {argv[0]} cannot be run: {error.strerror}.") from error
        if marker is None:
            return Answer(result.returncode, result.stdout, result.stderr.strip()[-STDERR_LENGTH:])
        _, begun, answer = result.stdout.partition(f"\n{marker}\n")
        answer, ended, _ = answer.partition(f"\n{marker}\n")
        if not ended:  # the login did not run the command to its end
            words = f"{result.stdout}{result.stderr}".strip()[-STDERR_LENGTH:]
            status, unreached = result.returncode or SSH_FAILED, not begun and never_connected(result.stderr)
            return Answer(status, "", words, unreached=status == SSH_FAILED and unreached)
        return Answer(result.returncode, answer, result.stderr.strip()[-STDERR_LENGTH:])

    def submit(self, nodes: int, script: str, name: str) -> str:
        """Submit a batch script; return the job's number, else leave no job.

        Raises ClusterUnavailable.
        """
        argv = self.submit_argv(nodes, name)
        try:
            answer = self.run(argv, script)
            job = self.job_in(answer.output) if answer.status == 0 else None
            number = job and self.number_of(job)
        except BaseException:
            self.cancel(name)
            raise
        if number:
            return number
        if answer.unreached and self.settings.login is not None:
            host = self.settings.login.host
            raise ClusterUnavailable(f"The login host was not reached. {explain(host, answer.stderr)}")
        reason = self.refusal(answer, argv[0])
        if answer.status == 0:
            said = " ".join(f"{answer.output} {answer.stderr}".split())[:SHOWN_LENGTH]
            reason = f"{argv[0]} reported no job number that can be read, but {f'“{said}”' if said else 'nothing'}"
        if answer.status in (0, None, SSH_FAILED):
            remains = "may remain if ssh reached the host" if answer.status == SSH_FAILED else "may remain"
            reason += f". Job {name} {'was cancelled' if self.cancel(name) else f'{remains}: cancel it'}"
        raise ClusterUnavailable(f"{self.title} did not accept the job: {reason}.")

    def number_of(self, job: str) -> str | None:
        """Return the number by which other commands report a job, or None."""
        return job

    def refusal(self, answer: Answer, program: str) -> str:
        """Return the scheduler's own reason without its decoration. Pure."""
        if answer.status is None:
            return f"no answer within {amount(COMMAND_LIMIT_S, 's')}"
        lines = [line.strip().rstrip(".") for line in answer.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else f"{program} ended with status {answer.status}"

    def cancel(self, name: str) -> bool:
        """Cancel a job by its name, if it has not ended; return whether that worked.

        A failure must not fail the trial that follows.
        """
        with contextlib.suppress(ClusterUnavailable):
            return self.run(self.cancel_argv(name)).status == 0
        return False

    def wait_for_start(
        self, job: str, tell: Callable[[str], None], pause: Callable[[float], None] = time.sleep
    ) -> JobState:
        """Wait, with growing pauses, for the job's nodes. Raises ClusterUnavailable."""
        begun = answered = time.monotonic()
        pause_s = FIRST_PAUSE_S
        while True:
            state = self.states([job]).get(job)
            now = time.monotonic()
            if state is not None:
                answered = now
                if state.phase == "running":
                    return state
                if not state.waiting or state.hopeless:
                    raise ClusterUnavailable(f"{self.title} job {job} cannot run: {state.words()}.")
                tell(f"{self.title} job {job}: {state.words()}")
            elif now - answered > SILENCE_LIMIT_S:
                raise ClusterUnavailable(f"{self.title} gives no answer about job {job}: its state is unknown.")
            else:
                tell(f"{self.title} job {job}: unknown, {self.title} gives no answer")
            if now - begun > self.settings.pending_limit_s:
                raise ClusterUnavailable(
                    f"{self.title} job {job} did not start within {amount(self.settings.pending_limit_s, 's')}."
                )
            _pause_and_listen(pause_s, tell, pause)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)

    def has_ended(self, job: str, pause: Callable[[float], None] = time.sleep) -> bool:
        """Return whether the scheduler ended a job or took its nodes away."""
        state = self._settled(job, pause)
        return state is not None and not state.running and state.state != self.good_end

    def why_ended(self, job: str, broken: str, pause: Callable[[float], None] = time.sleep) -> str:
        """Return why a job's hosts were lost, in sentences.

        ``broken`` is the connection's own reason: it holds if the job still runs, or completed because its agent had ended.
        """
        state = self._settled(job, pause)
        if state is None:
            return f"{self.title} gives no answer about job {job}: its state is unknown."
        if state.waiting:
            return f"{self.title} put job {job} back into the queue ({state.words()}): what ran is lost."
        nodes = state.nodes[:SHOWN_LENGTH] or "its nodes"
        if state.running or state.state == self.good_end:
            return f"{broken} State of {self.title} job {job} on {nodes}: {state.words()}."
        return f"{self.title} job {job} on {nodes} ended: {state.words()}."

    def _settled(self, job: str, pause: Callable[[float], None]) -> JobState | None:
        """Return the state of a job, polled for a while as long as it runs."""
        deadline = time.monotonic() + END_LIMIT_S
        pause_s = FIRST_PAUSE_S
        while (state := self.states([job]).get(job)) is not None and state.running:
            if time.monotonic() + pause_s > deadline:
                break
            pause(pause_s)
            pause_s *= 1.5
        return state


def clock_s(text: str, *, last: float = 1.0) -> float | None:
    """Parse `[days-][[hours:]minutes:]number` to seconds, else None.

    ``last``: how many seconds the last number counts.
    """
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, number = (int(part or 0) for part in match.groups())
    return days * 86400 + ((hours * 60 + minutes) * 60 + number) * last


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once, in the order of first appearance."""
    return tuple(dict.fromkeys(name for name in names if name))


def _pause_and_listen(pause_s: float, tell: Callable[[str], None], pause: Callable[[float], None]) -> None:
    """Wait in short steps, in which ``tell`` may raise to give up."""
    while pause_s > 0:
        pause(min(pause_s, 1.0))
        pause_s -= 1.0
        tell("")
