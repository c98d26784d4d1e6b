"""Sandbox of a trial's programs: own process ids, mounts and IPC.

Public files are read-only. Its first process, PID 1 of its process ids, makes the sandbox and then waits: when it ends,
the kernel ends everything in the sandbox, and it ends with the agent. The agent itself forks the programs, so that it
collects their end and their usage; they enter the sandbox before they execute. None of them sees the agent, the worker,
its directories or its sockets, and none has the right to leave (`workers.agent.seccomp`).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pwd
import re
import signal
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from experiments.common import trees
from workers.agent import linux, seccomp
from workers.agent.cgroup import Group
from workers.agent.process_table import PAGE_BYTES

RUN = Path("/run")
TEMPORARY = Path("/tmp")  # noqa: S108 - a file system of the sandbox's own
HIDDEN = (TEMPORARY, Path("/var/tmp"), RUN, Path("/dev/shm"))  # noqa: S108
"""Directories that programs of this machine share, hidden besides those of the plan."""
WRITABLE = (*HIDDEN[:2], HIDDEN[3])
DEVICES = Path("/dev")
KEPT_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "hugepages", "infiniband", "knem", "xpmem", "kfd", "dri/render*", "nvidia*",
)  # fmt: skip
"""Patterns of an allow list. Others may be open to the user or a group of the worker: disks, consoles, cameras, virtual machines."""
DEVICE_LINKS = {
    "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx",
}  # fmt: skip
USER_NAME = "trial"
SMALL_BYTES = 1 << 20
SYSTEM_V = {"sem": "32000 32000 500 1000", "msgmni": "1000"}
"""Limits of semaphores and message queues: kernel memory that outlives its process, up to 64 GB by default."""
READY = b"ready"
ESCAPED = re.compile(r"\\([0-7]{3})")  # of a space, a tab, a newline and a backslash
READ_ONLY = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID
OUT_OF_REACH = (errno.EACCES, errno.ENOENT, errno.EINVAL)
"""Errors of a mount below a hidden or closed directory."""
MOUNT_FLAGS = {
    "ro": linux.MS_RDONLY, "nosuid": linux.MS_NOSUID, "nodev": linux.MS_NODEV, "noexec": linux.MS_NOEXEC,
    "noatime": 1024, "nodiratime": 2048, "relatime": 1 << 21,
}  # fmt: skip


@dataclass(frozen=True)
class SandboxPlan:
    """Description of a sandbox.

    `user`: of the programs, if the agent can change it; `writable` directories belong to that user. `hidden`: invisible
    directories and files; `readable` and `writable` are visible even below one. `limits`: processes, open_files, file_bytes,
    memory_bytes, scratch_bytes (of each temporary directory, and of System V segments), files (in each of these).
    """

    user: int
    hidden: tuple[str, ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    limits: dict[str, int]


class Sandbox:
    """A made sandbox. `pid` is its first process, a child of the agent."""

    def __init__(self, plan: SandboxPlan, directories: Sequence[int]) -> None:
        """Make the sandbox with descriptors of `writable` places. Raises OSError."""
        self.user = plan.user if _may_become(plan.user) else None
        self.limits = plan.limits
        self.calls = _system_calls()
        self.group = Group.make(plan.limits)
        self._own_ids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self.pid = self._make(plan, directories)
        self._namespaces = {
            kind: os.open(f"/proc/{self.pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            for kind, name in ((linux.CLONE_NEWPID, "pid"), (linux.CLONE_NEWIPC, "ipc"), (linux.CLONE_NEWNS, "mnt"))
        }

    def _make(self, plan: SandboxPlan, directories: Sequence[int]) -> int:
        """Fork the first process; returns when it has made the sandbox."""
        report_reader, report_writer = os.pipe2(os.O_CLOEXEC)
        alive_reader, alive_writer = os.pipe2(os.O_CLOEXEC)
        linux.unshare(linux.CLONE_NEWPID)
        pid = os.fork()
        if pid == 0:
            os.close(alive_writer)
            _be_first(plan, self.user, directories, report_writer, alive_reader)
        linux.enter(self._own_ids, linux.CLONE_NEWPID)
        os.close(report_writer)
        os.close(alive_reader)
        os.write(alive_writer, b".")
        os.close(alive_writer)
        with os.fdopen(report_reader, "rb") as reader:
            report = reader.read()
        if report == READY:
            return pid
        os.waitpid(pid, 0)
        number, _, what = report.decode(errors="replace").partition(" ")
        raise OSError(int(number or 0), what or "the first process of the sandbox ended")

    def variables(self) -> dict[str, str]:
        """Return the variables of the programs' user, if it is not the worker's."""
        if self.user is None:
            return {}
        name = _name_of(self.user) or USER_NAME
        return {"HOME": str(TEMPORARY), "USER": name, "LOGNAME": name}

    def fork(self) -> int:
        """Fork into the sandbox's process ids, but not yet into its other namespaces.

        Raises OSError, also after its end.
        """
        if not self._namespaces:
            raise ProcessLookupError(errno.ESRCH, "the sandbox has ended")
        linux.enter(self._namespaces[linux.CLONE_NEWPID], linux.CLONE_NEWPID)
        try:
            pid = os.fork()
        except OSError:
            linux.enter(self._own_ids, linux.CLONE_NEWPID)
            raise
        if pid:
            linux.enter(self._own_ids, linux.CLONE_NEWPID)
        return pid

    def enter(self) -> None:
        """Enter the other namespaces; in a child."""
        if self.group is not None:
            self.group.join()
        for kind in (linux.CLONE_NEWIPC, linux.CLONE_NEWNS):
            linux.enter(self._namespaces[kind], kind)

    def restrict(self) -> None:
        """Give up every right; in a child, last."""
        seccomp.restrict(self.user, self.limits, self.calls)

    def scratch_use_bytes(self) -> int:
        """Return the memory of files in the temporary directories; 0 after the end."""
        try:
            uses = [os.statvfs(f"/proc/{self.pid}/root{path}") for path in WRITABLE]
        except OSError:
            return 0
        return sum((use.f_blocks - use.f_bfree) * use.f_frsize for use in uses)

    def end(self) -> None:
        """Kill everything in the sandbox; the agent collects it. Idempotent."""
        if not self._namespaces:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        for descriptor in (*self._namespaces.values(), self._own_ids):
            os.close(descriptor)
        self._namespaces.clear()


@functools.cache
def _system_calls() -> seccomp.Filter:
    return seccomp.Filter()


def _may_become(user: int) -> bool:
    """Return whether this process is root of a user namespace that has the user."""
    if os.geteuid() != 0:
        return False
    ranges = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(int(first) <= user < int(first) + int(count) for first, _outside, count in ranges)


def _name_of(user: int) -> str | None:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return None


# The first process


def _be_first(plan: SandboxPlan, user: int | None, directories: Sequence[int], report: int, alive: int) -> NoReturn:
    """Make the sandbox, report it, and wait to be killed; in the child."""
    try:
        linux.die_with_parent(signal.SIGKILL)
        if os.read(alive, 1) != b".":  # the agent died before the line above could ask for its signal
            os._exit(1)
        linux.control(linux.PR_SET_DUMPABLE, 0)  # or programs of the same user could take it over
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGCHLD})  # waited for below
        os.setsid()
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
        _arrange_files(plan, user, directories)
        os.write(report, READY)
        os.closerange(3, max(4096, report + 1))
        while True:
            signal.sigwait({signal.SIGCHLD})
            _collect_orphans()
    except OSError as error:
        os.write(report, f"{error.errno} {error.strerror}".encode())
    except BaseException as error:
        os.write(report, f"0 {error!r}".encode())
    os._exit(1)


def _collect_orphans() -> None:
    """Wait for ended children: CPU time of ignored ones would not be counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _arrange_files(plan: SandboxPlan, user: int | None, directories: Sequence[int]) -> None:
    """Mount everything read-only, hide the hidden, and bind the granted paths.

    Hidden files may include the interpreter's own: nothing can be imported afterwards.
    """
    linux.mount("none", Path("/"), flags=linux.MS_REC | linux.MS_PRIVATE)
    os.chdir("/")
    os.umask(0o022)
    granted = _open_granted(plan, directories)
    passwords = _password_file(user)
    closed = [_closed_above(path, user) for path in granted]
    _keep_devices()
    hidden = _outermost([*HIDDEN, *map(Path, plan.hidden), *closed])
    for path in hidden:
        _hide(path, plan.limits)
    with contextlib.suppress(OSError):  # before Linux 6.9 for root only
        Path("/proc/sys/kernel/shmall").write_text(str(plan.limits["scratch_bytes"] // PAGE_BYTES))
        for name, limit in SYSTEM_V.items():
            Path("/proc/sys/kernel", name).write_text(limit)
    for path, descriptor in granted.items():
        _show(path, descriptor, hidden, writable=str(path) in plan.writable)
    if passwords is not None:
        _show_text(passwords, RUN / "passwd", Path("/etc/passwd"))
    writable = {*WRITABLE, *map(Path, plan.writable)}
    _make_read_only(writable)
    if user is not None:
        for name in plan.writable:
            _give(Path(name), user)
    linux.mount("proc", Path("/proc"), "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.bind(Path("/proc/sys"), Path("/proc/sys"))
    linux.mount("none", Path("/proc/sys"), flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY)


def _keep_devices() -> None:
    """Cover `/dev` with the kept devices and terminals of the sandbox's own."""
    kept: dict[Path, int] = {}
    for path in (path for pattern in KEPT_DEVICES for path in DEVICES.glob(pattern)):
        with contextlib.suppress(OSError):  # a device can vanish at any time
            kept[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
    linux.mount("dev", DEVICES, "tmpfs", linux.MS_NOSUID, f"mode=755,size={SMALL_BYTES}")
    for path, descriptor in kept.items():
        _show(path, descriptor, [DEVICES], writable=True)
        os.close(descriptor)
    for name, target in DEVICE_LINKS.items():
        (DEVICES / name).symlink_to(target)
    for name in ("pts", "shm"):
        (DEVICES / name).mkdir()
    linux.mount("devpts", DEVICES / "pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=666")


def _open_granted(plan: SandboxPlan, directories: Sequence[int]) -> dict[Path, int]:
    """Return a descriptor of each granted path, opened among the sandbox's own mounts.

    Raises OSError for a directory that is not the one whose descriptor was handed over.
    """
    granted = {}
    for name in (*plan.readable, *plan.writable):
        granted[Path(name)] = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    for name, handed in zip(plan.writable, directories, strict=True):
        meant, there = os.fstat(handed), os.fstat(granted[Path(name)])
        if (meant.st_dev, meant.st_ino) != (there.st_dev, there.st_ino):
            raise OSError(errno.ESTALE, f"{name} is not the directory that it was")
    return granted


def _closed_above(path: Path, user: int | None) -> Path | None:
    """Return the first parent of `path` that `user` may not pass; None without one."""
    if user is None:
        return None
    for parent in reversed(path.parents):
        status = parent.stat()
        if not status.st_mode & (stat.S_IXUSR if status.st_uid == user else stat.S_IXOTH):
            return parent
    return None


def _outermost(paths: Sequence[Path | None]) -> list[Path]:
    """Return the existing paths, resolved, without those below another of them."""
    real = {path.resolve() for path in paths if path is not None and path.exists()}
    return sorted(path for path in real if not real & set(path.parents))


def _hide(path: Path, limits: dict[str, int]) -> None:
    """Cover a path with an empty directory or file."""
    if not path.is_dir():
        linux.bind(Path(os.devnull), path)
        return
    shared = path in WRITABLE
    size, mode = (limits["scratch_bytes"], "1777") if shared else (SMALL_BYTES, "755")
    options = f"mode={mode},size={size},nr_inodes={limits['files']}"
    linux.mount("tmpfs", path, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)


def _show(path: Path, descriptor: int, hidden: Sequence[Path], *, writable: bool) -> None:
    """Bind a granted path; a visible one needs a mount only to be writable."""
    below = bool(set(hidden) & {path, *path.parents})
    if below:
        path.parent.mkdir(parents=True, exist_ok=True)
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            path.mkdir(exist_ok=True)
        else:
            path.touch()
    if below or writable:
        linux.bind(Path(f"/proc/self/fd/{descriptor}"), path)


def _password_file(user: int | None) -> str | None:
    """Return /etc/passwd with a line for an unknown user, whom mpirun refuses."""
    if user is None or _name_of(user) is not None:
        return None
    passwords = Path("/etc/passwd").read_bytes().decode(errors="surrogateescape")
    return f"{passwords.rstrip()}\n{USER_NAME}:x:{user}:{user}:programs of trials:{TEMPORARY}:/bin/sh\n"


def _show_text(text: str, file: Path, path: Path) -> None:
    file.write_bytes(text.encode(errors="surrogateescape"))
    file.chmod(0o644)
    linux.bind(file, path)


def _make_read_only(writable: set[Path]) -> None:
    """Remount others read-only with their flags, which a user namespace requires."""
    writable = {path.resolve() for path in writable}
    for mounted, flags in _mounts():
        if mounted in writable:
            continue
        try:
            linux.mount("none", mounted, flags=READ_ONLY | flags)
        except OSError as error:
            if error.errno not in OUT_OF_REACH:
                raise


def _mounts() -> Iterator[tuple[Path, int]]:
    """Yield path and flags of every mount; proc(5), mountinfo."""
    for line in Path("/proc/self/mountinfo").read_bytes().decode(errors="surrogateescape").splitlines():
        fields = line.split(" ")
        mount_point = ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4])
        yield Path(mount_point), sum(MOUNT_FLAGS.get(name, 0) for name in fields[5].split(","))


def _give(directory: Path, user: int) -> None:
    """Give a directory and its content to `user`; links are not followed."""
    os.chown(directory, user, user)
    for entry in trees.walk(directory):
        os.chown(entry.name, user, user, dir_fd=entry.descriptor, follow_symlinks=False)
