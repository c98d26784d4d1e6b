"""MPI library that a program was built for, read from its files.

Standard library and Python 3.9 only: this runs with every agent.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

MAGIC = b"\x7fELF\x02\x01"  # of 64 bits, the least significant byte first
TYPE_LOAD, TYPE_DYNAMIC = 1, 2
END, NEEDED, STRINGS, STRINGS_BYTES, OWN_NAME, RPATH, RUNPATH = 0, 1, 5, 10, 14, 15, 29
SYSTEM_PLACES = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
LOADER_SETTINGS = "/etc/ld.so.conf.d"
PARTS = re.compile(r"libmpi|libopen-(rte|pal)|libprrte")
NOT_FOLLOWED = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux[^.]*)\.")
LOADER = re.compile(r"ld(-linux|64|\.so)")
PYTHON = re.compile(r"python[\d.]*")
ALIKE = ("libmpi.so", "libmpi.so.12", "libmpi.so.40")
INTERFACES = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12", "impi": "libmpi.so.12"}
CONTAINERS = ("apptainer", "singularity")
WORD = re.compile(r"[^\s\"'`;|&()<>{}$=]+")
MOST_TEXT_BYTES, MOST_WORDS, MOST_FILES, MOST_DYNAMIC_BYTES = 1 << 16, 400, 200, 1 << 22


def loaded_by(program: Sequence[str], variables: Mapping[str, str], directory: str) -> list[str]:
    """Return the MPI library files of the first program of an argv that needs some.

    Paths, or bare names of libraries that are missing; empty if no library is found (a script may start programs under computed
    names). `variables` are the program's environment; relative names are looked up in `directory`.
    """
    for file in _programs(program, variables.get("PATH", os.defpath), directory):
        if libraries := _mpi_of(file, variables):
            return libraries
    return []


def script_words(program: Sequence[str], directory: Path) -> list[str]:
    """Return words of an argv's scripts in `directory`, for a host that lacks them.

    Other files of this machine are no host's business, whatever the argv names.
    """
    below = [directory / item for item in program if not item.startswith("/") and ".." not in item.split("/")]
    texts = [_text(file) for file in below if os.path.isfile(file)]  # noqa: PTH113 - that of Path raises for long names
    return [word for text in texts for word in WORD.findall(text)][:MOST_WORDS]


def _programs(program: Sequence[str], path: str, directory: str) -> Iterator[Path]:
    """Yield the files that an argv and its scripts name, each once."""
    seen = set()
    words = [
        word for item in program for word in ([item] if "\n" not in item and " " not in item else WORD.findall(item))
    ]
    for word in words:  # it grows: a script is read for further words
        if word.rpartition("/")[2] in CONTAINERS:
            return  # the rest of the words is inside an image
        file = _file(word, path, directory)
        if file is None or file in seen:
            continue
        seen.add(file)
        yield file
        if len(words) < MOST_WORDS:
            words += WORD.findall(_text(file))[: MOST_WORDS - len(words)]


def _file(word: str, path: str, directory: str) -> Path | None:
    path_of_word = os.path.join(directory, word) if "/" in word else shutil.which(word, path=path)  # noqa: PTH118
    if path_of_word is None and os.path.exists(os.path.join(directory, word)):  # noqa: PTH110, PTH118 - a script for its interpreter
        path_of_word = os.path.join(directory, word)  # noqa: PTH118
    try:
        if path_of_word is None or not stat.S_ISREG(os.stat(path_of_word).st_mode):  # noqa: PTH116
            return None
        return Path(path_of_word)
    except (OSError, ValueError):
        return None


def _text(file: Path) -> str:
    """Return the beginning of a script; empty for a binary."""
    try:
        with opened(file) as stream:
            content = stream.read(MOST_TEXT_BYTES) or b""
    except OSError:
        return ""
    return "" if b"\0" in content else content.decode(errors="replace")


def opened(file: Path) -> BinaryIO:
    """Open a file of a user for reading, also one that would make its reader wait.

    Raises OSError. Of what would wait, reading returns None.
    """
    return os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _mpi_of(file: Path, variables: Mapping[str, str]) -> list[str]:
    if PYTHON.fullmatch(file.name):
        # The directory's link is followed and the interpreter's not: that of a virtual environment leads out of it.
        root = file.parent.resolve().parent
        extensions = list(_mpi4py(root))
        return (
            _mpi_of(extensions[0], variables)
            if len(extensions) == 1
            else _taken_by_mpi4py(root, variables)
            if extensions
            else []
        )
    return _libraries(file, variables.get("LD_LIBRARY_PATH", "").split(":"))


def _mpi4py(root: Path) -> Iterator[Path]:
    """Yield mpi4py's extensions below an interpreter's prefix, one per interface."""
    yield from root.glob("lib/python3*/site-packages/mpi4py/MPI.*.so")
    if str(root) == "/usr":
        yield from root.glob("lib/python3/dist-packages/mpi4py/MPI.*.so")


def _taken_by_mpi4py(root: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the library that a wheel of mpi4py loads, which fits several.

    The first next to the interpreter, else the loader's choice (mpi4py/_mpiabi.py of version 4.1).
    """
    if (interface := variables.get("MPI4PY_MPIABI", "").lower()) in INTERFACES:
        return [INTERFACES[interface]]
    library_places = [] if str(root) == "/usr" else [str(root / "lib")]
    named = [variables["MPI4PY_LIBMPI"]] if "MPI4PY_LIBMPI" in variables else []
    for places in (library_places, [*variables.get("LD_LIBRARY_PATH", "").split(":"), *_system_places()]):
        for name in (*named, *ALIKE):
            where = _find(name, places)
            if where is not None:
                dynamic = _dynamic(where)
                return [
                    str(where.with_name(dynamic.name or where.name)),
                    *(part for part in dynamic.needed if PARTS.match(part)),
                ]
    return []


def _libraries(file: Path, places: Sequence[str]) -> list[str]:
    """Return the MPI libraries of a program, or of its first library with any."""
    seen: set[str] = set()
    waiting = [file]
    for current in waiting:  # it grows
        if len(seen) > MOST_WORDS:
            break
        needed, run_path, _name = _dynamic(current)
        here = [part.replace("$ORIGIN", str(current.parent)) for part in run_path]
        where = {name: _find(name, [*here, *places, *_system_places()]) for name in needed if name not in seen}
        mpi_names = [name for name in where if name.startswith("libmpi")]
        if mpi_names:
            files = [where[name] for name in mpi_names]
            further = [
                name for path in files if path is not None for name in _dynamic(path).needed if PARTS.match(name)
            ]
            return [*(str(where[name] or name) for name in mpi_names), *dict.fromkeys(further)]
        seen.update(where)
        if len(seen) <= MOST_FILES:
            waiting += [path for name, path in where.items() if path is not None and not NOT_FOLLOWED.match(name)]
    return []


def shared_libraries(file: Path, places: Sequence[str]) -> list[str]:
    """Return the names of all libraries that a program loads, with their versions.

    Not by ldd, which executes code of a program that it shall describe (DT_AUDIT).
    """
    seen: dict[str, Path | None] = {}
    waiting, everywhere = [file], [*places, *_system_places()]
    for current in waiting:  # it grows
        needed, run_path, _name = _dynamic(current)
        here = [part.replace("$ORIGIN", str(current.parent)) for part in run_path]
        if current is file:
            everywhere = [*here, *everywhere]
        for name in needed:
            if name not in seen and len(seen) < MOST_WORDS and not LOADER.match(name):
                seen[name] = path = _find(name, [*here, *everywhere])
                waiting += [path] if path is not None else []
    return sorted(name if path is None else os.path.basename(os.path.realpath(path)) for name, path in seen.items())  # noqa: PTH119


def _find(name: str, places: Sequence[str]) -> Path | None:
    paths = (Path(directory, name) for directory in places if directory.startswith("/"))
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113 - that of Path raises for long names


def _system_places() -> Iterator[str]:
    yield from SYSTEM_PLACES
    for file in sorted(Path(LOADER_SETTINGS).glob("*.conf")):
        yield from (line.strip() for line in _text(file).splitlines() if line.startswith("/"))


class Dynamic(NamedTuple):
    """Dynamic section of an ELF file: needed libraries, search directories, own name."""

    needed: list[str]
    places: list[str]
    name: str


NOTHING = Dynamic([], [], "")


def _dynamic(file: Path) -> Dynamic:
    """Return the dynamic section of an ELF file; `NOTHING` for any other file."""
    try:
        with opened(file) as stream:
            head = stream.read(64) or b""
            if not head.startswith(MAGIC):
                return NOTHING
            start, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
            stream.seek(start)
            table = stream.read(min(size * count, MOST_TEXT_BYTES))
            segments = [struct.unpack_from("<IIQQQQQQ", table, size * number) for number in range(count)]
            part = next(entry for entry in segments if entry[0] == TYPE_DYNAMIC)
            stream.seek(part[2])
            content = stream.read(min(part[5], MOST_DYNAMIC_BYTES))
            entries = list(struct.iter_unpack("<QQ", content[: len(content) // 16 * 16]))
            entries = entries[: next((n for n, (tag, _) in enumerate(entries) if tag == END), len(entries))]
            address = next(value for tag, value in entries if tag == STRINGS)
            held = next(
                entry for entry in segments if entry[0] == TYPE_LOAD and entry[3] <= address < entry[3] + entry[5]
            )
            stream.seek(held[2] + address - held[3])
            length = next((value for tag, value in entries if tag == STRINGS_BYTES), MOST_DYNAMIC_BYTES)
            strings = stream.read(min(length, MOST_DYNAMIC_BYTES))
    except (OSError, ValueError, struct.error, StopIteration):
        return NOTHING  # a static program needs nothing

    def text(offset: int) -> str:
        return strings[offset : offset + MOST_TEXT_BYTES].partition(b"\0")[0].decode(errors="replace")

    # A hostile file has a million entries, each of which is all strings.
    needed = [text(value) for value in [value for tag, value in entries if tag == NEEDED][:MOST_FILES]]
    paths = [text(value) for value in [value for tag, value in entries if tag in (RPATH, RUNPATH)][:2]]
    places = [entry for path in paths for entry in path.split(":")]
    return Dynamic(needed, places[:MOST_WORDS], next((text(value) for tag, value in entries if tag == OWN_NAME), ""))
