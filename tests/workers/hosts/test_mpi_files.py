"""The MPI library of a program, read from its files without a run."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from tests.workers.clusters.mpi_programs import hidden_in_script, library, mpi_program
from workers.agent.mpi_files import (
    END,
    MAGIC,
    NEEDED,
    RPATH,
    RUNPATH,
    STRINGS,
    TYPE_DYNAMIC,
    TYPE_LOAD,
    loaded_by,
    script_words,
)

PATHS = {"PATH": "/usr/bin:/bin"}


def names(*program: str, directory: str = "/", **variables: str) -> list[str]:
    return [Path(file).name for file in loaded_by(program, {**PATHS, **variables}, directory)]


@pytest.mark.parametrize(
    ("program", "first"),
    [
        (["hpcc"], "libmpi.so.40"),
        (["lmp", "-in", "in.water"], "libmpi.so.40"),  # through a library of its own
        (["/usr/bin/python3", "-m", "solver"], "libmpi.so.40"),  # of mpi4py
        (["/bin/sh", "-c", 'rank=0\n[ "$rank" -ge 2 ] && exec NPopenmpi 3'], "libmpi.so.40"),
    ],
)
def test_it_finds_the_library_of_a_program(program: list[str], first: str) -> None:
    assert names(*program)[0] == first
    assert "libopen-pal.so.40" in names(*program)


def test_it_reports_the_libraries_of_two_programs_apart(tmp_path: Path) -> None:
    assert names(str(mpi_program(tmp_path, "libmpich.so.12")))[0] == "libmpich.so.12"
    assert names(str(mpi_program(tmp_path, "libmpi.so.40")))[0] == "libmpi.so.40"


def test_it_reads_scripts_for_the_programs_that_they_start(tmp_path: Path) -> None:
    program = mpi_program(tmp_path, "libmpich.so.12")
    inner = hidden_in_script(tmp_path, f"exec ./{program.name} 'x'")
    assert names("./run.sh", directory=str(tmp_path)) == ["libmpich.so.12"]
    assert names("sh", inner.name, directory=str(tmp_path)) == ["libmpich.so.12"]
    words = script_words(["sh", "run.sh", "{}"], tmp_path)
    assert f"./{program.name}" in words
    assert names("sh", "run.sh", *words, directory=str(tmp_path)) == ["libmpich.so.12"]


def test_it_looks_where_the_program_will_look(tmp_path: Path) -> None:
    (tmp_path / "libmpich.so.12").symlink_to(library("libmpich.so.12").resolve())
    program = str(mpi_program(tmp_path, "libmpich.so.12"))
    assert loaded_by([program], {**PATHS, "LD_LIBRARY_PATH": str(tmp_path)}, "/") == [f"{tmp_path}/libmpich.so.12"]


def test_it_knows_what_a_wheel_of_mpi4py_will_take(tmp_path: Path) -> None:
    """A wheel prefers its own environment's library to the system's."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages" / "mpi4py"
    packages.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.symlink_to("/usr/bin/python3")
    for interface in ("mpich", "openmpi"):
        (packages / f"MPI.{interface}.cpython-311-x86_64-linux-gnu.so").write_bytes(b"")
    assert names(str(python), "solve.py")[0].startswith("libmpi.so.40")
    assert names(str(python), "solve.py", MPI4PY_MPIABI="mpich") == ["libmpi.so.12"]
    (tmp_path / "lib" / "libmpi.so.12").write_bytes(b"")
    assert loaded_by([str(python), "solve.py"], PATHS, "/") == [f"{tmp_path}/lib/libmpi.so.12"]


def test_it_sees_nothing_in_what_is_no_mpi_program(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 100)
    for program in (
        ["/bin/ls", "/etc"],
        [str(odd)],
        ["no-such-program"],
        ["apptainer", "exec", "i.sif", "hpcc"],
        ["/"],
    ):
        assert names(*program) == []


def test_words_of_other_files_than_the_inputs_are_not_sent_to_hosts(tmp_path: Path) -> None:
    work, secret = tmp_path / "work", tmp_path / "secret"
    work.mkdir()
    secret.write_text("SECRET_KEY=hidden")
    (work / "run.sh").write_text("exec prog")
    program = ["sh", str(secret), "../secret", "x/../../secret", "", "n" * 300, "run.sh"]
    assert script_words(program, work) == ["exec", "prog"]


@pytest.mark.parametrize("tag", [NEEDED, RPATH, RUNPATH])
@pytest.mark.parametrize("letter", [b"n", b":"])
def test_a_program_of_endless_entries_and_names_is_read_in_little_memory(
    tag: int, letter: bytes, tmp_path: Path
) -> None:
    """Each entry could name all strings: a terabyte for a file of 5 MB."""
    count, strings = 2000, letter * (1 << 20)
    entries = struct.pack("<QQ", tag, 0) * count + struct.pack("<QQQQ", STRINGS, 0, END, 0)
    begin = 64 + 2 * 56
    head = MAGIC.ljust(32, b"\0") + struct.pack("<QQIHHH", 64, 0, 0, 64, 56, 2) + bytes(6)
    dynamic = struct.pack("<IIQQQQQQ", TYPE_DYNAMIC, 0, begin, 0, 0, len(entries), 0, 0)
    load = struct.pack("<IIQQQQQQ", TYPE_LOAD, 0, begin + len(entries), 0, 0, len(strings), 0, 0)
    program = tmp_path / "program"
    program.write_bytes(head + dynamic + load + entries + strings)
    tracemalloc.start()
    try:
        assert names(str(program)) == []
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
