"""Recorder with a kernel ring: `python3 -I -S recorder.py PLAN`.

Runs at the test-bed's bridges and on the loopback of `local`. The kernel writes the head of every frame into a slot of
shared memory (packet_mmap, TPACKET_V2); twenty times a second the full slots are copied to standard output.
`workers.capture.ring` makes a pcapng of them. No process wakes up per packet: with four busy ranks on two cores dumpcap
slows them by a quarter to a third, this by a twentieth (benchmarks/notes/november-2026.md).

PLAN is a JSON object: `interface`, `snap_length`, `ring_bytes`, `most_bytes` (limit), `must_hold` (pairs of an offset and the
value of that byte: other frames are left out), `tcp_ports` (first and last, or null: other frames are left out). SIGINT
ends it; standard error then has a JSON object. Standard library only, one file.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import struct
import sys
import time
from array import array
from typing import Any

READY = "recording\n"
NAME = "recorder"
BLOCK_BYTES = 1 << 20
PERIOD_S = 0.05
LAST_WAIT_S = 1.0

# linux/socket.h, linux/if_packet.h
SOL_PACKET = 263
PACKET_ADD_MEMBERSHIP, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION, PACKET_RESERVE = 1, 5, 6, 10, 12
PACKET_IGNORE_OUTGOING = 23
PACKET_MR_PROMISC = 1
TPACKET_V2 = 1
ALIGNMENT = 16
RESERVED = 2  # so that the frame begins at a multiple of four
DATA_OFFSET = 66 + RESERVED  # behind TPACKET2_HDRLEN (52) and 16, aligned, less the 14 bytes of Ethernet
SO_ATTACH_FILTER = 26
ETH_P_ALL = 3
LOOPBACK = "lo"
# linux/bpf_common.h: load a byte or two, behind the IPv4 header too, whose length is loaded first; jumps; return
LOAD_BYTE, LOAD_HALF, LOAD_HALF_BEHIND_X, LOAD_HEADER_LENGTH = 0x30, 0x28, 0x48, 0xB1
JUMP_EQUAL, JUMP_GREATER, JUMP_GREATER_OR_EQUAL, JUMP_SET, RETURN = 0x15, 0x25, 0x35, 0x45, 0x06
ETH_P_IP, ETH_P_IPV6, IPPROTO_TCP, NOT_FIRST_FRAGMENT = 0x0800, 0x86DD, 6, 0x1FFF
INSTRUCTION = struct.Struct("=HBBI")

_FULL = bytes(value & 1 for value in range(256))  # TP_STATUS_USER, the lowest bit
_STATUS_BYTES = range(4) if sys.byteorder == "little" else range(3, -1, -1)  # the lowest byte first


def slot_bytes(snap_length: int) -> int:
    """Return the length of a slot: the kernel's header and a frame's bytes."""
    return -(-(DATA_OFFSET + snap_length) // ALIGNMENT) * ALIGNMENT


def filter_program(snap_length: int, must_hold: list[list[int]]) -> bytes:
    """Return classic BPF that drops frames with other bytes and cuts the rest."""
    program = []
    for number, (offset, value) in enumerate(must_hold):
        to_the_end = 2 * (len(must_hold) - number) - 1
        program += [(LOAD_BYTE, 0, 0, offset), (JUMP_EQUAL, 0, to_the_end, value)]
    program.append((RETURN, 0, 0, snap_length))
    if must_hold:
        program.append((RETURN, 0, 0, 0))
    return b"".join(INSTRUCTION.pack(*instruction) for instruction in program)


def tcp_filter(snap_length: int, first: int, last: int) -> bytes:
    """Return classic BPF that keeps TCP from or to these ports, over IPv4 and IPv6."""
    program = [  # label, operation, value, label of the next line if true and if false
        ("", LOAD_HALF, 12, "", ""),
        ("", JUMP_EQUAL, ETH_P_IPV6, "", "IPv4"),
        ("", LOAD_BYTE, 20, "", ""),
        ("", JUMP_EQUAL, IPPROTO_TCP, "", "drop"),
        ("", LOAD_HALF, 54, "", ""),
        ("", JUMP_GREATER_OR_EQUAL, first, "", "to over IPv6"),
        ("", JUMP_GREATER, last, "to over IPv6", "keep"),
        ("to over IPv6", LOAD_HALF, 56, "", ""),
        ("", JUMP_GREATER_OR_EQUAL, first, "", "drop"),
        ("", JUMP_GREATER, last, "drop", "keep"),
        ("IPv4", JUMP_EQUAL, ETH_P_IP, "", "drop"),
        ("", LOAD_BYTE, 23, "", ""),
        ("", JUMP_EQUAL, IPPROTO_TCP, "", "drop"),
        ("", LOAD_HALF, 20, "", ""),
        ("", JUMP_SET, NOT_FIRST_FRAGMENT, "drop", ""),
        ("", LOAD_HEADER_LENGTH, 14, "", ""),
        ("", LOAD_HALF_BEHIND_X, 14, "", ""),
        ("", JUMP_GREATER_OR_EQUAL, first, "", "to over IPv4"),
        ("", JUMP_GREATER, last, "to over IPv4", "keep"),
        ("to over IPv4", LOAD_HALF_BEHIND_X, 16, "", ""),
        ("", JUMP_GREATER_OR_EQUAL, first, "", "drop"),
        ("", JUMP_GREATER, last, "drop", "keep"),
        ("keep", RETURN, snap_length, "", ""),
        ("drop", RETURN, 0, "", ""),
    ]
    positions = {label: index for index, (label, *_) in enumerate(program)}

    def jump(label: str, index: int) -> int:
        return positions[label] - index - 1 if label else 0

    return b"".join(
        INSTRUCTION.pack(code, jump(true, index), jump(false, index), value)
        for index, (_, code, value, true, false) in enumerate(program)
    )


class Ring:
    """Socket and the memory that it shares with us. Raises OSError."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.slot = slot_bytes(plan["snap_length"])
        self.block_bytes = -(-self.slot // BLOCK_BYTES) * BLOCK_BYTES
        self.slots = self.block_bytes // self.slot  # of a block: what is left at its end stays empty
        self.blocks = max(plan["ring_bytes"] // self.block_bytes, 2)
        self.block = self.first = self.recorded = 0
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        self.socket.setsockopt(SOL_PACKET, PACKET_RESERVE, RESERVED)
        request = struct.pack("4I", self.block_bytes, self.blocks, self.slot, self.slots * self.blocks)
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
        if plan["interface"] == LOOPBACK:  # which receives each frame that it sends
            self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        if plan["tcp_ports"]:
            self._attach(tcp_filter(plan["snap_length"], *plan["tcp_ports"]))
        else:
            self._attach(filter_program(plan["snap_length"], plan["must_hold"]))
        self.memory = mmap.mmap(self.socket.fileno(), self.block_bytes * self.blocks)
        self.socket.bind((plan["interface"], ETH_P_ALL))
        index = socket.if_nametoindex(plan["interface"])
        membership = struct.pack("iHH8s", index, PACKET_MR_PROMISC, 0, b"")
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, membership)

    def _attach(self, program: bytes) -> None:
        instructions = array("B", program)
        address, length = instructions.buffer_info()
        self.socket.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", length // INSTRUCTION.size, address)
        )

    def drain(self, output: int) -> int:
        """Copy the full slots in order and free them; return the bytes written."""
        written = 0
        while True:
            start = self.block * self.block_bytes + self.first * self.slot
            end = self.block * self.block_bytes + self.slots * self.slot
            full = self.memory[start + _STATUS_BYTES[0] : end : self.slot].translate(_FULL).find(0)
            count = self.slots - self.first if full < 0 else full
            if not count:
                return written
            stop = start + count * self.slot
            write(output, memoryview(self.memory)[start:stop])
            for status_byte in (*_STATUS_BYTES[1:], _STATUS_BYTES[0]):  # free for the kernel once all four are 0
                self.memory[start + status_byte : stop : self.slot] = bytes(count)
            written += stop - start
            self.recorded += count
            self.first += count
            if self.first == self.slots:
                self.block, self.first = (self.block + 1) % self.blocks, 0

    def statistics(self) -> tuple[int, int]:
        """Return frames passed, and those without a free slot, since the last call."""
        seen, dropped = struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return seen, dropped


def write(output: int, data: memoryview) -> None:
    """Write all data: a pipe or a file may take less at a time."""
    while data:
        data = data[os.write(output, data) :]


def record(ring: Ring, most_bytes: int) -> dict[str, Any]:
    """Record until SIGINT or the limit; return the report."""
    written = 0
    while written < most_bytes and signal.sigtimedwait({signal.SIGINT}, PERIOD_S) is None:
        written += ring.drain(1)
    seen, dropped = ring.statistics()
    limit_reached = written >= most_bytes
    deadline = time.monotonic() + LAST_WAIT_S
    while not limit_reached and ring.recorded < seen - dropped and time.monotonic() < deadline:
        ring.drain(1)
    return {
        "received": max(seen - dropped, ring.recorded),
        "captured": ring.recorded,
        "dropped": dropped,
        "limit_reached": limit_reached,
    }


def main() -> None:
    plan = json.loads(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    write(os.open("/proc/self/comm", os.O_WRONLY), memoryview(NAME.encode()))
    try:
        ring = Ring(plan)
    except OSError as error:
        sys.exit(f"{NAME}: {plan['interface']}: {error.strerror}")
    os.write(2, READY.encode())
    os.write(2, json.dumps(record(ring, plan["most_bytes"])).encode())


if __name__ == "__main__":
    main()
