"""How long it takes to make one capture of the recordings of several hosts, alone and with help: `python -m benchmarks.joining`.

Each line is the median of runs in turn. A helper is a process that waits for shares as a worker's does; the message that asks a real one is
not counted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import django
import numpy as np

django.setup()

from analysis.capture.sharding import Recording  # noqa: E402
from workers.capture.prepared_recordings import Shares, help_with  # noqa: E402

RUNS = 5
SIZES = ((2, 5_000), (4, 25_000), (8, 25_000), (8, 200_000), (32, 50_000))
FRAME = bytes(12) + b"\x08\x00"


def recordings(hosts: int, packets: int, directory: Path) -> list[Recording]:
    """Recordings of ``packets`` frames each: pairs of hosts that send each other segments in order."""
    files = [(directory / f"n{host}.pcapng").open("wb") for host in range(hosts)]
    for file in files:
        file.write(struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
        file.write(struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20))
    chance, sent = np.random.default_rng(1), np.zeros((hosts, hosts), np.int64)
    for number in range(hosts * packets // 2):
        source, target = (int(host) for host in chance.choice(hosts, 2, replace=False))
        block = _block(source, target, int(sent[source, target]), 10**15 + 10 * number)
        sent[source, target] += 60
        for host in (source, target):
            files[host].write(block)
    for file in files:
        file.close()
    return [Recording(f"n{n}", directory / f"n{n}.pcapng", frozenset({f"10.0.0.{n + 1}"})) for n in range(hosts)]


def _block(source: int, target: int, sequence: int, time_us: int) -> bytes:
    ports = (20_000, 40_000) if source < target else (40_000, 20_000)
    tcp = struct.pack("!HHIIBBHHH", *ports, sequence % 2**32, 1, 0x50, 0x10, 500, 0, 0) + bytes(60)
    ends = bytes((10, 0, 0, source + 1, 10, 0, 0, target + 1))
    frame = FRAME + struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + ends + tcp
    padded = frame + bytes(-len(frame) % 4)
    length = 32 + len(padded)
    head = struct.pack("<IIIIIII", 6, length, 0, time_us >> 32, time_us % 2**32, len(frame), len(frame))
    return head + padded + struct.pack("<I", length)


def helper(asked: multiprocessing.Queue[tuple[Path, int] | None]) -> None:
    while (what := asked.get()) is not None:
        help_with(*what)


def joined(recorded: list[Recording], ask: Callable[[Path, int], None] | None) -> tuple[float, float]:
    """(seconds until all shares are made, seconds of joining them)."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        shares = Shares.begin(Path(directory, "shares"), recorded)
        if ask:
            for number in range(1, len(recorded)):
                ask(shares.place, number)
        shares.finish(lambda: None)
        made = time.perf_counter()
        shares.join(Path(directory, "capture.pcapng.zst"))
        return made - start, time.perf_counter() - made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--helpers", type=int, default=1)
    parser.add_argument("--in", dest="place", default=None, help="a directory with room")
    arguments = parser.parse_args()
    asked: multiprocessing.Queue[tuple[Path, int] | None] = multiprocessing.Queue()
    helpers = [multiprocessing.Process(target=helper, args=(asked,)) for _ in range(arguments.helpers)]
    for each in helpers:
        each.start()
    print(
        "| hosts | packets of each | MB | shares alone, s | with help, s | ratio | joining, s |\n|---|---|---|---|---|---|---|"
    )
    for hosts, packets in SIZES:
        directory = Path(tempfile.mkdtemp(dir=arguments.place))
        recorded = recordings(hosts, packets, directory)
        joined(recorded, lambda *what: asked.put(what))  # whatever is loaded at a first use
        alone, helped, joining = [], [], []
        for _ in range(RUNS):
            alone.append(joined(recorded, None)[0])
            with_help, last = joined(recorded, lambda *what: asked.put(what))
            helped.append(with_help)
            joining.append(last)
        megabytes = sum(each.path.stat().st_size for each in recorded) / 1e6
        medians = statistics.median(alone), statistics.median(helped), statistics.median(joining)
        print(
            f"| {hosts} | {packets} | {megabytes:.1f} | {medians[0]:.3f} | {medians[1]:.3f} | "
            f"{medians[1] / medians[0]:.2f} | {medians[2]:.3f} |",
            flush=True,
        )
        shutil.rmtree(directory)
    for _ in helpers:
        asked.put(None)
    for each in helpers:
        each.join()
    own, theirs = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"most resident: {own:.0f} MiB here, {theirs:.0f} MiB of a helper")


if __name__ == "__main__":
    main()
