"""One end of a measured path: `python3 -I -S prober.py PLAN`.

Runs in a host; prints JSON results. PLAN is a JSON object: `start_ns` (CLOCK_MONOTONIC, which all virtual hosts share:
no control connection crosses the measured link, and delays are one-way) and `phases`, each with the seconds at which it
begins and ends. Both ends run the same program with mirrored plans. Standard library only, one file.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import sys
import time
from typing import Any

HEADER = struct.Struct(">IQQ")  # sequence number, when it was sent, when an echo arrived at the other end (or 0)
UDP_HEADERS = 28  # IPv4 and UDP
SO_RCVBUFFORCE = 33  # asm-generic/socket.h
SO_SNDBUFFORCE = 32
SO_TIMESTAMPNS = 35
IP_MTU_DISCOVER = 10
IP_PMTUDISC_DO = 2
SOCKET_BUFFER_BYTES = 32 << 20
TCP_CHUNK = bytes(1 << 16)
DRAIN_AT_ONCE = 64
PRIORITY = 4  # below an emulator
TIMESPEC = struct.Struct("@qq")
CLOCK_READINGS = 50

Phase = dict[str, Any]


def wall_ahead_ns() -> int:
    """Return the wall clock minus CLOCK_MONOTONIC.

    The shortest of several readings counts: a process that is descheduled between two clocks would shift every arrival.
    """
    readings = []
    for _ in range(CLOCK_READINGS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2))
    return min(readings)[1]


WALL_AHEAD_NS = wall_ahead_ns()


def udp_socket(phase: Phase) -> socket.socket:
    """Return a socket that never fragments and drops nothing itself."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    for option, plain in ((SO_RCVBUFFORCE, socket.SO_RCVBUF), (SO_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            end.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        except PermissionError:
            end.setsockopt(socket.SOL_SOCKET, plain, SOCKET_BUFFER_BYTES)
    # The kernel stamps arrivals: this program may get a core only later.
    end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    end.bind((phase["own"], phase["port"]))
    end.connect((phase["peer"], phase["port"]))
    end.setblocking(False)
    return end


class UdpPhase:
    """Phase that sends datagrams at their times, collects arrivals and echoes."""

    def __init__(self, phase: Phase, start_ns: int) -> None:
        self.phase = phase
        self.end = udp_socket(phase)
        self.begin_ns = start_ns + int(phase["begin_s"] * 1e9)
        self.end_ns = start_ns + int(phase["end_s"] * 1e9)
        # Datagram number k is of size sizes[k % n]; `burst` of them leave together, every `interval_s`.
        self.sizes: list[int] = phase.get("sizes", [])
        self.count: int = phase.get("count", 0)
        self.sent = self.too_long = 0
        self.arrivals: list[tuple[int, int, int, int, int]] = []  # sequence, sent, echoed, arrived, IP bytes
        self.buffer = bytearray(65536)

    def run(self) -> dict[str, Any]:
        """Run the phase; return counts and arrivals."""
        wait_until(self.begin_ns)
        interval_ns = int(self.phase.get("interval_s", 0.0) * 1e9)
        burst = self.phase.get("burst", 1)
        payloads = {size: bytes(size - UDP_HEADERS - HEADER.size) for size in set(self.sizes)}
        while (now_ns := time.monotonic_ns()) < self.end_ns:
            due = (
                self.count
                if not interval_ns
                else min(self.count, ((now_ns - self.begin_ns) // interval_ns + 1) * burst)
            )
            blocked = False
            while self.sent < due and not blocked:
                blocked = not self.send(payloads)
                if self.sent % 16 == 0:
                    break
            self.drain()
            if self.sent < due and not blocked:
                continue
            if self.phase.get("polls"):  # a sleeping core would add the time that it takes to wake
                os.sched_yield()
                continue
            next_ns = self.begin_ns + (self.sent // burst) * interval_ns if self.sent < self.count else self.end_ns
            timeout_s = max(0.0, (min(next_ns, self.end_ns) - time.monotonic_ns()) / 1e9)
            select.select([self.end], [self.end] if blocked else [], [], timeout_s)
        self.drain(everything=True)
        return {"sent": self.sent, "too_long": self.too_long, "arrivals": self.arrivals}

    def send(self, payloads: dict[int, bytes]) -> bool:
        """Send the next datagram; False if the socket is full."""
        size = self.sizes[self.sent % len(self.sizes)]
        try:
            self.end.send(HEADER.pack(self.sent, time.monotonic_ns(), 0) + payloads[size])
        except BlockingIOError:
            return False
        except OSError:  # EMSGSIZE: longer than this host's own interface allows; ECONNREFUSED: the other end is late
            self.too_long += 1
        self.sent += 1
        return True

    def drain(self, *, everything: bool = False) -> None:
        """Read arrivals."""
        data = self.buffer
        for _ in range(1 << 30 if everything else DRAIN_AT_ONCE):
            try:
                length, ancillary, _flags, _address = self.end.recvmsg_into([data], 64)
            except BlockingIOError:
                return
            except OSError:
                continue
            arrived_ns = stamp_ns(ancillary)
            sequence, sent_ns, echoed_ns = HEADER.unpack_from(data)
            if self.phase.get("echo"):
                try:
                    self.end.send(HEADER.pack(sequence, sent_ns, arrived_ns) + struct.pack(">Q", time.monotonic_ns()))
                except OSError:
                    continue
            elif echoed_ns:  # an echo carries when it was sent back as well
                returned_ns = struct.unpack_from(">Q", data, HEADER.size)[0]
                self.arrivals.append((sequence, sent_ns, echoed_ns, returned_ns, arrived_ns))
            else:
                self.arrivals.append((sequence, sent_ns, 0, arrived_ns, length + UDP_HEADERS))


def stamp_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return the kernel's time stamp of a datagram on CLOCK_MONOTONIC."""
    for _level, kind, data in ancillary:
        if kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = TIMESPEC.unpack_from(data)
            return int(seconds * 1_000_000_000 + nanoseconds - WALL_AHEAD_NS)
    return time.monotonic_ns()


def tcp_phase(phase: Phase, start_ns: int) -> dict[str, Any]:
    """Send for the whole phase, or count arrivals after `skip_s`, which is slow start."""
    begin_ns, end_ns = (start_ns + int(phase[name] * 1e9) for name in ("begin_s", "end_s"))
    if phase["sends"]:
        wait_until(begin_ns)
        return tcp_send(phase, end_ns)
    with socket.create_server((phase["own"], phase["port"])) as server:
        return tcp_count(server, begin_ns + int(phase["skip_s"] * 1e9), end_ns)


def tcp_send(phase: Phase, end_ns: int) -> dict[str, Any]:
    left_s = (end_ns - time.monotonic_ns()) / 1e9
    try:
        with socket.create_connection((phase["peer"], phase["port"]), timeout=max(0.01, left_s)) as end:
            end.setblocking(False)
            # The other end closes after the phase; what is still queued then must not disturb the next one.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            while (now_ns := time.monotonic_ns()) < end_ns:
                if select.select([], [end], [], (end_ns - now_ns) / 1e9)[1]:
                    end.send(TCP_CHUNK)
    except OSError as error:
        return {"error": str(error)}
    return {}


def tcp_count(server: socket.socket, from_ns: int, end_ns: int) -> dict[str, Any]:
    server.settimeout(max(0.01, (end_ns - time.monotonic_ns()) / 1e9))
    first_ns = last_ns = counted = 0
    buffer = bytearray(1 << 18)
    try:
        end, _ = server.accept()
        with end:
            while (now_ns := time.monotonic_ns()) < end_ns:
                end.settimeout((end_ns - now_ns) / 1e9)
                length = end.recv_into(buffer)
                if not length:
                    break
                arrived_ns = time.monotonic_ns()
                if arrived_ns < from_ns:
                    continue
                if first_ns:  # the first read opens the interval: its bytes arrived before it
                    counted, last_ns = counted + length, arrived_ns
                else:
                    first_ns = arrived_ns
    except OSError as error:
        if not counted:
            return {"error": str(error)}
    return {"bytes": counted, "first_ns": first_ns, "last_ns": last_ns}


def wait_until(moment_ns: int) -> None:
    """Sleep until a moment of CLOCK_MONOTONIC."""
    left_s = (moment_ns - time.monotonic_ns()) / 1e9
    if left_s > 0:
        time.sleep(left_s)


def main(text: str) -> None:
    """Run the phases in order."""
    # Real time, if permitted: the link is to be measured, not the load of the machine.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    plan = json.loads(text)
    start_ns = plan["start_ns"]
    late = time.monotonic_ns() > start_ns
    # All sockets are open before the start: a datagram to a closed port would be lost, and not by the link.
    udp = {index: UdpPhase(p, start_ns) for index, p in enumerate(plan["phases"]) if p["kind"] == "udp"}
    results = [
        udp[index].run() if index in udp else tcp_phase(phase, start_ns) for index, phase in enumerate(plan["phases"])
    ]
    json.dump({"late": late, "results": results}, sys.stdout, separators=(",", ":"))


if __name__ == "__main__":
    main(sys.argv[1])
