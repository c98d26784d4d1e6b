"""Trees of /sys and /proc in the forms that the kernel documents."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

RANGE_UJ = 262_143_328_850


def write(root: Path, files: Mapping[str, object]) -> Path:
    """Write files below a root; each ends with a newline as the kernel's do."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    return root


def write_processors(root: Path, *, sockets: int = 1, numa_nodes: int = 1, cores: int = 2, threads: int = 1) -> Path:
    """Write processors, numbered as Linux does: first threads of all cores first.

    ``numa_nodes`` of a socket, ``cores`` of a NUMA node.
    """
    count = sockets * numa_nodes * cores
    files: dict[str, object] = {}
    for number in range(count):
        cpus = [number + count * thread for thread in range(threads)]
        for cpu in cpus:
            topology = f"cpu/cpu{cpu}/topology"
            files[f"{topology}/thread_siblings_list"] = ",".join(map(str, cpus))
            files[f"{topology}/physical_package_id"] = number // (numa_nodes * cores)
            files[f"{topology}/core_id"] = number % (numa_nodes * cores)
    for node in range(sockets * numa_nodes):
        runs = [f"{node * cores + count * t}-{(node + 1) * cores - 1 + count * t}" for t in range(threads)]
        files[f"node/node{node}/cpulist"] = ",".join(runs)
    return write(root, files)


def rapl(zone: str, name: str, energy_uj: int, range_uj: int = RANGE_UJ) -> dict[str, object]:
    folder = f"sys/class/powercap/intel-rapl:{zone}"
    return {f"{folder}/name": name, f"{folder}/energy_uj": energy_uj, f"{folder}/max_energy_range_uj": range_uj}


def energy(root: Path, zone: str) -> Path:
    return root / f"sys/class/powercap/intel-rapl:{zone}/energy_uj"


def replace(path: Path, content: object) -> None:
    """Replace a file's content at once, as a read of sysfs sees it."""
    part = path.with_name(f"{path.name}.part")
    part.write_text(f"{content}\n")
    part.rename(path)


@contextmanager
def moving(step: Callable[[float], object], every_s: float = 0.05) -> Iterator[None]:
    """Call ``step`` with the seconds since the start, again and again."""
    ended, began = threading.Event(), time.monotonic()

    def run() -> None:
        while not ended.wait(every_s):
            step(time.monotonic() - began)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
