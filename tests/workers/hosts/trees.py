"""Trees of /sys/devices/system in the form that the kernel documents."""

from __future__ import annotations

from pathlib import Path


def write_processors(root: Path, *, sockets: int = 1, numa_nodes: int = 1, cores: int = 2, threads: int = 1) -> Path:
    """Write processors, numbered as Linux does: first threads of all cores first.

    ``numa_nodes`` of a socket, ``cores`` of a NUMA node.
    """
    count = sockets * numa_nodes * cores
    for number in range(count):
        cpus = [number + count * thread for thread in range(threads)]
        for cpu in cpus:
            _write(root / f"cpu/cpu{cpu}/topology/thread_siblings_list", ",".join(map(str, cpus)))
            _write(root / f"cpu/cpu{cpu}/topology/physical_package_id", str(number // (numa_nodes * cores)))
            _write(root / f"cpu/cpu{cpu}/topology/core_id", str(number % (numa_nodes * cores)))
    for node in range(sockets * numa_nodes):
        runs = [f"{node * cores + count * t}-{(node + 1) * cores - 1 + count * t}" for t in range(threads)]
        _write(root / f"node/node{node}/cpulist", ",".join(runs))
    return root


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
