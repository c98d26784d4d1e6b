"""What the wire explains of programs whose structure is known: seconds of latency and volume, true and found.

python -m benchmarks.wire_truth

A ring of ranks on the virtual test-bed, one rank per host, run by the system's Python with mpi4py. "exchange": everyone sends to
the right and receives from the left, then the next step; "token": one message goes round and round. True latency is steps x
one-way delay, true volume is steps x bytes of a message with its headers / rate (less what two frames per burst save: an idle
link hands them over at once). Found is what the chains grow by while the loop runs.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from analysis import read_capture
from analysis.traffic.chains import ChainAccumulator
from tests.analysis.segments import slices
from tests.workers.clusters.trials import PlainLink, run
from workers import launchers
from workers.launchers import Job, Session

PROGRAM: Final = """
import sys, time
from mpi4py import MPI

mode, steps, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
out, into = bytearray(size), bytearray(size)
right, left = (rank + 1) % ranks, (rank - 1) % ranks
world.Barrier()
time.sleep(0.3)
world.Barrier()
begin = time.time()
for step in range(steps):
    if mode == "exchange":
        world.Sendrecv(out, right, recvbuf=into, source=left)
    elif step % ranks == rank:
        world.Send(out, right)
    elif step % ranks == left:
        world.Recv(into, left)
end = time.time()
time.sleep(0.3)
begins, ends = world.gather(begin), world.gather(end)
if rank == 0:
    print(min(begins), max(ends))
"""
SEGMENT_BYTES: Final = 1448
HEADER_BYTES: Final = 66
ENVELOPE_BYTES: Final = 16
"""What Open MPI puts in front of a message, about."""
CASES: Final = (
    ("exchange", 4, 400, 1000, 1e7, 0.0),
    ("exchange", 4, 40, 16_000, 1e7, 0.0),
    ("exchange", 4, 100, 1000, 1e7, 2e-3),
    ("exchange", 4, 40, 16_000, 1e7, 2e-3),
    ("exchange", 4, 100, 6500, 1e7, 2e-3),
    ("exchange", 4, 300, 1000, 1e9, 2e-3),
    ("exchange", 2, 300, 1000, 1e9, 2e-3),
    ("token", 4, 300, 1000, 1e9, 2e-3),
    ("token", 4, 100, 16_000, 1e7, 0.0),
    ("token", 4, 50, 16_000, 1e7, 2e-3),
)
"""Mode, hosts, steps, bytes of a message, rate (bit/s), one-way delay (s)."""


def measure(session: Session, rate_bps: float, words: tuple[str, ...]) -> tuple[float, dict[str, float]]:
    """Seconds of the program's loop, and what the chains grew by meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "ring.py").write_text(PROGRAM)
        hosts = session.hosts
        job = Job(
            program=("/usr/bin/python3", str(directory / "ring.py"), *words),
            ranks=len(hosts),
            ranks_per_host=1,
            hosts=hosts,
            workdir=directory,
            report_dir=directory / "ranks",
        )
        with session.capture() as capture:
            status, out, err = run(session, job)
            capture.stop()
            stored = capture.save(directory / "capture.pcapng.zst")
        if status != 0:
            raise SystemExit(f"the ring ended with {status}: {err}")
        begin_s, end_s = (float(word) for word in out.split())
        table = read_capture(stored)
        ends = [int(np.searchsorted(table.time_ns, round(1e9 * when))) for when in (begin_s, end_s)]
        chains, figures = ChainAccumulator(rate_bps), []
        for part in slices(table, ends)[:2]:
            chains.update(part)
            figures.append(chains.metrics()[0])
        before, after = figures
        return end_s - begin_s, {name: after[name] - before[name] for name in after}


def wire_bytes(size: int) -> int:
    segments = -(-(size + ENVELOPE_BYTES) // SEGMENT_BYTES)
    return size + ENVELOPE_BYTES + segments * HEADER_BYTES


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, nargs="*", help="numbers of the cases, from 0")
    chosen = parser.parse_args().cases
    print("| ring | rate, delay | loop | latency: true, found | volume: true, found | sent again | messages |")
    print("|---|---|---|---|---|---|---|")
    for number, (mode, count, steps, size, rate_bps, delay_s) in enumerate(CASES):
        if chosen and number not in chosen:
            continue
        link = PlainLink(bandwidth_bps=rate_bps, delay_s=delay_s)
        with launchers.get("testbed").open(host_count=count, link=link) as session:
            loop_s, metrics = measure(session, rate_bps, (mode, str(steps), str(size)))
        latency_s, volume_s = metrics["chain_latency_s"], metrics["chain_volume_s"]
        again_s, messages = metrics["chain_retransmission_s"], metrics["chain_messages"]
        print(
            f"| {mode}, {count} hosts, {steps} x {size} B | {rate_bps / 1e6:g} Mbit/s, {delay_s * 1e3:g} ms "
            f"| {loop_s:.3f} s | {steps * delay_s:.3f}, {latency_s:.3f} s "
            f"| {8 * steps * wire_bytes(size) / rate_bps:.3f}, {volume_s:.3f} s | {again_s:.3f} s | {messages:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
