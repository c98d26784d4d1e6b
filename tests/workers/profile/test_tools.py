"""Other PMPI tools run as without the profile, which counts as without them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.workers.clusters.mpi_programs import library as library_of_this_machine
from tests.workers.profile import tool
from tests.workers.profile.counting import counted
from tests.workers.profile.ranks import LIMIT_S, MPICH, OPEN_MPI, PROGRAMS, Ran, run

Program = Callable[[str], Path]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tools")


def alone(argv: Sequence[str | Path], *, preload: Path | None = None) -> str:
    """Return the output of a program that no profile counts."""
    done = subprocess.run(
        [*OPEN_MPI, *_with(preload), "-np", "2", *argv], capture_output=True, text=True, timeout=LIMIT_S, check=True,
        env={**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"},
    )  # fmt: skip
    return done.stdout


def profiled(argv: Sequence[str | Path], shared: Path, *, preload: Path | None = None, level: str = "summary") -> Ran:
    return run(argv, shared, launcher=[*OPEN_MPI, *_with(preload)], level=level)


def _with(preload: Path | None) -> list[str]:
    return ["-x", f"LD_PRELOAD={preload}"] if preload else []


def calls(ran: Ran) -> dict[str, tuple[int, int]]:
    """Return calls and bytes by function, of all ranks."""
    rows: dict[str, tuple[int, int]] = {}
    for profile in ran.profiles.values():
        for row in profile.rows:
            before = rows.get(row.name, (0, 0))
            rows[row.name] = before[0] + row.calls, before[1] + row.bytes
    return rows


@pytest.fixture(scope="module")
def usual(shared: Path, program: Program) -> Ran:
    """The program's profile without another tool."""
    directory = shared / "usual"
    directory.mkdir()
    return profiled([program("messages.c")], directory)


@pytest.mark.parametrize("level", ["summary", "trace"])
def test_a_preloaded_tool_counts_what_it_counts_alone(
    level: str, usual: Ran, shared: Path, program: Program, tmp_path: Path
) -> None:
    library = tool.library(shared)
    expected = tool.counts(alone([program("messages.c")], preload=library))
    ran = profiled([program("messages.c")], tmp_path, preload=library, level=level)
    assert ran.status == 0, ran.output
    assert tool.counts(ran.output) == expected
    assert {"Init", "Finalize", "Comm_rank", "Sendrecv", "Wait"} <= expected.keys()
    assert calls(ran) == calls(usual)
    assert counted(ran) == counted(usual)
    assert {profile.tools for profile in ran.profiles.values()} == {(library.name,)}
    assert {profile.tools for profile in usual.profiles.values()} == {()}
    assert {profile.end for profile in ran.profiles.values()} == {"finalize"}


@pytest.mark.parametrize("how", ["as a library", "into the program", "after the profile was loaded"])
def test_a_tool_that_is_linked_or_comes_first_is_chained(
    how: str, usual: Ran, shared: Path, program: Program, tmp_path: Path
) -> None:
    library, source = tool.library(shared), PROGRAMS / "messages.c"
    linked = tmp_path / "linked"
    if how == "as a library":
        tool.build(linked, "-O1", "-pthread", source, library)
    elif how == "into the program":
        tool.build(linked, "-O1", "-pthread", source, library.with_suffix(".c"))
    else:
        linked.write_text(f'#!/bin/sh\nLD_PRELOAD={library}:$LD_PRELOAD exec {program("messages.c")} "$@"\n')
        linked.chmod(0o755)
    expected = tool.counts(alone([program("messages.c")], preload=library))
    ran = profiled([linked], tmp_path)
    assert ran.status == 0, ran.output
    assert tool.counts(ran.output) == expected
    assert calls(ran) == calls(usual)
    assert counted(ran) == counted(usual)
    (named,) = {profile.tools for profile in ran.profiles.values()}
    assert named == ("linked" if how == "into the program" else library.name,)


def test_a_tool_in_the_program_for_some_functions_loses_no_call(usual: Ran, tmp_path: Path) -> None:
    source = tmp_path / "own.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int MPI_Barrier(MPI_Comm comm) { puts(\"own barrier\"); return PMPI_Barrier(comm); }\n"
        "int MPI_Finalize(void) { puts(\"own end\"); return PMPI_Finalize(); }\n"
    )  # fmt: skip
    tool.build(tmp_path / "linked", "-O1", "-pthread", PROGRAMS / "messages.c", source)
    ran = profiled([tmp_path / "linked"], tmp_path)
    assert ran.output.count("own end") == 2
    assert ran.output.count("own barrier") == calls(usual)["Barrier"][0]
    assert calls(ran) == calls(usual)
    assert {profile.end for profile in ran.profiles.values()} == {"finalize"}


@pytest.mark.parametrize("name", ["old.f90", "module.f90", "f08.f90"])
@pytest.mark.parametrize("languages", ["C mpif f08", "mpif f08", "C"])
def test_a_tool_is_chained_in_every_kind_of_fortran(
    name: str, languages: str, shared: Path, program: Program, tmp_path: Path
) -> None:
    library = tool.library(shared, languages)
    expected = alone([program(name)], preload=library)
    ran = profiled([program(name)], tmp_path, preload=library)
    assert ran.status == 0, ran.output
    suffix = "_f08_" if name == "f08.f90" else "_"
    for language in ("C", "_", "_f08_"):
        assert tool.counts(ran.output, language) == tool.counts(expected, language)
    if "f08" in languages:
        assert tool.counts(ran.output, suffix)["Finalize"] == 2
        assert {profile.tools for profile in ran.profiles.values()} == {(library.name,)}
    assert {row.name: (row.calls, row.bytes) for row in ran.profiles[0].rows} == {
        "Irecv": (3, 0), "Send": (3, 372), "Wait": (3, 0), "Allreduce": (1, 400),
    }  # fmt: skip


def test_a_fortran_tool_that_calls_its_c_functions_is_counted_once(program: Program, tmp_path: Path) -> None:
    """As the wrappers of mpiP and IPM do."""
    text, library = tmp_path / "to-c.c", tmp_path / "libto-c.so"
    text.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int MPI_Send(const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {\n"
        '    puts("tool sends"); return PMPI_Send(b, n, t, to, tag, c); }\n'
        "void mpi_send_(void *b, int *n, int *t, int *to, int *tag, int *c, int *e) {\n"
        "    *e = MPI_Send(b, *n, MPI_Type_f2c(*t), *to, *tag, MPI_Comm_f2c(*c)); }\n"
        "void mpi_init_(int *e) { *e = MPI_Init(NULL, NULL); }\n"
        'void mpi_finalize_(int *e) { *e = MPI_Finalize(); puts("tool ends"); }\n'
    )
    tool.build(library, text, "-shared", "-fPIC")
    ran = profiled([program("old.f90")], tmp_path, preload=library)
    assert (ran.output.count("tool sends"), ran.output.count("tool ends")) == (6, 2)
    rows = {row.name: (row.calls, row.bytes) for row in ran.profiles[0].rows}
    assert rows == {"Irecv": (3, 0), "Send": (3, 372), "Wait": (3, 0), "Allreduce": (1, 400)}


def test_two_tools_run_as_they_do_alone(shared: Path, program: Program, tmp_path: Path) -> None:
    """The second one has functions that the first one lacks, as without the profile."""
    first, text = tmp_path / "libfirst.so", tmp_path / "first.c"
    text.write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <mpi.h>\n#include <stdio.h>\n"
        "int MPI_Barrier(MPI_Comm c) { puts(\"first\"); return ((int (*)(MPI_Comm))dlsym(RTLD_NEXT, \"MPI_Barrier\"))(c); }\n"
    )  # fmt: skip
    tool.build(first, text, "-shared", "-fPIC", "-ldl")
    both = Path(f"{first}:{tool.library(shared)}")
    expected = alone([program("messages.c")], preload=both)
    ran = profiled([program("messages.c")], tmp_path, preload=both)
    assert ran.output.count("first") == expected.count("first") > 0
    assert tool.counts(ran.output) == tool.counts(expected)
    assert all(set(profile.tools) == {"libfirst.so", tool.library(shared).name} for profile in ran.profiles.values())


def test_a_region_is_passed_on_to_a_tool_with_its_name(shared: Path, tmp_path: Path) -> None:
    source, regions = tmp_path / "regions.c", tmp_path / "regions"
    source.write_text(
        "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); MPI_Pcontrol(1, \"solve\"); MPI_Barrier(MPI_COMM_WORLD);\n"
        "MPI_Pcontrol(-1, \"solve\"); return MPI_Finalize(); }\n"
    )  # fmt: skip
    tool.build(regions, source)
    ran = profiled([regions], tmp_path, preload=tool.library(shared))
    assert (ran.output.count("tool region 1 solve"), ran.output.count("tool region -1 solve")) == (2, 2)
    assert calls(ran)["Barrier"] == (2, 0)


def test_a_tool_that_aborts_at_the_end_does_so(program: Program, tmp_path: Path) -> None:
    library, text = tmp_path / "libabort.so", tmp_path / "abort.c"
    text.write_text("#include <stdlib.h>\n#include <mpi.h>\nint MPI_Finalize(void) { PMPI_Finalize(); abort(); }\n")
    tool.build(library, text, "-shared", "-fPIC")
    ran = profiled([program("messages.c")], tmp_path, preload=library)
    assert ran.status != 0
    assert {profile.end for profile in ran.profiles.values()} == {"finalize"}


@pytest.mark.parametrize("language", [[], ["Fortran"]])
def test_a_tool_is_chained_with_mpich(language: list[str], program: Program, tmp_path: Path) -> None:
    library, text = tmp_path / "libmpich-tool.so", tmp_path / "tool.c"
    text.write_text(
        "#include <stdio.h>\nint PMPI_Send(long, long, long, long, long, long), PMPI_Finalize(void);\n"
        "int MPI_Send(long a, long b, long c, long d, long e, long f) { puts(\"tool sends\"); return PMPI_Send(a, b, c, d, e, f); }\n"
        "int MPI_Finalize(void) { puts(\"tool ends\"); return PMPI_Finalize(); }\n"
    )  # fmt: skip
    words = ["gcc", "-w", "-shared", "-fPIC", "-o", library, text, library_of_this_machine("libmpich.so.12")]
    subprocess.run(words, check=True, timeout=LIMIT_S)
    launcher = [*MPICH, "-genv", "LD_PRELOAD", str(library)]
    expected = subprocess.run(
        [*launcher, "-np", "2", program("mpich.c"), *language],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    ).stdout
    ran = run([program("mpich.c"), *language], tmp_path, launcher=launcher)
    assert ran.status == 0, ran.output
    assert ran.output.count("tool sends") == expected.count("tool sends")
    assert ran.output.count("tool ends") == 2
    assert counted(ran) == {(0, 1): (1, 80)}
    assert {profile.tools for profile in ran.profiles.values()} == {(library.name,)}
