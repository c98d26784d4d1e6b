"""Other programs that want the machine's cores, during a block."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOOP = """
import time
end = time.monotonic() + 300
while time.monotonic() < end:
    pass
"""


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """So many processes that do nothing but use a core, for five minutes at most."""
    loops = [subprocess.Popen([sys.executable, "-I", "-S", "-c", LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
