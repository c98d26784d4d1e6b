"""``python -m analysis``: without numba where the kernels that it takes were kept, else with it, and they are kept then."""

import os
import stat
import sys
from pathlib import Path

from analysis import kernels
from analysis.command_line.cli import main
from analysis.kernels.ready import NotReady

_WITH_COMPILER = "RANKWIRE_COMPILE_KERNELS"
"""Set for a process that was started anew since some kernel was not kept."""


def _can_start_anew(arguments: list[str]) -> bool:
    """One file that can be read twice, and nothing printed before it was read."""
    if "-" in arguments:
        return False
    modes = [path.stat().st_mode for path in map(Path, arguments) if path.exists()]
    return len(modes) == 1 and stat.S_ISREG(modes[0])


def _run() -> int:
    if _WITH_COMPILER not in os.environ and _can_start_anew(sys.argv[1:]):
        try:
            kernels.use_ready()
            return main()
        except NotReady:
            os.environ[_WITH_COMPILER] = "1"
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - ourselves
    status = main()
    if status == 0 and _WITH_COMPILER in os.environ:
        kernels.keep_ready()
    return status


sys.exit(_run())
