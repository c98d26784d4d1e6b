"""Limits of a trial's programs on this machine, for workers.agent.sandbox."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from analysis.numbers import plural, size
from experiments.common import trees
from workers.agent.machine import memory_bytes
from workers.agent.sandbox import HIDDEN

NO_USER = 65530
"""User number without an account: neither systemd nor Debian assigns 65520 to 65533."""
OPEN_FILES = 1 << 16
MOST_OPEN = 1 << 20
"""Files that the programs of a trial have open together: 256 MiB of the kernel's memory, which no other limit sees."""
SCRATCH_BYTES = 1 << 30
"""Of /tmp and the other temporary directories, which are memory."""
MEMORY_SHARE = 0.9
PROCESSES = Path("/proc")
"""Programs of trials see another one; the worker's has its variables."""
FOR_OTHERS = stat.S_IROTH | stat.S_IXOTH
FULL = 0.9  # the kernel counts also processes of the agent that have the same user
KEPT_OF_HOME = (".conda", ".julia", ".local", ".openmpi", ".prte", ".pyenv", ".spack")
"""Directories of installed programs; all other names that begin with a dot may hold keys and passwords."""
MIB = 1 << 20
MOST_TEXT_BYTES = 1 << 20
"""Size limit of an input file on a trial's host."""
BLOCK_BYTES = 512  # of stat(2)
CONTAINER = "apptainer exec "
NO_CONTAINER = (
    "Apptainer cannot run here: programs of trials on this machine are confined and can make no namespaces, which containers are "
    "made of. Run it on hosts of ssh or Slurm, without a container here (“clusters” of the program), or on the cluster of this "
    "machine with “Confine programs” switched off."
)


def refused_container(program: Sequence[str]) -> str | None:
    """Return why a program, as an argv, cannot run in a sandbox; None if it can."""
    return NO_CONTAINER if CONTAINER in " ".join(program) else None


class DiskUse(NamedTuple):
    """Bytes and number of a trial's files and directories; both free on the disk."""

    bytes: int
    files: int
    free_bytes: int
    free_files: int = 0


@dataclass(frozen=True)
class Limits:
    """Visible files and resources of a trial.

    `user`: of programs if root runs the worker; `hidden`: invisible paths, besides the worker's temporary files. `memory_bytes`
    None: most of the machine's. `disk_bytes` and `files` (with directories): of the trial's directories; `least_free_bytes`: of
    their disk. `output_bytes`: of the stored output. `open_files`: of all programs of the machine, beyond which a trial ends.
    """

    user: int = NO_USER
    hidden: tuple[Path, ...] = ()
    processes: int = 4096
    memory_bytes: int | None = None
    disk_bytes: int = 16 << 30
    files: int = 100_000
    least_free_bytes: int = 0
    open_files: int = sys.maxsize
    output_bytes: int = 16 << 20

    @property
    def most_memory_bytes(self) -> int:
        """Memory of all programs together, and of each."""
        return self.memory_bytes or whole_mib(memory_bytes() * MEMORY_SHARE)

    def plan(self, *, readable: Iterable[Path], writable: Iterable[Path]) -> dict[str, Any]:
        """Return `workers.agent.sandbox.SandboxPlan` as a message."""
        return {
            "user": self.user,
            "hidden": [tempfile.gettempdir(), *map(str, self.hidden)],
            "readable": [str(path) for path in readable],
            "writable": [str(path) for path in writable],
            "limits": {
                "processes": self.processes,
                "open_files": OPEN_FILES,
                "file_bytes": self.disk_bytes,
                "memory_bytes": self.most_memory_bytes,
                "scratch_bytes": min(SCRATCH_BYTES, self.most_memory_bytes),
                "files": self.files,
            },
        }

    def refusal(self, program: Path) -> str:
        """Return why programs of a trial cannot be this file, as a sentence; else empty."""
        if self.hides(program):
            return f"The program {program} is in a directory that trials cannot see: install it elsewhere."
        if os.geteuid() == 0 and program.stat().st_mode & FOR_OTHERS != FOR_OTHERS:
            return f"The program {program} is closed to others, and trials run as a user of their own: chmod o+rx it."
        return ""

    def visible(self, argv: Sequence[str]) -> list[str]:
        """Return an argv without the files that its programs cannot read.

        Others have no facts either: the worker may read more, and a repository that a program wrote may start commands of git.
        """
        words = [word for word in argv if not word.startswith("/") or self._is_visible(word)]
        return words if words[:1] == [*argv][:1] else []

    def _is_visible(self, path: str) -> bool:
        file = Path(path).resolve()
        if self.hides(file):
            return False
        with contextlib.suppress(OSError):
            mode = file.stat().st_mode
            return stat.S_ISREG(mode) and (os.geteuid() != 0 or bool(mode & stat.S_IROTH))
        return True

    def hides(self, file: Path) -> bool:
        """Return whether programs of trials cannot see a file, or can write it."""
        return bool({file, *file.parents} & {PROCESSES, *(path.resolve() for path in self.hidden)})

    def read_text(self, path: str) -> str:
        """Return a file that programs of trials may read. Raises OSError."""
        return read_text(path, allowed=self._may_read)

    def _may_read(self, descriptor: int) -> bool:
        """Judge the file that was really opened, whatever links led to it."""
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        if self.hides(file) or {*file.parents} & {path.resolve() for path in (*HIDDEN, Path(tempfile.gettempdir()))}:
            return False
        if not file.samefile(f"/proc/self/fd/{descriptor}"):  # that of a process with another root
            return False
        return os.geteuid() != 0 or (bool(os.fstat(descriptor).st_mode & stat.S_IROTH) and _open_to_others(file.parent))

    def file_too_long(self) -> str:
        """Return the meaning of SIGXFSZ as a sentence."""
        return f"It wrote a file of more than the {size(self.disk_bytes)} that a trial may have on disk."

    def exceeded(self, use: dict[str, Any], disk: DiskUse) -> str:
        """Return the limit that a trial reached, as a sentence, by the agent's `use`."""
        refused = use["refused"]
        if use["processes"] >= FULL * self.processes or refused.get("processes"):
            return (
                f"It started all of the {plural(self.processes, 'process', 'processes')} that a trial may have at once."
            )
        if use["memory_bytes"] > self.most_memory_bytes or refused.get("memory"):
            return (
                f"It took more than the {size(self.most_memory_bytes)} of memory that a trial may have: "
                "RANKWIRE_TRIAL_MEMORY_MIB sets this."
            )
        return self.exceeded_on_disk(disk)

    def exceeded_on_disk(self, disk: DiskUse) -> str:
        """Return the limit of disk or open files that a trial reached, as a sentence."""
        if disk.bytes > self.disk_bytes + MIB:  # one file may have all of it, beside the reports of the ranks
            return f"It wrote more than the {size(self.disk_bytes)} that a trial may have on disk."
        if disk.files > self.files:
            return (
                f"It made more than the {self.files} files and directories that a trial may have: RANKWIRE_TRIAL_FILES "
                "sets this."
            )
        if disk.free_bytes < self.least_free_bytes:  # files without a name are counted nowhere else
            return f"Less than {size(self.least_free_bytes)} of the disk were free while it ran."
        if open_files()[0] > self.open_files:
            return f"More than {self.open_files} files were open on this machine while it ran."
        return ""

    def disk_use(self, directories: Sequence[Path]) -> DiskUse:
        """Return the use of a trial's directories, counted until a limit is exceeded."""
        total = count = 0
        free_bytes, free_files = free_space(directories[0])
        for directory in directories:
            with contextlib.suppress(OSError):  # a program moved a directory meanwhile: the next look counts again
                for entry in trees.walk(directory):
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        total += entry.status.st_blocks * BLOCK_BYTES
                    if count > self.files or total > self.disk_bytes + MIB:
                        break
        return DiskUse(total, count, free_bytes, free_files)

    def may_be_exceeded(self, counted: DiskUse, directory: Path) -> bool:
        """Return whether the disk lost what remained to the trial at its last count.

        Or its open files. A few system calls, whatever the trial wrote, and also for files without a name.
        """
        free_bytes, free_files = free_space(directory)
        return (
            free_bytes < self.least_free_bytes
            or open_files()[0] > self.open_files
            or counted.free_bytes - free_bytes > self.disk_bytes - counted.bytes
            or counted.free_files - free_files > self.files - counted.files
        )


def free_space(directory: Path) -> tuple[int, int]:
    """Return the free bytes and inodes of a disk for users without rights."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize, status.f_favail


def open_files() -> tuple[int, int]:
    """Return the open files of the machine, and the most that its kernel permits."""
    used, _, most = Path("/proc/sys/fs/file-nr").read_text().split()
    return int(used), int(most)


def read_text(path: str, *, allowed: Callable[[int], bool] = lambda _: True) -> str:
    """Return a plain text file, bounded. Raises OSError, also if not `allowed`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        if not allowed(descriptor):
            raise OSError(errno.EACCES, "programs of trials may not read it")
        return as_text(stream.read(MOST_TEXT_BYTES + 1))


def as_text(content: bytes) -> str:
    """Decode a text of limited length. Raises OSError."""
    if len(content) > MOST_TEXT_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {size(MOST_TEXT_BYTES)}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise OSError(errno.EINVAL, "it is no text in UTF-8") from None


def whole_mib(size_bytes: float) -> int:
    """Round down to whole MiB."""
    return int(size_bytes) // MIB * MIB


def private_files(home: Path) -> list[Path]:
    """Return the worker's hidden home files that programs of trials need not see."""
    try:
        return [path for path in home.iterdir() if path.name.startswith(".") and path.name not in KEPT_OF_HOME]
    except OSError:
        return []


def open_path(path: str) -> str:
    """Return PATH without directories that programs of trials cannot enter.

    They run as another user. Otherwise one program would be described and another one run.
    """
    if os.geteuid() != 0:
        return path
    return ":".join(part for part in path.split(":") if _open_to_others(Path(part)))


def _open_to_others(directory: Path) -> bool:
    try:
        return all(path.stat().st_mode & stat.S_IXOTH for path in (directory, *directory.parents))
    except OSError:
        return False


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are not below another of them."""
    resolved = {path.resolve() for path in paths}
    return sorted(path for path in resolved if not resolved & set(path.parents))
