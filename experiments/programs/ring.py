"""Ring exchange: each rank sends to its right and receives from its left.

No rank begins a step before the message of the last one arrived, so one message of each step waits for that of the step before: the
critical path has as many messages as there are steps. The program runs with the system's Python and mpi4py, on hosts without
Rankwire, so it is one file and imports nothing else.
"""

from __future__ import annotations

import argparse

from mpi4py import MPI  # type: ignore[import-not-found]  # the system's Python has it, this project's has not


def whole(text: str) -> int:
    """Return a whole number that is not negative."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative")
    return value


def arguments() -> argparse.Namespace:
    """Return the command line, checked; every rank reads the same one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--message-bytes", dest="bytes", required=True, type=whole, help="of every message")
    parser.add_argument("--steps", required=True, type=whole)
    parser.add_argument("--warmups", type=whole, default=20, help="steps before the measured ones")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("needs at least one step")
    return options


def exchange(world: MPI.Intracomm, size: int, steps: int) -> None:
    """Take ``steps`` steps. Raise RuntimeError for a message of another size."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    sent, received = bytearray(b"\x5a") * size, bytearray(size)
    status = MPI.Status()
    for step in range(steps):
        # The tag distinguishes a step from the next; MPI promises tags up to 32767.
        tag = step % 32768
        world.Sendrecv([sent, MPI.BYTE], right, tag, [received, MPI.BYTE], left, tag, status)
        if status.Get_count(MPI.BYTE) != size:
            raise RuntimeError(f"{status.Get_count(MPI.BYTE)} bytes arrived instead of {size}")


def main() -> None:
    """Warm up, take the steps and print the time of the slowest rank."""
    world = MPI.COMM_WORLD
    options = arguments()
    if world.size < 2:
        raise SystemExit("a ring needs two ranks")
    hosts = world.gather(MPI.Get_processor_name(), root=0)
    exchange(world, options.bytes, options.warmups)  # opens the connections and TCP's windows
    world.Barrier()
    before = MPI.Wtime()
    exchange(world, options.bytes, options.steps)
    loop = world.reduce(MPI.Wtime() - before, op=MPI.MAX, root=0)
    if world.rank == 0:
        print("# Rankwire ring,", world.size, "ranks on", ", ".join(dict.fromkeys(hosts)))
        print("#  ranks         bytes         steps        loop[s]")
        print(f"{world.size:8d} {options.bytes:13d} {options.steps:13d} {loop:14.6f}")


if __name__ == "__main__":
    main()
