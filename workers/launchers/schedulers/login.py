"""Nodes reached with ssh, for schedulers without a way into a running job.

The scheduler does not end ssh logins, so the first agent's connection watches the job itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from experiments.cluster_kinds.scheduler import LoginSettings
from workers.hosts.programs import missing_programs
from workers.hosts.remote_agent import start_argv
from workers.launchers.schedulers.launcher import (
    AGENT_WAIT_S,
    Allocation,
    SchedulerLauncher,
    holding_script,
    remote_shell_script,
)


class LoginLauncher(SchedulerLauncher):
    """Launcher over ssh from the login host and from the first node."""

    settings: LoginSettings

    def probe(self) -> list[str]:
        return [*super().probe(), *missing_programs({self.settings.between_hosts[0]: "openssh-client"})][:1]

    def script(self, scratch: Path, *, lasting: bool = False) -> str:
        noted = f"umask 077\necho $$ >{scratch}.job\ntrap 'rm -f {scratch}.job' EXIT\n"
        return f"#!/bin/sh\n{noted}{holding_script(scratch, lasting=lasting)}"

    def attached(self, allocation: Allocation, argv: Sequence[str]) -> list[str]:
        """Return the command as a part of the job, if the scheduler supports it. Pure."""
        return list(argv)

    def connection(self, allocation: Allocation, node: str) -> list[str]:
        start = self.attached(allocation, start_argv(self.settings.python))
        watched = ["sh", "-c", watching_script(allocation.scratch, start)] if node == allocation.nodes[0] else start
        return self.queue.wrap([*self.settings.between_hosts, node, shlex.join(watched)])

    def remote_shell(self, allocation: Allocation) -> str:
        attached = shlex.join(self.attached(allocation, ["sh", "-c"]))
        # One word for the login shell of the node, as ssh passes it.
        command = f"\"{attached} '$(printf %s \"$*\" | sed \"s/'/'\\\\\\\\''/g\")'\"" if attached != "sh -c" else '"$*"'
        return remote_shell_script([*map(shlex.quote, self.settings.between_hosts), "$node"], command)


def watching_script(scratch: Path, start: Sequence[str]) -> str:
    """Return a script that starts the agent and ends it with the batch script.

    It closes the agent's input. That ends the agent and its programs. A scheduler calls a job running before its script
    has begun. The watcher is no child of the agent, which ends all its children.
    """
    job, pipe = f"{scratch}.job", f"{scratch}.in"
    alive = f'kill -0 "$(cat {job})"'
    return f"""\
mkfifo -m 600 {pipe} || exit 1
exec 3<&0
{shlex.join(start)} <{pipe} 3<&- & agent=$!
(
    exec >{pipe} 2>/dev/null
    rm -f {pipe}
    cat <&3 & fed=$!
    waited=0
    until {alive} || [ $waited -ge {AGENT_WAIT_S} ]; do waited=$((waited + 1)); sleep 1; done
    while kill -0 $fed && {alive}; do sleep 1; done
    kill $fed
    {alive} || rm -f {job}
) &
exec 3<&-
wait $agent
"""
