"""One rank of the MPI hello: joins the world and prints JSON.

It uses its host's MPI library. Needs only Python: ctypes loads the library. ``hello.py LAUNCH_COMMAND``.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi.so")
LARGE_BYTES = 1 << 20
MPICH = {
    "comm": 0x44000000,
    "int": 0x4C000405,
    "sum": 0x58000003,
    "byte": 0x4C00010D,
}  # handles of the ABI that MPICH, Intel and MVAPICH2 share


def libraries(launcher: str) -> Iterator[str]:
    """Yield names to load, those beside the launch command first."""
    program = shutil.which(launcher)
    root = Path(program).resolve().parent.parent if program else Path("/usr")
    if root not in (Path("/"), Path("/usr")):  # the loader knows those
        near_launcher = (root / part / name for part in ("lib", "lib64", "lib/release") for name in NAMES)
        yield from (str(path) for path in near_launcher if path.exists())
    # Of several installed ones that of the launcher: Hydra sets PMI_SIZE, Open MPI its own variable.
    hydra = "PMI_SIZE" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ
    yield from (NAMES[1], NAMES[2], NAMES[3]) if hydra else NAMES


def load(launcher: str) -> ctypes.CDLL:
    reasons = []
    for name in libraries(launcher):
        try:
            library = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            everything = ctypes.CDLL(None)  # with a preloaded profile, whose functions come first
            return everything if hasattr(everything, "MPI_Init") else library
        except OSError as error:
            reasons.append(str(error))
    raise OSError("; ".join(reasons[:2]))


def handles(library: ctypes.CDLL) -> dict[str, Any]:
    if hasattr(library, "ompi_mpi_comm_world"):
        named = {
            "comm": "ompi_mpi_comm_world",
            "int": "ompi_mpi_int",
            "sum": "ompi_mpi_op_sum",
            "byte": "ompi_mpi_byte",
        }
        return {
            name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, symbol)))
            for name, symbol in named.items()
        }
    return {name: ctypes.c_int(value) for name, value in MPICH.items()}


def meet(library: ctypes.CDLL) -> dict[str, Any]:
    """Add one on every rank: the sum is the number of ranks in the world."""
    handle = handles(library)
    library.MPI_Init(None, None)
    rank, size, one, total = ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_int(1), ctypes.c_int(0)
    library.MPI_Comm_rank(handle["comm"], ctypes.byref(rank))
    library.MPI_Comm_size(handle["comm"], ctypes.byref(size))
    library.MPI_Allreduce(ctypes.byref(one), ctypes.byref(total), 1, handle["int"], handle["sum"], handle["comm"])
    times = ping_pong(library, handle, rank.value) if size.value > 1 else {}
    words, length = ctypes.create_string_buffer(8192), ctypes.c_int(0)
    library.MPI_Get_library_version(words, ctypes.byref(length))
    library.MPI_Finalize()
    version = words.value.decode(errors="replace").split(",")[0].splitlines()[0].strip()
    return {
        "rank": rank.value,
        "size": size.value,
        "sum": total.value,
        **times,
        "library": " ".join(version.replace("Version:", "").split()),
    }


def ping_pong(library: ctypes.CDLL, handle: dict[str, Any], rank: int) -> dict[str, float]:
    """Return half the round trip of a small and a large message, s; on rank 0 only."""
    times = {}
    ignored = ctypes.c_void_p(None if hasattr(library, "ompi_mpi_comm_world") else 1)
    for name, size, rounds in (("small_s", 1, 50), ("large_s", LARGE_BYTES, 3)):
        message = ctypes.create_string_buffer(size)
        arguments = (message, size, handle["byte"], 1 - rank, 0, handle["comm"])
        trips = []
        for _ in range(rounds if rank < 2 else 0):
            begun = time.perf_counter()
            if rank == 0:
                library.MPI_Send(*arguments)
            library.MPI_Recv(*arguments, ignored)
            if rank == 1:
                library.MPI_Send(*arguments)
            trips.append((time.perf_counter() - begun) / 2)
        if rank == 0:
            times[name] = statistics.median(trips)
    return times


def main() -> None:
    answer: dict[str, Any] = {"host": socket.gethostname()}
    try:
        answer.update(meet(load(sys.argv[1])))
    except OSError as error:
        answer["error"] = str(error)
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
