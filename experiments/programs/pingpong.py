"""Ping-pong between ranks 0 and 1: time per message size, as IMB defines it.

t[usec] is half of a round trip and Mbytes/s is size / t with 1 MB = 1 000 000 bytes. Further ranks wait asleep. The program runs with
the system's Python and mpi4py, on hosts without Rankwire, so it is one file and imports nothing else.
"""

from __future__ import annotations

import argparse
import statistics
import time

from mpi4py import MPI  # type: ignore[import-not-found]  # the system's Python has it, this project's has not

LEFT, RIGHT = 0, 1
GO_ON, LAST = 1, 2
"""Tags of a ping: whether another repetition follows. Rank 1 learns the end of a size without a message of its own."""


def whole(text: str) -> int:
    """Return a whole number that is not negative."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def arguments() -> argparse.Namespace:
    """Return the command line, checked; every rank reads the same one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", required=True, type=lambda text: [whole(size) for size in text.split(",")])
    parser.add_argument("--repetitions", type=whole, default=20)
    parser.add_argument("--warmups", type=whole, default=2)
    parser.add_argument("--time-per-size", type=float, default=10.0, help="no repetition starts later, in seconds")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("needs at least one repetition")
    return options


def serve(world: MPI.Intracomm, buffer: bytearray, size: int) -> None:
    """Send every ping of one size back, until the last."""
    status = MPI.Status()
    part = [memoryview(buffer)[:size], size, MPI.BYTE]
    while status.Get_tag() != LAST:
        world.Recv(part, source=LEFT, tag=MPI.ANY_TAG, status=status)
        world.Send(part, dest=LEFT, tag=GO_ON)
        if status.Get_count(MPI.BYTE) != size:
            raise RuntimeError(f"{status.Get_count(MPI.BYTE)} bytes arrived instead of {size}")


def measure(world: MPI.Intracomm, buffer: bytearray, size: int, options: argparse.Namespace) -> list[float]:
    """Return the half round trips of one size in seconds without warm-ups."""
    part = [memoryview(buffer)[:size], size, MPI.BYTE]
    halves: list[float] = []
    started = time.monotonic()
    for number in range(options.warmups + options.repetitions):
        late = time.monotonic() - started > options.time_per_size
        # A slow link may use the time up in the warm-ups; one repetition is measured all the same.
        if late and number < options.warmups:
            continue
        last = late or number == options.warmups + options.repetitions - 1
        before = MPI.Wtime()
        world.Send(part, dest=RIGHT, tag=LAST if last else GO_ON)
        world.Recv(part, source=RIGHT, tag=GO_ON)
        elapsed = MPI.Wtime() - before
        if number >= options.warmups:
            halves.append(elapsed / 2)
        if last:
            break
    return halves


def row(size: int, halves: list[float]) -> str:
    """Return one line of the table."""
    mean = statistics.fmean(halves)
    times = " ".join(f"{1e6 * t:13.3f}" for t in (min(halves), statistics.median(halves), mean))
    return f"{size:13d} {len(halves):13d} {times} {size / mean / 1e6:13.3f}"


def wait(world: MPI.Intracomm) -> None:
    """Wait for all ranks asleep: a polling rank would disturb the measurement."""
    barrier = world.Ibarrier()
    while not barrier.Test():
        time.sleep(0.02)


def main() -> None:
    """Run every size and print the table on rank 0."""
    world = MPI.COMM_WORLD
    options = arguments()
    hosts = world.gather(MPI.Get_processor_name(), root=LEFT)
    if world.size < 2:
        raise SystemExit("a ping-pong needs two ranks")
    if world.rank == LEFT:
        print("# Rankwire ping-pong, ranks 0 and 1 of", world.size, "on", hosts[LEFT], "and", hosts[RIGHT])
        print("# t is half of a round trip; Mbytes/s is bytes / t, 1 MB = 1 000 000 bytes")
        print("#      bytes  #repetitions   t_min[usec]  t_med[usec]       t[usec]      Mbytes/s")
    if world.rank in (LEFT, RIGHT):
        # Filled, because untouched memory would be one shared page of zeros and never leave the cache.
        buffer = bytearray(b"\x5a") * max(1, *options.sizes)
        for size in options.sizes:
            if world.rank == LEFT:
                print(row(size, measure(world, buffer, size, options)), flush=True)
            else:
                serve(world, buffer, size)
    if world.size > 2:
        wait(world)


if __name__ == "__main__":
    main()
