"""Last steps before a trial's program: limits, user, capabilities, filter.

The filter is one of system calls. None of it can be undone: `no_new_privs` holds for the program and all that it
starts. The filter refuses calls that change namespaces, mounts, keys, modules and clocks, and newer kernel interfaces
that containers block too. Nothing here may import or look up a codec: the interpreter's own files may be out of sight.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import struct
from typing import Any, NamedTuple

from workers.agent import linux

# linux/prctl.h, linux/capability.h, linux/securebits.h
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_SET_NO_NEW_PRIVS = 24, 28, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
NO_ROOT, NO_ROOT_LOCKED = 1, 2
CAPABILITY_VERSION_3 = 0x20080522
MOST_CAPABILITIES = 64

# linux/seccomp.h, linux/bpf_common.h
SET_MODE_FILTER = 1
SPEC_ALLOW = 1 << 2
"""Without it older kernels slow a filtered program by their defence against speculative stores: a trial would measure it."""
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
INSTRUCTION = struct.Struct("=HBBI")
AT_NUMBER, AT_ARCHITECTURE, AT_FIRST_ARGUMENT = 0, 4, 16
FOREIGN_NUMBERS = 0x40000000  # of the x32 interface
NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* of clone(2)

OOM_SCORE = b"1000"
"""A trial is what the kernel ends first when memory runs out, not the worker or its database."""


class Numbers(NamedTuple):
    """System call numbers of a processor: the refused ones, seccomp and clone."""

    architecture: int
    seccomp: int
    clone: int
    refused: tuple[int, ...]


CLONE_3 = 435
EVERYWHERE = (425, 428, 429, 430, 431, 432, 433, 438, 442)
"""io_uring_setup, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, pidfd_getfd, mount_setattr."""
PROCESSORS = {
    # mount umount2 pivot_root chroot unshare setns keyctl add_key request_key bpf kexec_load kexec_file_load init_module
    # finit_module delete_module reboot swapon swapoff acct settimeofday clock_settime clock_adjtime open_by_handle_at
    # userfaultfd quotactl syslog vhangup, and of x86 iopl ioperm
    "x86_64": Numbers(0xC000003E, 317, 56, (
        165, 166, 155, 161, 272, 308, 250, 248, 249, 321, 246, 320, 175,
        313, 176, 169, 167, 168, 163, 164, 227, 305, 304,
        323, 179, 103, 153, 172, 173,
    )),
    "aarch64": Numbers(0xC00000B7, 277, 220, (
        40, 39, 41, 51, 97, 268, 219, 217, 218, 280, 104, 294, 105,
        273, 106, 142, 224, 225, 89, 170, 112, 266, 265,
        282, 60, 116, 58,
    )),
}  # fmt: skip


def limit(limits: dict[str, int]) -> None:
    """Set the limits of one process; `processes` holds for all of the user together."""
    for number, bound in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
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


def filter_system_calls() -> None:
    """Refuse the calls of `PROCESSORS` with EPERM; no filter on other processors."""
    numbers = PROCESSORS.get(os.uname().machine)
    if numbers is None:
        return
    program = filter_program(numbers)
    buffer = ctypes.create_string_buffer(program)
    described = struct.pack("HP", len(program) // INSTRUCTION.size, ctypes.addressof(buffer))
    linux.system_call(numbers.seccomp, ctypes.c_ulong(SET_MODE_FILTER), ctypes.c_ulong(SPEC_ALLOW), described)


def filter_program(numbers: Numbers) -> bytes:
    """Return classic BPF over `struct seccomp_data`. Pure.

    clone3 hides its flags behind a pointer, so it is answered with ENOSYS: the C library falls back to clone.
    """
    refused = (*numbers.refused, *EVERYWHERE)
    length = len(refused)
    # From the end: ..., flags of clone, allow, refuse, not there
    program: list[tuple[int, int, int, int]] = [
        (LOAD, 0, 0, AT_ARCHITECTURE),
        (EQUAL, 0, length + 8, numbers.architecture),
        (LOAD, 0, 0, AT_NUMBER),
        (AT_LEAST, length + 6, 0, FOREIGN_NUMBERS),
        (EQUAL, length + 5, 0, CLONE_3),
        *((EQUAL, length - index + 3, 0, number) for index, number in enumerate(refused)),
        (EQUAL, 0, 2, numbers.clone),
        (LOAD, 0, 0, AT_FIRST_ARGUMENT),
        (ANY_BIT, 1, 0, NEW_NAMESPACES),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]
    return b"".join(INSTRUCTION.pack(*instruction) for instruction in program)


def restrict(user: int | None, limits: dict[str, Any]) -> None:
    """Apply limits, user and filter in the starting process. Raises OSError."""
    limit(limits)
    give_up_rights(user)
    filter_system_calls()
