"""Speed of the analysis of captures, beside tcptrace.

    python -m benchmarks.analysis_speed [--capture FILE] [--large PACKETS ...]

Without a capture it records one: LAMMPS on four ranks over the loopback of a namespace, about 300 000 packets, snap
length 128. Ours and tcptrace read it in turn from a warm cache, with CPU time beside wall time, which other programs on the
machine disturb less; then the cold start, and the memory of hostile captures. ``--large`` generates captures of that many
packets to show time and memory as they grow. Takes less than two minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import analysis
from analysis.capture.stream import CaptureReader
from tests.analysis.capture import hostile
from tests.analysis.conftest import MPI_COMMAND, WATER
from tests.analysis.oracles import capture as oracle
from tests.analysis.recordings.recording import record

STEPS = "1550"
SAMPLE_PACKETS = 300
"""A cold start reads this many packets."""


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


def recorded(directory: Path) -> Path:
    """A real MPI capture as a savefile with microseconds, which every tool reads."""
    for name in ("in.water", "water.mol"):
        shutil.copy(WATER / name, directory / name)
    longer = {"3": "4", "4": "8", "12": STEPS}
    command = [longer.get(word, word) for word in MPI_COMMAND]
    record(directory / "mpi.pcapng", ["sh", "-c", 'cd "$0" && exec "$@" > output 2>&1', str(directory), *command])
    subprocess.run(["editcap", "-F", "pcap", str(directory / "mpi.pcapng"), str(directory / "mpi.pcap")], check=True)
    return directory / "mpi.pcap"


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


def cold_starts(path: Path, directory: Path) -> str:
    """The command line beside what every program with NumPy costs."""
    few = directory / "first.pcap"
    subprocess.run(["editcap", "-r", str(path), str(few), f"1-{SAMPLE_PACKETS}"], check=True)
    ours = cold_cpu_s("-m", "analysis", "stats", str(few), "--json")
    nothing, numpy = cold_cpu_s("-c", "pass"), cold_cpu_s("-c", "import numpy")
    return f"cold, {SAMPLE_PACKETS} packets: {ours:.2f} s of CPU; import numpy {numpy:.2f} s, python -c pass {nothing:.2f} s"


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


def memory_of_hostile_captures(directory: Path, packets: int = 1_000_000) -> list[str]:
    """The most that a process was resident with, in MB."""
    lines = []
    for name in ("port_scan", "host_pairs", "host_scan", "connections_in_turn"):
        path = directory / "hostile.pcap"
        path.write_bytes(hostile.GENERATORS[name](packets))
        lines.append(f"{name:24} {most_resident_mb(path):6.0f} MB resident")
    return lines


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


def growth(model: Path, directory: Path, sizes: list[int]) -> list[str]:
    """Time and largest memory of a fresh process per size."""
    lines = []
    for packets in sizes:
        path = directory / "large.pcap"
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
    parser.add_argument("--large", type=int, nargs="*", default=[2_000_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        path = options.capture or recorded(directory)
        packets = int(analysis.analyse(path).metrics["packets"])
        print(f"{packets:,} packets, {path.stat().st_size / 1e6:.0f} MB; least and median of 30, ms")
        print(*in_turn(path), sep="\n")
        print(f"decoding alone          {packets / best(lambda: decode_alone(path), 15) / 1e6:6.1f} million packets/s")
        print(f"command line, cold      {cold_start(path):6.2f} s")
        print(cold_starts(path, directory))
        print(*growth(path, directory, options.large), sep="\n")
        print(*memory_of_hostile_captures(directory), sep="\n")


if __name__ == "__main__":
    main()
