"""User and machine of this process, for commands of suggested fixes. Pure."""

from __future__ import annotations

import os
import pwd
import socket


def user() -> str:
    """Return the name of the user that runs this process; its number without one."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a number without a name
        return str(os.getuid())


def in_words() -> str:
    """Return 'on vm, as rankwire'."""
    return f"on {socket.gethostname()}, as {user()}"
