"""Facts of a machine: kernel, processor, memory, MPI library, the program.

Standard library and Python 3.9 only: this runs with every agent.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.common.processors import core_count, cores
from workers.agent.mpi_files import opened, shared_libraries
from workers.agent.variables import without_job

QUESTION_LIMIT_S = 10.0
CHUNK_BYTES = 1 << 20
MOST_HASHED_BYTES = 2 << 30
INTERPRETER = re.compile(r"(python|pypy|perl|ruby|lua|node|julia|Rscript|octave|bash|dash|sh|zsh|ksh)[\d.]*")
MPI_PARAMETERS = (
    "/etc/openmpi/openmpi-mca-params.conf",
    "/etc/openmpi/prte-mca-params.conf",  # of PRRTE, which starts the ranks since Open MPI 5
    "~/.openmpi/mca-params.conf",
    "~/.prte/mca-params.conf",
)


def facts(program: Sequence[str], mpirun: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """Return facts of the machine, a program and a launch command, JSON-able.

    `program` is an argv (empty: none), `mpirun` the launch command; both are looked up in the PATH of `variables`, which a job's
    programs see.
    """
    path = variables["PATH"]
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": distribution(),
        "cpu": processor(),
        "machine": system_facts(),
        "memory_bytes": memory_bytes(),
        "mpi": mpi_version(mpirun, variables),
        "mpi_parameters": mpi_parameters(),
        "program": {**program_facts(program[0], path), **script_facts(program)} if program else None,
    }


def memory_kills(counters: Path = Path("/proc/vmstat")) -> int:
    """Return how many processes this kernel has ended for lack of memory."""
    for line in counters.read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


def memory_bytes() -> int:
    """Return the physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def distribution() -> str:
    """Return PRETTY_NAME of os-release(5)."""
    for line in _lines(Path("/etc/os-release")):
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return "unknown"


def mpi_parameters() -> list[str]:
    """Return the settings of the machine's and the user's files of Open MPI."""
    lines = [line.strip() for name in MPI_PARAMETERS for line in _lines(Path(name).expanduser())]
    return [line for line in lines if line and not line.startswith("#")]


def processor() -> dict[str, Any]:
    """Return model, physical cores that this process may use, and the governor.

    If it may use several hardware threads of a core, their number too.
    """
    usable = os.sched_getaffinity(0)
    count = core_count(usable)
    models = [line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    governor = _lines(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    return {
        "model": models[0] if models else platform.processor() or "unknown",
        "cores": count,
        **({"hardware_threads": len(usable)} if len(usable) > count else {}),
        "governor": governor[0] if governor else None,
    }


def system_facts(sys: Path = Path("/sys"), proc: Path = Path("/proc")) -> dict[str, Any]:
    """Return facts of the whole machine that a restart alone does not change.

    Vulnerabilities that do not affect the processor are left out: each new kernel knows more of them.
    """
    devices, memory = sys / "devices/system", sys / "kernel/mm"
    every_core = cores(devices)
    microcode = sorted(
        {line.split(":", 1)[1].strip() for line in _lines(proc / "cpuinfo") if line.startswith("microcode")}
    )
    states = {file.name: _line(file) for file in sorted((devices / "cpu/vulnerabilities").glob("*"))}
    pages = {size.name[10:]: _reserved(size) for size in sorted((memory / "hugepages").glob("hugepages-*kB"))}
    chosen = re.search(r"\[(\w+)\]", _line(memory / "transparent_hugepage/enabled"))
    facts = {
        "sockets": len({core.socket for core in every_core}),
        "numa_nodes": len({core.numa for core in every_core}),
        "numa_balancing": _line(proc / "sys/kernel/numa_balancing"),
        "smt": _line(devices / "cpu/smt/control"),
        "microcode": microcode,
        "mitigations": {name: state for name, state in states.items() if state not in ("", "Not affected")},
        "huge_pages": {"transparent": chosen[1] if chosen else "", **pages},
        "firmware": {file.parent.name: _line(file) for file in sorted((sys / "class/infiniband").glob("*/fw_ver"))},
    }
    return {name: value for name, value in facts.items() if value or isinstance(value, dict)}


def _reserved(size: Path) -> int:
    """Return the huge pages that the administrator reserved: not those of a moment."""
    counts = [_line(size / name) for name in ("nr_hugepages", "surplus_hugepages")]
    return int(counts[0] or 0) - int(counts[1] or 0)


def program_facts(program: str, path: str) -> dict[str, Any]:
    """Return a program's path, hash, package or commit, and the libraries it loads."""
    executable = shutil.which(program, path=path)
    if executable is None:
        return {"path": program, "sha256": None, "package": None, "libraries": [], "git_commit": None}
    file = Path(executable).resolve()
    status = file.stat()
    return {
        "path": str(file),
        "sha256": _digest(file, status.st_mtime_ns, status.st_size),
        "package": _package(file, status.st_mtime_ns),
        "libraries": list(_libraries(file, status.st_mtime_ns)),
        "git_commit": _git_commit(file.parent),
    }


def script_facts(program: Sequence[str]) -> dict[str, Any]:
    """Return the `script` that an interpreter runs if it is a file; else nothing.

    Only the first such argument: later ones may be data or output files.
    """
    if not INTERPRETER.fullmatch(Path(program[0]).name):
        return {}
    # That of Path raises for names that are too long, and below closed directories.
    files = (Path(word) for word in program[1:] if word.startswith("/") and os.path.isfile(word))  # noqa: PTH113
    script = next(files, None)
    if script is None:
        return {}
    file = script.resolve()
    status = file.stat()
    digest = _digest(file, status.st_mtime_ns, status.st_size)
    return {"script": {"path": str(file), "sha256": digest, "git_commit": _git_commit(file.parent)}}


@functools.lru_cache(maxsize=64)
def _digest(path: Path, _changed_ns: int, size: int) -> str | None:
    """Return the hash of a file; None if it is unreadable or too long."""
    if size > MOST_HASHED_BYTES:
        return None
    digest = hashlib.sha256()
    try:
        with opened(path) as stream:
            for _ in range(0, MOST_HASHED_BYTES, CHUNK_BYTES):
                if not (chunk := stream.read(CHUNK_BYTES)):
                    return digest.hexdigest()
                digest.update(chunk)
    except OSError:
        pass
    return None


@functools.lru_cache(maxsize=64)
def _package(path: Path, _changed_ns: int) -> str | None:
    """Return `name version` from dpkg; None if the file belongs to no package."""
    # Packages from before the merge of /bin into /usr/bin list the old name. One call: each reads all lists, 0.1 s.
    names = {str(path), str(path).removeprefix("/usr")}
    owner = _output("dpkg-query", "--search", *names, failed=1).partition(":")[0]
    if not owner:
        return None
    return _output("dpkg-query", "--show", "--showformat=${Package} ${Version}", owner) or None


def mpi_version(mpirun: str, variables: Mapping[str, str]) -> str | None:
    """Return name and version that a launch command prints; None if it is missing."""
    launcher = shutil.which(mpirun, path=variables["PATH"])
    if launcher is None:
        return None
    return _mpi_version(launcher, Path(launcher).stat().st_mtime_ns, tuple(sorted(variables.items())))


@functools.lru_cache(maxsize=8)
def _mpi_version(mpirun: str, _changed_ns: int, variables: tuple[tuple[str, str], ...]) -> str | None:
    return read_version(_output(mpirun, "--version", variables=dict(variables)))


def read_version(said: str) -> str | None:
    """Return the first line, or the second, where MPICH's Hydra has its version."""
    if (hydra := re.match(r"HYDRA build details:\s+Version:\s+(\S+)", said)) is not None:
        return f"Hydra {hydra[1]}"
    return next(iter(said.splitlines()), None)


def _output(*argv: str, variables: Mapping[str, str] | None = None, failed: int = 0) -> str:
    """Return what a command prints; `failed`: its status after success in a part."""
    environment = {**without_job(os.environ), **(variables or {})}
    try:
        result = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=QUESTION_LIMIT_S,
            check=False,
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode in {0, failed} else ""


@functools.lru_cache(maxsize=64)
def _libraries(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Return the versioned file names of the shared libraries: libmpi.so.40.30.4.

    A library that only a job's variables lead to has the name that the program requests: libmpi.so.40.
    """
    return tuple(shared_libraries(path, os.environ.get("LD_LIBRARY_PATH", "").split(":")))


def _git_commit(directory: Path) -> str | None:
    """Return the commit of a git work tree, "-dirty" if changed; else None."""
    if not any((parent / ".git").exists() for parent in (directory, *directory.parents)):
        return None
    return _output("git", "-C", str(directory), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*") or None


def _line(path: Path) -> str:
    return next(iter(_lines(path)), "")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
