"""Remote shell of the test-bed, from a sandbox through the agent.

mpirun calls `CLIENT` in place of ssh. It passes its standard streams to the agent and waits. The agent starts the command in
the same sandbox on that host, so that no program needs the right to enter a namespace, and none can leave the sandbox.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from selectors import EVENT_READ, BaseSelector

PYTHON = "/usr/bin/python3"
MOST_WAITING = 512
"""Connections at once: two for each of the most hosts that a test-bed has."""
REQUEST_LIMIT_BYTES = 1 << 17
FAILED = 255  # ssh's own exit status for failures

CLIENT = f"""#!{PYTHON} -IS
import sys, _socket
end = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
end.connect("{{socket}}")
words = sys.argv[1:]
while words[0].startswith("-"):
    del words[0]  # Hydra takes every agent for an ssh, and puts ssh's options first
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
request = "\\0".join((words[0], " ".join(words[1:]))).encode("utf-8", "surrogateescape")
end.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
answer = end.recv(16)
sys.exit(int(answer) if answer else {FAILED})
"""

Start = Callable[[str, str, list[int]], int]
"""Host, command for its shell, and standard streams to the process id of the command; raises OSError."""


class RshServer:
    """Socket inside the sandbox that accepts commands for other hosts."""

    def __init__(self, path: Path, selector: BaseSelector, start: Start) -> None:
        self._selector = selector
        self._start = start
        self._waiting: dict[int, socket.socket] = {}
        self._clients: set[socket.socket] = set()
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        path.unlink(missing_ok=True)
        self._listening.bind(str(path))
        path.chmod(0o666)
        self._listening.listen(MOST_WAITING)
        selector.register(self._listening, EVENT_READ, self._accept)

    def close(self) -> None:
        """Drop all clients: requests of an ended job must not start programs of the next."""
        for end in [self._listening, *self._clients]:
            with contextlib.suppress(KeyError):  # its request was read
                self._selector.unregister(end)
            self._close(end)

    def ended(self, pid: int, status: int) -> None:
        """Send the exit status of a command to its client."""
        end = self._waiting.pop(pid, None)
        if end is not None:
            self._answer(end, status if status >= 0 else 128 - status)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            end, _ = self._listening.accept()
            end.setblocking(False)
            self._clients.add(end)
            if len(self._clients) > MOST_WAITING:
                self._close(end)
            else:
                self._selector.register(end, EVENT_READ, partial(self._read_request, end))

    def _read_request(self, end: socket.socket) -> None:
        """Read one request; close a client that sends none."""
        if end not in self._clients:  # closed since the selector reported it
            return
        self._selector.unregister(end)
        streams: list[int] = []
        try:
            request, streams, _flags, _address = socket.recv_fds(end, REQUEST_LIMIT_BYTES, 3)
            host, parted, command = request.decode("utf-8", "surrogateescape").partition("\0")
            if parted and len(streams) == 3:
                self._waiting[self._start(host, command, streams)] = end
                return
            self._close(end)
        except OSError:
            self._answer(end, FAILED)
        finally:
            for stream in streams:
                os.close(stream)

    def _answer(self, end: socket.socket, status: int) -> None:
        with contextlib.suppress(OSError):
            end.send(str(status).encode())
        self._close(end)

    def _close(self, end: socket.socket) -> None:
        self._clients.discard(end)
        end.close()
