"""Real hosts, reached with ssh: the worker needs nothing on them but a login, Python 3.9 and an MPI library."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from experiments.cluster_kinds.ssh import Ssh, SshSettings
from workers.errors import ClusterUnavailable
from workers.hosts.programs import missing_programs
from workers.hosts.remote_keeper import RemoteKeeper, in_shell, start_argv
from workers.launchers.base import Link, Session, Tell, say_nothing
from workers.launchers.remote import HostsLauncher, RemoteSession, quoted_script

# What ssh says -> what it means, in the order of looking.
_REFUSALS = (
    (r"Host key verification failed", "its host key is not the known one, or not known at all (known_hosts)"),
    (r"Permission denied \(([^)]*)\)", "it refuses the key of this user (Permission denied: {0})"),
    (r"(?:Load key|Identity file) \"?([^\": ]+)\"?.*", "the key {0} cannot be read"),
    (r"Could not resolve hostname", "its name cannot be resolved"),
    (r"(Connection refused|No route to host|Connection timed out|Network is unreachable)", "{0}"),
    (r"(Connection (?:closed|reset) by .*)", "{0}"),
    (r"(?:^|: )([^:]*python[^:]*): .*not found", "it has no {0}"),
)


class SshLauncher(HostsLauncher):
    """mpirun on the first host; `ssh` from there to the others."""

    kind = Ssh()
    settings: SshSettings

    def probe(self) -> list[str]:
        """Programs here; whether the hosts answer, a trial finds out."""
        return missing_programs({"ssh": "openssh-client"})

    def host_names(self, host_count: int) -> tuple[str, ...]:
        return self.settings.hosts[:host_count]

    def connection(self, host: str) -> list[str]:
        """The command of the keeper's connection. Pure."""
        return [*self.settings.ssh(host), in_shell(start_argv(self.settings.python))]

    def open(self, *, host_count: int, link: Link, tell: Tell = say_nothing) -> Session:
        problems = [*self.probe(), *self.refusals(link)]
        if host_count > len(self.settings.hosts):
            problems.append(f"This cluster has {len(self.settings.hosts)} hosts, not {host_count}.")
        if problems:
            raise ClusterUnavailable(" ".join(problems))
        keepers: dict[str, SshKeeper] = {}
        try:
            for host in self.host_names(host_count):
                tell(f"connecting to {host}")
                keepers[host] = SshKeeper(host, self.connection(host))
        except BaseException:
            for keeper in keepers.values():
                keeper.close()
            raise
        scratch = Path(self.settings.scratch, f"rankwire-{secrets.token_hex(6)}")
        agent = quoted_script([*self.settings.between_hosts])
        return RemoteSession(self, keepers, scratch, agent, {"back_end": "real hosts over ssh"})


class SshKeeper(RemoteKeeper):
    """Says what ssh meant."""

    def obituary(self) -> str:
        return explain(self.host, self.last_words())


def explain(host: str, words: str) -> str:
    """Why ssh gave a host up, in a sentence."""
    for pattern, meaning in _REFUSALS:
        if (match := re.search(pattern, words, re.MULTILINE)) is not None:
            return f"Host {host} cannot be used: {meaning.format(*match.groups())}."
    last = [line.strip().rstrip(".") for line in words.splitlines() if line.strip()][-1:]
    return f"The connection to host {host} ended" + (f": {last[0]}." if last else ".")
