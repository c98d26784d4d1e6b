"""Messages between a worker and its keeper: one JSON object per packet of a Unix SEQPACKET socket, with descriptors.

The socket keeps message borders, so there is no framing to get wrong; descriptors (standard streams, the memory file of
a capture) travel beside the message they belong to.
"""

from __future__ import annotations

import json
import os
import socket
from typing import Any

Message = dict[str, Any]

MESSAGE_LIMIT_BYTES = 1 << 20
DESCRIPTOR_LIMIT = 8


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, buffers wide enough for a long command line."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_LIMIT_BYTES)
    return ours, theirs


def send(end: socket.socket, message: Message, descriptors: tuple[int, ...] = ()) -> None:
    """Send one message. Raises OSError (EMSGSIZE, EPIPE) as the socket does."""
    data = json.dumps(message).encode()
    if descriptors:
        socket.send_fds(end, [data], list(descriptors))
    else:
        end.send(data)


def receive(end: socket.socket) -> tuple[Message, list[int]] | None:
    """The next message and its descriptors; None when the other side is gone. Raises BlockingIOError when none waits."""
    try:
        data, descriptors, _flags, _address = socket.recv_fds(end, MESSAGE_LIMIT_BYTES, DESCRIPTOR_LIMIT)
    except ConnectionResetError:
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    if not data:
        return None
    message: Message = json.loads(data)
    return message, descriptors
