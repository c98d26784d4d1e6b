"""Programs of this machine."""

from __future__ import annotations

import errno
import os
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Final

from analysis.numbers import size

MOST_PRINTED_BYTES: Final = 16 << 20
"""Of a command of another machine, which may be hostile."""


def find_program(program: str) -> str | None:
    """Return the path of a program; also searches sbin, which PATH of users lacks."""
    return shutil.which(program, path=search_path())


def missing_programs(needed: Mapping[str, str]) -> list[str]:
    """Return a sentence for every missing program; `needed` maps programs to packages."""
    return [
        f"The program {program} is missing: install the package {package}."
        for program, package in needed.items()
        if find_program(program) is None
    ]


def run_bounded(
    argv: Sequence[str], text: str = "", *, limit_s: float, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command whose other end may print without end.

    Raises OSError (EFBIG if it prints more than `MOST_PRINTED_BYTES`) and subprocess.TimeoutExpired.
    """
    deadline_s, outputs = time.monotonic() + limit_s, (bytearray(), bytearray())
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text.encode())
        stdin.seek(0)
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=stdin, stdout=pipe, stderr=pipe, env=environment)
    with process, selectors.DefaultSelector() as selector:
        try:
            for stream, output in zip((process.stdout, process.stderr), outputs, strict=True):
                selector.register(stream, selectors.EVENT_READ, output)  # type: ignore[arg-type]
            while selector.get_map():
                ready = selector.select(max(0.0, deadline_s - time.monotonic()))
                if not ready and time.monotonic() >= deadline_s:
                    raise subprocess.TimeoutExpired(argv, limit_s)
                for key, _ in ready:
                    key.data.extend(part := os.read(key.fd, 1 << 16))
                    if not part:
                        selector.unregister(key.fileobj)
                    if len(key.data) > MOST_PRINTED_BYTES:
                        raise OSError(errno.EFBIG, f"it prints more than {size(MOST_PRINTED_BYTES)}")
            status = process.wait(max(0.0, deadline_s - time.monotonic()))
        except BaseException:
            process.kill()
            raise
    stdout, stderr = (output.decode(errors="replace") for output in outputs)
    return subprocess.CompletedProcess(argv, status, stdout, stderr)


def search_path() -> str:
    """Return PATH of all workers, or of this process, and the system's."""
    parts = (os.environ.get("RANKWIRE_PATH") or os.environ.get("PATH", "")).split(":")
    return ":".join(dict.fromkeys([part for part in parts if part] + ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]))
