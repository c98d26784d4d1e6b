"""Agent protocol: messages between a worker and its agent.

On one machine: one JSON object per packet of a Unix SEQPACKET socket, which preserves message borders; descriptors (standard
streams, the memory file of a capture) are attached to their message. Between machines: two pipes of an ssh or srun connection;
each message is two lengths, a JSON object and plain bytes.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import select
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]

MESSAGE_LIMIT_BYTES = 1 << 20
STREAM_LIMIT_BYTES = 64 << 20
"""Of a message between machines, and of its attachment: the other end may be hostile."""
MOST_CONTAINERS = 200_000
"""Objects and lists of a message between machines: an empty one of 3 bytes takes over 200 bytes of memory."""
_NO_SIGNS = bytes(set(range(256)) - set(b'"[{'))
DESCRIPTOR_LIMIT = 8
STALL_LIMIT_S = 60.0
SLOWEST_BYTES_PER_S = 100_000
"""Of a message between machines, beside its `STALL_LIMIT_S`: an end that trickles is as good as gone."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two connected sockets with buffers for long command lines."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_LIMIT_BYTES)
    return ours, theirs


class Packets:
    """Either end of the socket."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def fileno(self) -> int:
        return self.end.fileno()

    def receive(self) -> tuple[Message, list[int]] | None:
        """Return the next message and its descriptors; None if the other side is gone."""
        try:
            data, descriptors, _flags, _address = socket.recv_fds(self.end, MESSAGE_LIMIT_BYTES, DESCRIPTOR_LIMIT)
        except ConnectionResetError:
            return None
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        return (json.loads(data), descriptors) if data else None

    def send(self, message: Message, attachment: tuple[int, ...] = ()) -> None:
        """Send one message. Raises OSError (EMSGSIZE, EPIPE) as the socket does.

        The kernel refuses descriptors if those on their way, of all programs of the user, exceed the sender's soft limit. Programs of
        trials have half of the hard one.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            socket.send_fds(self.end, [json.dumps(message).encode()], list(attachment))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    def discard(self, attachment: Iterable[int]) -> None:
        """Close our copies of descriptors that have arrived or are used up."""
        for descriptor in attachment:
            os.close(descriptor)

    def close(self) -> None:
        self.end.close()


class Stream:
    """Either end of a connection of two pipes; reads block to whole messages."""

    _LENGTHS = struct.Struct(">II")
    _END = b"\n"  # srun holds back what comes after the last newline

    def __init__(
        self,
        reading: int,
        writing: int,
        *,
        text_bytes: int = STREAM_LIMIT_BYTES,
        attachment_bytes: int = STREAM_LIMIT_BYTES,
    ) -> None:
        """Use two pipes; the limits are of a received message."""
        self.reading, self.writing = reading, writing
        self._limits = text_bytes, attachment_bytes

    def fileno(self) -> int:
        return self.reading

    def receive(self) -> tuple[Message, bytes] | None:
        """Return the next message and its attachment; None if the other side is gone.

        None also if it sends what is no message.
        """
        lengths = self._read(self._LENGTHS.size)
        if lengths is None:
            return None
        text_bytes, attachment_bytes = self._LENGTHS.unpack(lengths)
        if text_bytes > self._limits[0] or attachment_bytes > self._limits[1]:
            return None
        text, attachment = self._read(text_bytes), self._read(attachment_bytes)
        if text is None or attachment is None or self._read(len(self._END)) is None:
            return None
        if text.count(b"{") + text.count(b"[") > MOST_CONTAINERS < _containers(text):
            return None
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return (message, attachment) if isinstance(message, dict) else None

    def send(self, message: Message, attachment: bytes = b"") -> None:
        """Send one message. Raises OSError (EPIPE) as the pipe does."""
        text = json.dumps(message).encode()
        write(self.writing, self._LENGTHS.pack(len(text), len(attachment)) + text + attachment + self._END)

    def discard(self, attachment: bytes) -> None:
        pass

    def close(self) -> None:
        for descriptor in {self.reading, self.writing}:
            os.close(descriptor)
        self.reading = self.writing = -1

    def _read(self, length: int) -> bytes | None:
        parts, deadline_s = [], _deadline_s(length)
        while length:
            if not select.select([self.reading], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
                return None
            part = os.read(self.reading, min(length, MESSAGE_LIMIT_BYTES))
            if not part:
                return None
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


def _containers(text: bytes) -> int:
    """Return the opening brackets outside of strings: names of files may have some."""
    signs = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_SIGNS).replace(b'""', b"")
    return sum(map(len, signs.split(b'"')[::2]))


def _deadline_s(length: int) -> float:
    return time.monotonic() + STALL_LIMIT_S + length / SLOWEST_BYTES_PER_S


def write(descriptor: int, data: bytes) -> None:
    """Write all to a pipe in steps that cannot block. Raises OSError and TimeoutError."""
    unsent, deadline_s = memoryview(data), _deadline_s(len(data))
    while unsent:
        if not select.select([], [descriptor], [], max(0.0, deadline_s - time.monotonic()))[1]:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
        unsent = unsent[os.write(descriptor, unsent[: select.PIPE_BUF]) :]
