"""Run a command behind a filter of system calls as Docker sets it.

`python confined.py PROFILE COMMAND...`

The filter is made by libseccomp, of the file that the container engine is given. It needs no package.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from pathlib import Path

ACTIONS = {"SCMP_ACT_ALLOW": 0x7FFF0000, "SCMP_ACT_ERRNO": 0x00050000}
NO_SUCH_CALL = -1  # of this processor


def confine(profile: Path) -> None:
    """From now on, for this process and all that it starts."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    request = json.loads(profile.read_text())
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ACTIONS[request["defaultAction"]])))
    for rule in request["syscalls"]:
        action = ctypes.c_uint32(ACTIONS[rule["action"]] | rule["errnoRet"])
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number == NO_SUCH_CALL:
                raise SystemExit(f"{name} is no system call")
            if number >= 0:  # others are of other processors
                _require(library.seccomp_rule_add(context, action, number, 0), name)
    _require(library.seccomp_load(context), "loading")


def require_refused() -> None:
    """The filter holds: asking for a key of this process is one of what it refuses."""
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall(250, 0, -1, 0)  # keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_THREAD_KEYRING)
    if ctypes.get_errno() != errno.EPERM:
        raise SystemExit("the filter refuses nothing")


def _require(result: int, what: str) -> None:
    if result < 0:
        raise SystemExit(f"{what}: {os.strerror(-result)}")


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    require_refused()
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
