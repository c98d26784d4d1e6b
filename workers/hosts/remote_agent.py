"""Worker's side of an agent on another machine: send, start, talk to it.

A host needs only Python 3.9: the agent travels as a zip archive over the connection that it then serves, an `ssh` or `srun`
process of the worker.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import shlex
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from analysis.numbers import amount
from workers.agent import rpc
from workers.agent.remote import GREETING
from workers.agent.variables import without_job
from workers.errors import ClusterUnavailable, LaunchFailed
from workers.hosts import answers
from workers.hosts.processes import (
    ANSWER_LIMIT_BYTES,
    ROOT,
    STDERR_LIMIT_BYTES,
    WAIT_SLICE_S,
    Agent,
    Process,
    end_all,
)

CONNECT_LIMIT_S = 60.0
CHUNK_BYTES = 1 << 20
ANSWER_TEXT_BYTES = 8 << 20
"""Of an answer's JSON. Names of files come in several answers: one for 100 000 would need up to 150 MB."""
READ_LIMIT_S = 3600.0
"""Of a file; a host may send slowly."""
PARTS = (
    *("experiments/__init__.py", "experiments/common/__init__.py", "experiments/common/counter_fixes.py"),
    *("experiments/common/processors.py", "experiments/common/trees.py", "workers/__init__.py"),
    *(f"workers/agent/{name}.py" for name in (
    "__init__", "contention", "counters", "disturbance", "linux", "machine", "mpi_files", "offloads", "process_table", "ranks", "remote",
    "rpc", "spawn", "supervisor", "variables",
)),
    "workers/hosts/__init__.py",
    *(f"workers/hosts/counters/{name}.py" for name in (
        "__init__", "board", "cray", "ethernet", "filesystems", "gpu", "ports", "processor", "rapl", "recorder", "source", "sources",
    )),
)  # fmt: skip
# The archive's length in eight digits, the archive, then messages. Imported from memory: no file is left anywhere.
BOOTSTRAP = """\
import os, sys
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            sys.exit(1)
        data += part
    return data
archive = os.memfd_create("agent")
os.write(archive, read(int(read(8))))
sys.path.insert(0, "/proc/self/fd/%d" % archive)
from workers.agent.remote import start
start()
"""


def archive() -> bytes:
    """Return the agent's modules as a zip file; equal sources give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in PARTS:
            packed.writestr(zipfile.ZipInfo(name), (ROOT / name).read_bytes())
    return buffer.getvalue()


def start_argv(python: str) -> list[str]:
    """Return the command that starts an agent on the host."""
    return [python, "-I", "-S", "-c", BOOTSTRAP]


def in_shell(argv: Sequence[str]) -> str:
    """Return the command as one word for `ssh`, which passes it to a login shell."""
    return "exec " + shlex.join(argv)


class RemoteAgent(Agent):
    """Agent at the other end of a connection.

    The constructor starts the connection and `connect` completes it, so that the hosts of a cluster start in parallel.
    """

    def __init__(self, host: str, connection: Sequence[str]) -> None:
        """Start the connection by its full command. Raises ClusterUnavailable."""
        self.host = host
        self.name = ""
        """Host name of the host; set by `connect`."""
        self.home: Mapping[str, str] = {}
        self.python = ""
        stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the agent
        reading, theirs_out = os.pipe2(os.O_CLOEXEC)
        theirs_in, writing = os.pipe2(os.O_CLOEXEC)
        channel = rpc.Stream(reading, writing, text_bytes=ANSWER_TEXT_BYTES, attachment_bytes=CHUNK_BYTES)
        try:
            process = subprocess.Popen(
                connection,
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=stderr,
                start_new_session=True,
                env=without_job(os.environ),
            )
        except OSError as error:
            channel.close()
            raise ClusterUnavailable(f"{connection[0]} cannot be started: {error.strerror}.") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        super().__init__(channel, process, stderr)
        self._stream = channel

    def connect(self, scratch: Path) -> rpc.Message:
        """Send the agent, make its scratch directory, return the facts of its host.

        Raises ClusterUnavailable with the host and the reason.
        """
        packed = archive()
        try:
            rpc.write(self._stream.writing, b"%08d" % len(packed) + packed)
        except OSError:
            self._lost()
        self._await_greeting()
        try:
            facts, _ = self.ask("hello", scratch=str(scratch))
        except OSError as error:
            raise ClusterUnavailable(f"{self.host}: {error.strerror} ({scratch}).") from error
        self.name, self.home, self.python = facts["host"], facts["variables"], facts["python"]
        return facts

    def _await_greeting(self) -> None:
        """Skip the output of login scripts."""
        said = b""
        deadline = time.monotonic() + CONNECT_LIMIT_S
        while not said.endswith(GREETING):
            self._require_few_complaints()
            ready, _, _ = select.select([self._stream], [], [], WAIT_SLICE_S)
            if time.monotonic() >= deadline:
                self._process.kill()
                raise ClusterUnavailable(f"{self.host} did not answer within {amount(CONNECT_LIMIT_S, 's')}.")
            if not ready:
                continue
            if not (byte := os.read(self._stream.reading, 1)):
                self._lost()
            said = (said + byte)[-4096:]

    def spawn(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        files: Sequence[str],
        job: bool = False,
        niceness: int = 0,
    ) -> Process:
        """Start a program; `files`: paths or "memory:NAME". Raises LaunchFailed."""
        try:
            answer, _ = self.ask(
                "spawn",
                argv=list(argv),
                environment=dict(environment),
                directory=str(directory),
                files=list(files),
                job=job,
                niceness=niceness,
            )
        except OSError as error:
            raise LaunchFailed(f"{argv[0]} cannot be started on {self.host}: {error.strerror}.") from error
        return Process(self, answer["pid"], answer["started_ns"])

    def write(self, path: Path, content: bytes, mode: int = 0o600) -> None:
        """Put a file on the host. Raises OSError as the host does."""
        self.ask("write", content, path=str(path), mode=mode)

    def size(self, path: str) -> int:
        """Return the present size of a file or a memory on the host. Raises OSError."""
        size: int = self.ask("read", path=path, offset=0, limit=0)[0]["size"]
        return size

    def read(self, path: str, offset: int = 0, *, most: int) -> Iterator[bytes]:
        """Yield a file or memory from `offset` to its end, at most `most` bytes.

        Raises OSError, and ClusterUnavailable if the host sends more than was requested.
        """
        end, deadline_s = offset + most, time.monotonic() + READ_LIMIT_S
        while offset < end:
            if time.monotonic() >= deadline_s:
                raise ClusterUnavailable(f"{self.host} did not send a file within {amount(READ_LIMIT_S, 's')}.")
            limit = min(CHUNK_BYTES, end - offset)
            _, part = self.ask("read", path=path, offset=offset, limit=limit)
            if len(part) > limit:
                raise ClusterUnavailable(f"{self.host} sends more of a file than was requested.")
            yield part
            offset += len(part)
            if len(part) < limit:
                return

    def outputs(self, commands: Sequence[Sequence[str]], host: str | None = None) -> list[str]:
        names = [f"memory:answer-{number}" for number in range(len(commands))]
        running = {}
        for argv, name in zip(commands, names, strict=True):
            with contextlib.suppress(LaunchFailed):
                running[name] = self.spawn(
                    argv,
                    environment={"PATH": self.search_path(), "LC_ALL": "C"},
                    directory=Path("/"),
                    files=(os.devnull, name, os.devnull),
                )
        end_all(list(running.values()))
        read = {name: b"".join(self.read(name, most=ANSWER_LIMIT_BYTES)) for name in running}
        return [read.get(name, b"").decode(errors="replace") for name in names]

    def machine(self, program: Sequence[str], mpirun: str, variables: Mapping[str, str]) -> dict[str, Any]:
        answer, _ = self.ask("machine", program=list(program), mpirun=mpirun, variables=dict(variables))
        facts: dict[str, Any] = answer["facts"]
        return facts

    def processors(self) -> dict[str, Any]:
        answer, _ = self.ask("processors")
        return {name: answer[name] for name in ("cores", "allowed")}

    def search_path(self) -> str:
        """Return PATH of the host's login, followed by the system's directories."""
        parts = self.home.get("PATH", "").split(":")
        return ":".join(dict.fromkeys([part for part in parts if part] + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]))

    def stderr_text(self) -> str:
        """Return the standard error of the connection's own program."""
        if self._stderr.closed:
            return ""
        self._stderr.seek(0)
        return self._stderr.read(STDERR_LIMIT_BYTES).decode(errors="replace").strip()

    def close(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            super().close()

    def _checked(self, request: str, answer: rpc.Message) -> rpc.Message:
        return answers.checked(request, answer, self.host)

    def _note_end(self, pid: int) -> None:
        pass

    def _kill_orphans(self) -> None:
        """End the connection's process, which normally ends with its agent."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def exit_report(self) -> str:
        words = [line for line in self.stderr_text().splitlines() if line.strip()]
        return f"The connection to {self.host} ended" + (f": {words[-1].strip().rstrip('.')[:500]}." if words else ".")
