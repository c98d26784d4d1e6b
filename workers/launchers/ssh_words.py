"""Explanations of ssh's errors, with suggested fixes. Pure."""

from __future__ import annotations

import re
import shlex
from typing import Final

from experiments.cluster_kinds.settings import Login
from workers.launchers.base import Reached

SSH_FAILED: Final = 255
"""Exit status of ssh itself, if no program of the host ended."""
_MOST_WORDS: Final = 8192
"""Last characters of standard error that are searched."""
KEY_UNREADABLE: Final = "cannot be read"
# Message of ssh -> its meaning, in the order of search: a key that cannot be read is refused as well.
_REFUSALS: Final = (
    (r"Host key verification failed", "its host key is not the known one, or not known at all (known_hosts)"),
    (r"Can't open user config file ([^:\n]+): ([^\r\n]+)", "the ssh configuration {0} cannot be opened: {1}"),
    (
        r"(?:Load key|Identity file) \"?([^\": ]+)\"?(?: not accessible)?: ([^.\r\n]+)",
        f"the key {{0}} {KEY_UNREADABLE}: {{1}}",
    ),
    (r"Permission denied \(([^)]*)\)", "it refuses the key of this user (Permission denied: {0})"),
    (r"Could not resolve hostname", "its name cannot be resolved"),
    (r"(Connection refused|No route to host|Connection timed out|Network is unreachable)", "{0}"),
    (r"(Connection (?:closed|reset) by .*)", "{0}"),
    (r"(?:^|: )([^:]*python[^:]*): .*not found", "it has no {0}"),
)
_REMEDIES: Final = (
    (
        r"Host key verification failed",
        "Log in once as the worker's user and compare the fingerprint with that of the host; a changed key may be an attack.",
        "{by_hand}",
    ),
    (
        r"Can't open user config file",
        "“ssh configuration” is the path of a file on the worker's machine that the worker's user may read.",
        "ls -l {config}",
    ),
    (
        r"Load key|Identity file",
        "“Private key” is a path on the worker's machine; only the worker's user may read the file.",
        "ls -l {private_key}",
    ),
    (
        r"Permission denied",
        "Put the public key among the authorised keys of that account.",
        "ssh-copy-id {key}{target}",
    ),
    (
        r"Could not resolve hostname",
        "Check its name in the settings of the cluster; else add it to /etc/hosts or to the ssh configuration.",
        "getent hosts {host}",
    ),
    (r"Connection refused", "Is sshd running there, and is “Port” right?", "{by_hand}"),
    (
        r"No route to host|timed out|unreachable",
        "Check that it is on, and that no firewall or jump host is in between.",
        "{by_hand}",
    ),
)


_UNCONNECTED: Final = re.compile(
    r"^(?:ssh: (?:Could not resolve hostname|connect to host) |Host key verification failed|[^ ]*: Permission denied \()",
    re.MULTILINE,
)


def never_connected(words: str) -> bool:
    """Return whether ssh's own message proves that no command ran on the host."""
    return _UNCONNECTED.search(words[-_MOST_WORDS:]) is not None


def quoted_path(path: str) -> str:
    """Quote a path for a shell, which still expands a “~” at its begin."""
    home = re.match(r"~[\w.-]*/", path)
    return home[0] + shlex.quote(path[home.end() :]) if home else shlex.quote(path)


def explain(host: str, words: str) -> str:
    """Return why ssh failed, as a sentence.

    The host prints a part of the words: patterns would search long ones for hours.
    """
    words = words[-_MOST_WORDS:]
    for pattern, meaning in _REFUSALS:
        if (match := re.search(pattern, words, re.MULTILINE)) is not None:
            return f"Host {host} cannot be used: {meaning.format(*match.groups())}."
    last = [line.strip().rstrip(".") for line in words.splitlines() if line.strip()][-1:]
    return f"The connection to host {host} ended" + (f": {last[0]}." if last else ".")


def why_unreached(host: str, took_s: float, words: str, login: Login) -> Reached:
    """Return a host that ssh could not reach, with a suggested fix."""
    target = f"{login.user}@{host}" if login.user else host
    port = f"-p {login.port} " if login.port else ""
    key = f"-i {shlex.quote(login.key)} " if login.key else ""
    config = f"-F {shlex.quote(login.config)} " if login.config else ""
    places = {"host": host, "target": port + target, "key": key, "by_hand": f"ssh {config}{key}{port}{target}"}
    places |= {"config": quoted_path(login.config or ""), "private_key": quoted_path(login.key or "")}
    words = words[-_MOST_WORDS:]
    for pattern, remedy, command in _REMEDIES:
        if re.search(pattern, words):
            commands = (command.format(**places),) if command else ()
            return Reached(host, took_s, problem=explain(host, words), remedy=remedy, commands=commands)
    return Reached(
        host,
        took_s,
        problem=explain(host, words),
        commands=(places["by_hand"],),
    )
