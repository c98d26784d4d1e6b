"""Real hosts over ssh: they need a login, Python 3.9 and an MPI library."""

from __future__ import annotations

import secrets
import shlex
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from analysis.numbers import amount
from experiments.cluster_kinds.ssh import Ssh, SshSettings
from workers.errors import ClusterUnavailable
from workers.hosts.programs import missing_programs, run_bounded
from workers.hosts.remote_agent import RemoteAgent, in_shell, start_argv
from workers.launchers.base import SIDE_BY_SIDE, Launcher, Link, Reached, Session, Tell, ignore_progress
from workers.launchers.remote import HostsLauncher, RemoteSession
from workers.launchers.ssh_words import explain, why_unreached

REACHED = "rankwire-reached"
REACH_LIMIT_S = 30.0
MOST_TESTED = 32


class SshLauncher(HostsLauncher):
    """mpirun on the first host; `ssh` from there to the others."""

    kind = Ssh()
    settings: SshSettings
    reports_python = True

    def probe(self) -> list[str]:
        """Return missing programs of this machine; trials contact the hosts."""
        return missing_programs({"ssh": "openssh-client"})

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return self.settings.hosts[:host_count]

    def connection(self, host: str) -> list[str]:
        """Return the command of the agent's connection. Pure."""
        return [*self.settings.ssh(host), in_shell(start_argv(self.settings.python))]

    def reach(self) -> list[Reached]:
        """Contact all hosts in parallel and read their versions of Python."""
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            return list(pool.map(self._reach, self.settings.hosts))

    def for_test(self, reached: Sequence[str]) -> tuple[Launcher, int]:
        """Use all hosts that answered."""
        hosts = [host for host in self.settings.hosts if host in reached][:MOST_TESTED]
        return type(self)({**self.settings.model_dump(exclude_unset=True), "hosts": hosts}), len(hosts)

    def _reach(self, host: str) -> Reached:
        version = shlex.join(
            [self.settings.python, "-I", "-S", "-c", "import platform; print(platform.python_version())"]
        )
        begun = time.monotonic()
        try:
            answer = run_bounded([*self.settings.ssh(host), f"echo {REACHED}; {version}"], limit_s=REACH_LIMIT_S)
        except subprocess.TimeoutExpired:
            return Reached(
                host, REACH_LIMIT_S, problem=f"Host {host} did not answer within {amount(REACH_LIMIT_S, 's')}."
            )
        except OSError as error:
            return Reached(host, time.monotonic() - begun, problem=f"Host {host} cannot be used: {error.strerror}.")
        took_s = time.monotonic() - begun
        _, there, version_line = answer.stdout.partition(REACHED)
        return (
            Reached(host, took_s, version_line.strip().partition("\n")[0])
            if there
            else why_unreached(host, took_s, answer.stderr, self.settings)
        )

    def open(self, *, host_count: int, link: Link, tell: Tell = ignore_progress) -> Session:
        problems = [*self.probe(), *self.refusals(link)]
        if host_count > len(self.settings.hosts):
            problems.append(f"This cluster has {len(self.settings.hosts)} hosts, not {host_count}.")
        if problems:
            raise ClusterUnavailable(" ".join(problems))
        agents: dict[str, SshAgent] = {}
        try:
            for host in self.host_names(host_count):
                tell(f"connecting to {host}")
                agents[host] = SshAgent(host, self.connection(host))
        except BaseException:
            for agent in agents.values():
                agent.close()
            raise
        scratch = Path(self.settings.scratch, f"rankwire-{secrets.token_hex(6)}")
        remote_shell = quoted_script([*self.settings.between_hosts])
        return RemoteSession(self, agents, scratch, remote_shell, {"back_end": "real hosts over ssh"})


class SshAgent(RemoteAgent):
    """Agent whose end is explained by ssh's messages."""

    def exit_report(self) -> str:
        return explain(self.host, self.stderr_text())


def quoted_script(*lines: list[str]) -> str:
    """Return a shell script of argv lists; the last one gets the script's arguments."""
    commands = [shlex.join(line) for line in lines]
    commands[-1] = f'exec {commands[-1]} "$@"'
    return "\n".join(["#!/bin/sh", *commands, ""])
