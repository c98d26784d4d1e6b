"""Last steps before a trial's program: limits, user, capabilities, filter.

None of it can be undone: `no_new_privs` holds for the program and all that it starts. Nothing here may import or look up a codec
in the child: the interpreter's own files may be out of sight.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import struct
from collections.abc import Iterator
from typing import Any

from workers.agent import linux

# linux/prctl.h, linux/capability.h, linux/securebits.h
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 24, 28, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
NO_ROOT, NO_ROOT_LOCKED = 1, 2
CAPABILITY_VERSION_3 = 0x20080522
MOST_CAPABILITIES = 64

# linux/seccomp.h
SET_MODE_FILTER = 1
SPEC_ALLOW = 1 << 2
"""Without it older kernels slow a filtered program by their defence against speculative stores: a trial would measure it."""
INSTRUCTION_BYTES = 8

LIBRARY = "libseccomp.so.2"
# seccomp.h of libseccomp
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
ON_FOREIGN_ARCHITECTURE, OPTIMIZE, BINARY_TREE = 2, 8, 2
EQUAL, MASKED_EQUAL = 4, 7  # comparisons

CALLS = """
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait
epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fchdir fchmod
fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync
ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list get_thread_area getcpu
getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority
getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit
ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat
listen listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack mbind membarrier migrate_pages mincore
mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive
mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep
newfstatat open openat openat2 pause personality pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free
pkey_mprotect poll ppoll pread64 preadv preadv2 prlimit64 process_vm_readv process_vm_writev pselect6 ptrace pwrite64
pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat
renameat2 restart_syscall riscv_flush_icache riscv_hwprobe rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_mempolicy
set_mempolicy_home_node set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid
setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid setxattr shmat shmctl shmdt shmget shutdown
sigaltstack signalfd signalfd4 splice stat statfs statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo
tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes vfork wait4 waitid write writev
"""
"""System calls allowed with all arguments; names of other processors or newer libraries are skipped, every other call fails with ENOSYS.

Missing on purpose: what changes namespaces, mounts, keys, modules, clocks and quotas; io_uring, bpf, userfaultfd, pidfd_getfd and
handles of files; memfd_create, whose memory no limit but that of a control group sees; clone3, whose flags a filter cannot read;
seccomp, as prctl and setsockopt below. The C library and runtimes then use clone and files in /dev/shm. fallocate fills a disk within
milliseconds, before anything can count it: the C library writes instead.
"""
FILE_SYSTEM_REQUESTS = frozenset((ord("X"), ord("f"), 0x94, 0xBC, 0xF5))
"""Kinds of ioctl(2): of all file systems, ext4, Btrfs, bcachefs, F2FS.

Among them are fallocate(2) under another name, snapshots that copy thousands of files at once, subvolumes that not even root can
empty, and the flag of directories that a project quota needs.
"""
PR_SET_SECCOMP = 22
SOL_SOCKET, SOCKET_PROGRAMS = 1, frozenset((26, 50, 51, 52))
"""SO_ATTACH_FILTER and the like. Filters of all users share `net.core.bpf_jit_limit`; when it is used up, no other program gets one."""
NEGATIVE, PERF_FLAG_PID_CGROUP = 1 << 31, 1 << 2
CLONE_NAMESPACES = 0x7E020000  # every CLONE_NEW* of clone(2)
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, NETLINK_ROUTE = 1, 2, 10, 16, 0
FAMILIES = (AF_UNIX, AF_INET, AF_INET6)
MOST_FAMILIES = 64  # more than AF_MAX

OOM_SCORE = b"1000"
"""A trial is what the kernel ends first when memory runs out, not the worker or its database."""


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("second_value", ctypes.c_uint64),
    )


class Filter:
    """System call filter of this processor: classic BPF, made by libseccomp."""

    def __init__(self) -> None:
        """Make the filter. Raises OSError without the library."""
        self._library = ctypes.CDLL(LIBRARY)
        self._library.seccomp_init.restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.seccomp_init(REFUSE | errno.ENOSYS))
        self._require(self._library.seccomp_attr_set(self._context, ON_FOREIGN_ARCHITECTURE, REFUSE | errno.ENOSYS))
        self._library.seccomp_attr_set(self._context, OPTIMIZE, BINARY_TREE)  # unknown to older libraries
        for name in CALLS.split():
            self._add(ALLOW, name)
        self._add(REFUSE | errno.EOPNOTSUPP, "fallocate")
        for mask, kind in _blocks_without(FILE_SYSTEM_REQUESTS):
            self._add(ALLOW, "ioctl", Comparison(1, MASKED_EQUAL, mask << 8, kind << 8))
        for mask, option in _blocks_without(frozenset((PR_SET_SECCOMP,))):
            self._add(ALLOW, "prctl", Comparison(0, MASKED_EQUAL, mask, option))
        for mask, level in _blocks_without(frozenset((SOL_SOCKET,))):
            self._add(ALLOW, "setsockopt", Comparison(1, MASKED_EQUAL, mask, level))
        for mask, option in _blocks_without(SOCKET_PROGRAMS):
            of_sockets = Comparison(1, MASKED_EQUAL, 0xFF, SOL_SOCKET)
            self._add(ALLOW, "setsockopt", of_sockets, Comparison(2, MASKED_EQUAL, mask, option))
        self._add(ALLOW, "clone", Comparison(0, MASKED_EQUAL, CLONE_NAMESPACES, 0))
        # Counters of processes, never of a CPU with all that runs there.
        self._add(
            ALLOW,
            "perf_event_open",
            Comparison(1, MASKED_EQUAL, NEGATIVE, 0),
            Comparison(4, MASKED_EQUAL, PERF_FLAG_PID_CGROUP, 0),
        )
        for family in range(MOST_FAMILIES):
            if family != AF_NETLINK:
                action = ALLOW if family in FAMILIES else REFUSE | errno.EAFNOSUPPORT
                self._add(action, "socket", Comparison(0, EQUAL, family, 0))
        self._add(ALLOW, "socket", Comparison(0, EQUAL, AF_NETLINK, 0), Comparison(2, EQUAL, NETLINK_ROUTE, 0))
        self._add(ALLOW, "socketpair", Comparison(0, EQUAL, AF_UNIX, 0))
        self.number = self._library.seccomp_syscall_resolve_name(b"seccomp")
        self.program = self._exported()
        self._library.seccomp_release(self._context)
        self._described = struct.pack(
            "HP", len(self.program) // INSTRUCTION_BYTES, ctypes.addressof(ctypes.c_char.from_buffer(self.program))
        )

    def load(self) -> None:
        """Filter the calls of this process and of all that it starts. Raises OSError."""
        linux.system_call(self.number, ctypes.c_ulong(SET_MODE_FILTER), ctypes.c_ulong(SPEC_ALLOW), self._described)

    def _add(self, action: int, name: str, *comparisons: Comparison) -> None:
        number = self._library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            arguments = (Comparison * len(comparisons))(*comparisons)
            self._require(
                self._library.seccomp_rule_add_array(self._context, action, number, len(comparisons), arguments)
            )

    def _exported(self) -> bytearray:
        file = os.memfd_create("filter")
        try:
            self._require(self._library.seccomp_export_bpf(self._context, file))
            return bytearray(os.pread(file, os.fstat(file).st_size, 0))
        finally:
            os.close(file)

    def _require(self, result: int) -> None:
        if result < 0:
            raise OSError(-result, f"the filter of system calls cannot be made: {os.strerror(-result)}")


def _blocks_without(refused: frozenset[int], first: int = 0, size: int = 256) -> Iterator[tuple[int, int]]:
    """Yield mask and value of the largest aligned blocks without a refused byte."""
    if refused.isdisjoint(range(first, first + size)):
        yield 256 - size, first
    elif size > 1:
        for half in (first, first + size // 2):
            yield from _blocks_without(refused, half, size // 2)


def limit(limits: dict[str, int]) -> None:
    """Set the limits of one process; `processes` holds for all of the user together."""
    for number, bound in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, min(limits["open_files"], resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2)),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_DATA, limits["memory_bytes"]),
    ):
        soft, hard = resource.getrlimit(number)
        if hard == resource.RLIM_INFINITY or bound < hard:
            hard = bound
        resource.setrlimit(number, (hard if soft == resource.RLIM_INFINITY or soft > hard else soft, hard))
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(score, OOM_SCORE)
        finally:
            os.close(score)


def give_up_rights(user: int | None) -> None:
    """Drop all capabilities and groups for good; become `user`. Raises OSError."""
    with contextlib.suppress(
        PermissionError
    ):  # a user namespace of an ordinary user forbids it, with nothing to give up
        os.setgroups([])
    for capability in range(MOST_CAPABILITIES):
        try:
            linux.control(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # the kernel knows no more
                break
            raise
    linux.control(PR_SET_SECUREBITS, NO_ROOT | NO_ROOT_LOCKED)
    linux.control(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if user is not None:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _drop_capabilities()
    linux.control(PR_SET_NO_NEW_PRIVS, 1)


def _drop_capabilities() -> None:
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    if ctypes.CDLL(None, use_errno=True).capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def restrict(user: int | None, limits: dict[str, Any], calls: Filter) -> None:
    """Apply limits, user and filter in the starting process. Raises OSError."""
    limit(limits)
    give_up_rights(user)
    calls.load()
