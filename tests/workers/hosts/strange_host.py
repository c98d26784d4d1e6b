"""Hosts that send what no agent sends."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from workers.agent.remote import GREETING
from workers.hosts.remote_agent import RemoteAgent


class StrangeHost:
    """Hostile agent: `files` by name, `names` that it lists, other `answers`."""

    host = "node7"

    def __init__(
        self, files: Mapping[str, Sequence[bytes]], names: Sequence[Any] | None = None, answers: str = "files"
    ) -> None:
        self._answers = answers
        self._files = files
        self._names = list(files if names is None else names)

    def ask(self, what: str, /, **fields: Any) -> tuple[dict[str, Any], bytes]:
        assert what in ("files", "nested")
        return {"files": self._names if what == self._answers else []}, b""

    def size(self, path: str) -> int:
        return sum(map(len, self._content(path)))

    def read(self, path: str, *, most: int) -> Iterator[bytes]:
        yield from self._content(path)

    def _content(self, path: str) -> Sequence[bytes]:
        return self._files[next(name for name in self._files if path.endswith(PurePosixPath(name).name))]


HOSTILE_AGENT = """
import json, os, struct, sys, threading
lengths = struct.Struct(">II")

def send(message, attachment=b""):
    text = json.dumps(message).encode()
    data = memoryview(lengths.pack(len(text), len(attachment)) + text + attachment + b"\\n")
    while data:
        data = data[os.write(1, data):]

def flood(messages):
    text = b'{"a": 1}'
    while True:
        os.write(1, (lengths.pack(len(text), 0) + text + b"\\n") * messages)

sys.stdin.buffer.read(int(sys.stdin.buffer.read(8)))
os.write(1, FIRST_WORDS)
while header := sys.stdin.buffer.read(8):
    request = json.loads(sys.stdin.buffer.read(lengths.unpack(header)[0]))
    sys.stdin.buffer.read(1)
    answer = {"answers": request["sequence"]}
    if request["do"] == "hello":
        send({**answer, "host": "odd", "root": False, "variables": {}, "python": "3.9"})
        continue
    answer.update({"spawn": {"pid": 7, "started_ns": 1}, "read": {"size": 1}}.get(request["do"], {}))
    BEHAVIOUR
"""
"""An agent's program: FIRST_WORDS is written first, BEHAVIOUR answers each further request with `send` and `flood`."""


@contextlib.contextmanager
def hostile(behaviour: str) -> Iterator[RemoteAgent]:
    """An agent that answers requests by a statement of Python."""
    program = HOSTILE_AGENT.replace("FIRST_WORDS", repr(GREETING)).replace("BEHAVIOUR", behaviour)
    agent = RemoteAgent("odd", [sys.executable, "-c", program])
    try:
        agent.connect(Path("/scratch"))
        yield agent
    finally:
        agent._process.kill()
        agent.close()
