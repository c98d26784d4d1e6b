"""The filter of system calls, number by number, against the kernel's table."""

from __future__ import annotations

import errno
import platform
import re
from pathlib import Path

import pytest

from tests.workers.testbed.bpf import verdict
from workers.agent import seccomp

TABLE = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")  # of libc6-dev
X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7
X32 = 0x40000000
ALLOWED, NOT_THERE = seccomp.ALLOW, seccomp.REFUSE | errno.ENOSYS
NEWER = {
    "cachestat": 451,
    "fchmodat2": 452,
    "map_shadow_stack": 453,
    "futex_wake": 454,
    "futex_wait": 455,
    "futex_requeue": 456,
}
"""Than the table of Debian 12; libseccomp may know them."""
BY_ARGUMENTS = {"clone", "fallocate", "ioctl", "perf_event_open", "prctl", "setsockopt", "socket", "socketpair"}
PREALLOCATION = (0x40305828, 0x4030582A, 0x40305839)
"""FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE: fallocate(2) under other names."""
NEVER = """
acct add_key adjtimex bpf chroot clock_adjtime clock_settime clone3 create_module delete_module fanotify_init finit_module fsconfig
fsmount fsopen fspick get_kernel_syms init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load
kexec_load keyctl lookup_dcookie memfd_create memfd_secret mount mount_setattr move_mount nfsservctl open_by_handle_at open_tree
pidfd_getfd pivot_root process_madvise query_module quotactl quotactl_fd reboot request_key seccomp setdomainname sethostname setns
settimeofday swapoff swapon syslog umount2 unshare uselib userfaultfd vhangup vmsplice
"""

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64" or not TABLE.exists(), reason="the table of x86-64")


@pytest.fixture(scope="module")
def program() -> bytes:
    return bytes(seccomp.Filter().program)


@pytest.fixture(scope="module")
def numbers() -> dict[str, int]:
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", TABLE.read_text())}


def test_filter_allows_the_listed_calls_and_no_other_number(program: bytes, numbers: dict[str, int]) -> None:
    listed = {numbers[name] for name in seccomp.CALLS.split() if name in numbers}
    judged = {numbers[name] for name in BY_ARGUMENTS}
    assert len(listed) > 280
    for name, number in NEWER.items():
        assert verdict(program, number, X86_64) in (ALLOWED, NOT_THERE), name
    for number in {*range(-1, 1024)} - judged - {*NEWER.values()}:
        expected = ALLOWED if number in listed else NOT_THERE
        assert verdict(program, number, X86_64) == expected, number


def test_filter_refuses_what_changes_the_machine_or_the_sandbox(program: bytes, numbers: dict[str, int]) -> None:
    refused = [name for name in NEVER.split() if name in numbers]
    assert len(refused) > 50
    assert {name for name in refused if verdict(program, numbers[name], X86_64) != NOT_THERE} == set()


@pytest.mark.parametrize("architecture", [I386, AARCH64])
def test_filter_refuses_every_call_of_another_architecture(program: bytes, architecture: int) -> None:
    assert {verdict(program, number, architecture) for number in range(512)} == {NOT_THERE}


def test_filter_refuses_every_call_of_x32(program: bytes) -> None:
    assert {verdict(program, X32 + number, X86_64) for number in range(1024)} == {NOT_THERE}


@pytest.mark.parametrize("minus_one", [0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF])
def test_filter_allows_counters_of_processes_and_none_of_a_cpu(
    minus_one: int, program: bytes, numbers: dict[str, int]
) -> None:
    """Arguments: the address of the attributes, process, CPU, group, flags."""

    def answer(*arguments: int) -> int:
        return verdict(program, numbers["perf_event_open"], X86_64, [0x7FFF00000000, *arguments])

    for process in (0, 4711, (1 << 31) - 1):
        assert {answer(process, cpu, minus_one, flags) for cpu in (minus_one, 3) for flags in (0, 8)} == {ALLOWED}
    assert {answer(minus_one, cpu, minus_one, 8) for cpu in (0, minus_one)} == {NOT_THERE}
    assert answer(3, 0, minus_one, 4) == NOT_THERE


def test_filter_refuses_disk_that_no_byte_was_written_to(program: bytes, numbers: dict[str, int]) -> None:
    unsupported = seccomp.REFUSE | errno.EOPNOTSUPP  # for which posix_fallocate writes
    assert {verdict(program, numbers["fallocate"], X86_64, [3, mode, 0, 1 << 40]) for mode in range(256)} == {
        unsupported
    }
    for high in (0, 1 << 32):
        for request in PREALLOCATION:
            assert verdict(program, numbers["ioctl"], X86_64, [3, high | request]) == NOT_THERE
        for request in (
            0x5401,
            0x5413,
            0x541B,
            0x8912,
        ):  # TCGETS, TIOCGWINSZ, FIONREAD, SIOCGIFCONF
            assert verdict(program, numbers["ioctl"], X86_64, [3, high | request]) == ALLOWED


def test_filter_refuses_the_requests_of_file_systems_and_no_other_kind(program: bytes, numbers: dict[str, int]) -> None:
    """Refuse flags, snapshots, subvolumes and atomic writes.

    FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR; of Btrfs SNAP_CREATE, SUBVOL_CREATE, SUBVOL_SETFLAGS; of bcachefs SUBVOLUME_CREATE; of F2FS
    START_ATOMIC_WRITE.
    """
    for request in (0x40086602, 0x401C5820, 0x50009401, 0x5000940E, 0x4008941A, 0x4018BC10, 0xF501):
        assert verdict(program, numbers["ioctl"], X86_64, [3, request]) == NOT_THERE, hex(request)
    for kind in range(256):
        expected = NOT_THERE if kind in seccomp.FILE_SYSTEM_REQUESTS else ALLOWED
        answers = {verdict(program, numbers["ioctl"], X86_64, [3, 0xC0180000 | kind << 8 | low]) for low in (0, 1, 255)}
        assert answers == {expected}, hex(kind)


@pytest.mark.parametrize("high", [0, 1 << 32])
def test_filter_allows_clone_without_a_new_namespace(program: bytes, numbers: dict[str, int], high: int) -> None:
    namespaces = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
    for flags in (0x3D0F00, 0x1200011, 0x11):  # of a thread, of fork, of a plain child
        assert verdict(program, numbers["clone"], X86_64, [high | flags]) == ALLOWED
        for namespace in namespaces:
            assert verdict(program, numbers["clone"], X86_64, [high | flags | namespace]) == NOT_THERE


def test_filter_allows_the_families_of_unix_internet_and_route_sockets(program: bytes, numbers: dict[str, int]) -> None:
    allowed, unsupported = {1, 2, 10}, seccomp.REFUSE | errno.EAFNOSUPPORT
    for family in range(seccomp.MOST_FAMILIES):
        for protocol in range(32):
            result = verdict(program, numbers["socket"], X86_64, [family, 1, protocol])
            if family == seccomp.AF_NETLINK:
                assert result == (NOT_THERE if protocol else ALLOWED)
            else:
                assert result == (ALLOWED if family in allowed else unsupported), family
        pair = verdict(program, numbers["socketpair"], X86_64, [family, 1, 0])
        assert pair == (ALLOWED if family == 1 else NOT_THERE)
    # The kernel reads the low half of the argument only: a family must not hide behind the other one.
    assert verdict(program, numbers["socket"], X86_64, [1 << 32 | 40, 1, 0]) != ALLOWED
    assert verdict(program, numbers["socket"], X86_64, [1 << 32 | 1, 1, 0]) != ALLOWED


@pytest.mark.parametrize("high", [0, 1 << 32])
def test_filter_refuses_further_filters(program: bytes, numbers: dict[str, int], high: int) -> None:
    for option in range(256):
        expected = NOT_THERE if option == seccomp.PR_SET_SECCOMP else ALLOWED
        assert verdict(program, numbers["prctl"], X86_64, [high | option]) == expected, option
        expected = NOT_THERE if option in seccomp.SOCKET_PROGRAMS else ALLOWED
        assert verdict(program, numbers["setsockopt"], X86_64, [3, high | 1, high | option]) == expected, option
        for level in (0, 6, 17, 41, 270, 284):
            assert verdict(program, numbers["setsockopt"], X86_64, [3, high | level, high | option]) == ALLOWED
