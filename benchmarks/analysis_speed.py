"""Speed of the analysis of captures, beside the tools that people use.

    python -m benchmarks.analysis_speed [--capture FILE] [--large PACKETS ...] [--short] [--hostile MB]

Without a capture it records one: LAMMPS on four ranks over the loopback of a namespace, about 300 000 packets, snap
length 128. Every tool reads the same file from a warm cache; the best of several runs counts. ``--large`` generates
captures of that many packets to show time and memory as they grow. ``--short`` takes less than two minutes: ours and tcptrace in
turn with CPU time beside wall time, which other programs on the machine disturb less, the cold start, and the memory of
hostile captures. ``--hostile`` makes every kind of hostile capture in that size and shows CPU time and memory of each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import analysis
from analysis.capture.stream import CaptureReader
from tests.analysis.capture import hostile
from tests.analysis.conftest import MPI_COMMAND, WATER
from tests.analysis.oracles import capture as oracle
from tests.analysis.recordings.recording import record

STEPS = "1550"
SAMPLE_PACKETS = 300
"""pyshark is measured on this many packets."""
ORACLE_PACKETS = 20_000
TSHARK_FIELDS = (
    "frame.time_epoch", "frame.len", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.len", "tcp.seq", "tcp.ack",
    "tcp.flags", "tcp.window_size", "tcp.analysis.ack_rtt", "tcp.analysis.retransmission",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the table: seconds for ``packets`` packets."""

    name: str
    seconds: float
    packets: int

    @property
    def ns_per_packet(self) -> float:
        return self.seconds / self.packets * 1e9


def best(call: Callable[[], object], runs: int) -> float:
    """Shortest wall time in seconds."""
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def tool(*argv: str) -> Callable[[], object]:
    return lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def recorded(place: Path) -> Path:
    """A real MPI capture as a savefile with microseconds, which every tool reads."""
    for name in ("in.water", "water.mol"):
        shutil.copy(WATER / name, place / name)
    longer = {"3": "4", "4": "8", "12": STEPS}
    command = [longer.get(word, word) for word in MPI_COMMAND]
    record(place / "mpi.pcapng", ["sh", "-c", 'cd "$0" && exec "$@" > output 2>&1', str(place), *command])
    subprocess.run(["editcap", "-F", "pcap", str(place / "mpi.pcapng"), str(place / "mpi.pcap")], check=True)
    return place / "mpi.pcap"


def decode_alone(path: Path) -> None:
    with CaptureReader(path) as reader:
        for _ in reader.tables():
            pass


def cold_start(path: Path) -> float:
    """The command line in a fresh process, kernels compiled before."""
    argv = [sys.executable, "-m", "analysis", "stats", str(path), "--json"]
    return best(tool(*argv), 5)


def cold_cpu_s(*argv: str) -> float:
    """Return the least CPU time, which other programs disturb least, of a start."""
    times = []
    for _ in range(5):
        before = sum(os.times()[2:4])
        subprocess.run([sys.executable, *argv], stdout=subprocess.DEVNULL, check=True)
        times.append(sum(os.times()[2:4]) - before)
    return min(times)


def cold_starts(path: Path, place: Path) -> str:
    """The command line beside what every program with NumPy costs."""
    few = place / "first.pcap"
    subprocess.run(["editcap", "-r", str(path), str(few), f"1-{SAMPLE_PACKETS}"], check=True)
    ours = cold_cpu_s("-m", "analysis", "stats", str(few), "--json")
    nothing, numpy = cold_cpu_s("-c", "pass"), cold_cpu_s("-c", "import numpy")
    return f"cold, {SAMPLE_PACKETS} packets: {ours:.2f} s of CPU; import numpy {numpy:.2f} s, python -c pass {nothing:.2f} s"


def pyshark_seconds(path: Path, place: Path, use_json: bool) -> float:
    import pyshark

    few = place / "few.pcap"
    subprocess.run(["editcap", "-r", str(path), str(few), f"1-{SAMPLE_PACKETS}"], check=True)

    def read() -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        capture = pyshark.FileCapture(str(few), use_json=use_json, include_raw=False)
        assert sum(1 for _ in capture) == SAMPLE_PACKETS
        capture.close()

    empty = place / "one.pcap"
    subprocess.run(["editcap", "-r", str(path), str(empty), "1"], check=True)
    start_up = best(tool("tshark", "-r", str(empty)), 3)
    return max(best(read, 2) - start_up, 1e-9)


def plain_python(path: Path) -> float:
    records = list(oracle.records(path))[:ORACLE_PACKETS]
    return best(lambda: [oracle.packet(one) for one in records], 1)


def in_turn(path: Path, runs: int = 30) -> list[str]:
    """Time ours and tcptrace in turn, for equal load: least, median, wall, CPU."""
    times: dict[str, list[tuple[float, float]]] = {"analysis.analyse": [], "tcptrace -n -l -W -r": []}
    calls: tuple[Callable[[], object], ...] = (
        lambda: analysis.analyse(path),
        tool("tcptrace", "-n", "-l", "-W", "-r", str(path)),
    )
    analysis.analyse(path)
    for _ in range(runs):
        for name, call in zip(times, calls, strict=True):
            before, begin = sum(os.times()[:4]), time.perf_counter()
            answer = call()
            times[name].append((time.perf_counter() - begin, sum(os.times()[:4]) - before))
            del answer  # what is measured is how long one waits for it
    lines = []
    for name, pairs in times.items():
        wall, cpu = (sorted(1e3 * pair[column] for pair in pairs) for column in range(2))
        middle = runs // 2
        lines.append(f"{name:24} wall {wall[0]:6.1f} {wall[middle]:6.1f}  CPU {cpu[0]:6.1f} {cpu[middle]:6.1f}")
    ratios = sorted(theirs[0] / ours[0] for ours, theirs in zip(*times.values(), strict=True))
    return [
        *lines,
        f"times faster, pair by pair: median {ratios[runs // 2]:.2f}, best quarter {ratios[-runs // 4]:.2f}",
    ]


_RESIDENT = """
import sys
from pathlib import Path
import analysis.command_line.commands  # imports what the command line does
analysis.analyse(sys.argv[1])
status = Path("/proc/self/status").read_text()
print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
"""


def most_resident_mb(path: Path) -> float:
    """Return the value of a process that analyses ``path``, without its parent."""
    done = subprocess.run([sys.executable, "-c", _RESIDENT, str(path)], capture_output=True, check=True)
    return int(done.stdout) * 1024 / 1e6


def memory_of_hostile_captures(place: Path, packets: int = 1_000_000) -> list[str]:
    """The most that a process was resident with, in MB."""
    lines = []
    for name in ("port_scan", "host_pairs", "host_scan", "connections_in_turn"):
        path = place / "hostile.pcap"
        path.write_bytes(hostile.GENERATORS[name](packets))
        lines.append(f"{name:24} {most_resident_mb(path):6.0f} MB resident")
    return lines


_COST = """
import sys, time
import analysis.command_line.commands
begin = time.process_time()
result = analysis.analyse(sys.argv[1])
print(time.process_time() - begin, int(result.metrics["packets"]), int(result.metrics.get("connections", 0)), result.trust.verdict)
"""


def costs_of_hostile_captures(place: Path, mb: float) -> Iterator[str]:
    """Return CPU time without the start, and peak resident size, of each kind."""
    path = place / "hostile.pcap"
    for name, made in (hostile.GENERATORS | hostile.LARGE).items():
        each = (len(made(600)) - len(made(300))) / 300
        most = 4_000_000 if name == "options" else int(mb * 1e6)  # no block is longer than 16 MiB
        path.write_bytes(made(min(int(mb * 1e6 / each), most)))
        done = subprocess.run([sys.executable, "-c", _COST, str(path)], capture_output=True, check=True, text=True)
        cpu_s, packets, connections, trust = done.stdout.split()
        yield (
            f"{name:24} {float(cpu_s):6.1f} s of CPU {most_resident_mb(path):6.0f} MB resident"
            f" {int(packets):>10,} packets {int(connections):>10,} connections, {trust}"
        )


def short(path: Path, place: Path) -> list[str]:
    packets = int(analysis.analyse(path).metrics["packets"])
    return [
        f"{packets:,} packets, {path.stat().st_size / 1e6:.0f} MB; least and median of 30, ms",
        *in_turn(path),
        f"decoding alone          {packets / best(lambda: decode_alone(path), 15) / 1e6:6.1f} million packets/s",
        f"command line, cold      {cold_start(path):6.2f} s",
        cold_starts(path, place),
        *growth(path, place, [2_000_000]),
        *memory_of_hostile_captures(place),
    ]


def rows_of(path: Path, place: Path) -> list[Row]:
    """Ours first, then everything that is installed."""
    packets = int(analysis.analyse(path).metrics["packets"])
    name = str(path)
    rows = [
        Row("analysis.analyse, whole catalogue", best(lambda: analysis.analyse(path), 15), packets),
        Row("  decoding alone", best(lambda: decode_alone(path), 15), packets),
        Row("  command line, cold start", cold_start(path), packets),
        Row("cat", best(tool("cat", name), 5), packets),
        Row("capinfos without hashes", best(tool("capinfos", "-cduaeiyxz", name), 5), packets),
        Row("tcptrace -n -l -W -r", best(tool("tcptrace", "-n", "-l", "-W", "-r", name), 5), packets),
    ]
    if shutil.which("tcpdump"):
        rows.append(Row("tcpdump -nr", best(tool("tcpdump", "-nr", name), 2), packets))
    fields = [word for field in TSHARK_FIELDS for word in ("-e", field)]
    rows.append(Row("tshark -T fields", best(tool("tshark", "-n", "-r", name, "-T", "fields", *fields), 1), packets))
    rows.append(Row("plain Python (decoding alone)", plain_python(path), min(ORACLE_PACKETS, packets)))
    rows.append(Row("pyshark, JSON", pyshark_seconds(path, place, True), SAMPLE_PACKETS))
    rows.append(Row("pyshark, XML", pyshark_seconds(path, place, False), SAMPLE_PACKETS))
    return rows


def generate(path: Path, model: Path, packets: int) -> None:
    """Repeat ``model`` with times that go on: sequence numbers repeat, sizes hold."""
    records = list(oracle.records(model))
    period = records[-1].time_ns - records[0].time_ns + 1_000_000
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1))
        written = turn = 0
        while written < packets:
            part = []
            for one in records[: packets - written]:
                seconds, rest = divmod(one.time_ns + turn * period, 10**9)
                part.append(struct.pack("<IIII", seconds, rest, len(one.data), one.orig_len) + one.data)
            file.write(b"".join(part))
            written += len(part)
            turn += 1


def _measure(path: Path, model: Path, answer: multiprocessing.Queue[float]) -> None:
    decode_alone(path)  # the file is in the cache as far as it fits
    analysis.analyse(model)  # loads the kernels: 0.2 s, however long the capture is
    begin = time.perf_counter()
    analysis.analyse(path)
    answer.put(time.perf_counter() - begin)


def growth(model: Path, place: Path, sizes: list[int]) -> list[str]:
    """Time and largest memory of a fresh process per size."""
    lines = []
    for packets in sizes:
        path = place / "large.pcap"
        generate(path, model, packets)
        context = multiprocessing.get_context("spawn")
        answer: multiprocessing.Queue[float] = context.Queue()
        process = context.Process(target=_measure, args=(path, model, answer))
        process.start()
        seconds = answer.get(timeout=3600)
        process.join()
        resident_mb = most_resident_mb(path)
        size = path.stat().st_size
        path.unlink()
        lines.append(
            f"{packets:>12,} packets  {size / 1e9:6.2f} GB  {seconds:8.2f} s  {seconds / packets * 1e9:6.0f} ns/packet"
            f"  {resident_mb:6.0f} MB resident"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capture", type=Path, help="a savefile (pcap); one is recorded when it is not given")
    parser.add_argument("--large", type=int, nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--hostile", type=float, metavar="MB", help="only what hostile captures of that size cost")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        if options.hostile:
            for line in costs_of_hostile_captures(place, options.hostile):
                print(line, flush=True)
            return
        path = options.capture or recorded(place)
        if options.short:
            print("\n".join(short(path, place)))
            return
        rows = rows_of(path, place)
        ours = rows[0].ns_per_packet
        print(f"{rows[0].packets:,} packets, {path.stat().st_size / 1e6:.0f} MB")
        print(f"{'':36}{'seconds':>10}{'ns/packet':>12}{'times ours':>12}")
        for row in rows:
            ratio = row.ns_per_packet / ours
            print(f"{row.name:36}{row.seconds:10.4f}{row.ns_per_packet:12.1f}{ratio:12.2f}")
        table = analysis.read_capture(path)
        print(f"decoding: {1e3 / rows[1].ns_per_packet:.1f} million packets/s")
        print(f"memory of the table: {table.nbytes / len(table):.0f} bytes per packet")
        if options.json:
            options.json.write_text(json.dumps({row.name.strip(): row.ns_per_packet for row in rows}))
        for line in growth(path, place, options.large):
            print(line)


if __name__ == "__main__":
    main()
