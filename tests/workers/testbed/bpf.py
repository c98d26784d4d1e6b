"""Interpreter of classic BPF that filters system calls.

linux/bpf_common.h, linux/seccomp.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

INSTRUCTION = struct.Struct("=HBBI")
DATA = struct.Struct("=iIQ6Q")  # struct seccomp_data
LOAD, AND, JUMP, RETURN = 0x20, 0x54, 0x05, 0x06
JUMPS = {
    0x15: lambda value, constant: value == constant,
    0x25: lambda value, constant: value > constant,
    0x35: lambda value, constant: value >= constant,
    0x45: lambda value, constant: bool(value & constant),
}


def verdict(program: bytes, number: int, architecture: int, arguments: Sequence[int] = ()) -> int:
    """Return what the filter answers to a system call."""
    data = DATA.pack(number, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    at, value = 0, 0
    while True:
        code, if_true, if_false, constant = INSTRUCTION.unpack_from(program, at * INSTRUCTION.size)
        at += 1
        if code == LOAD:
            (value,) = struct.unpack_from("=I", data, constant)
        elif code == AND:
            value &= constant
        elif code == JUMP:
            at += constant
        elif code == RETURN:
            return constant
        else:
            at += if_true if JUMPS[code](value, constant) else if_false
