"""A PMPI tool that counts and prints the calls of every function of mpi.h.

As Darshan, mpiP, IPM, Score-P and TALP do, it calls PMPI_ functions; in Fortran it has wrappers of its own for every binding.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

COMPILER = "mpicc.openmpi"
LIMIT_S = 120
_PROTOTYPE = re.compile(r"^\s*OMPI_DECLSPEC\s+int\s+MPI_(\w+)\s*\(([^;]*?)\)[^;)]*;", re.MULTILINE)
_SPECIAL = ("Init", "Init_thread", "Finalize", "Pcontrol")
HEAD = """\
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
enum { C, MPIF, F08 };
struct row { const char *name; int calls; };
static void show(const char *language, const struct row *rows) {
    for (; rows->name; rows++)
        if (rows->calls) printf("tool %s %s %d\\n", language, rows->name, rows->calls);
    fflush(stdout);
}
"""
LIFE = """\
static void end(void) { show("C", of_c); show("_", of_mpif); show("_f08_", of_f08); }
"""
C_LIFE = """\
int MPI_Init(int *count, char ***words) { of_c[0].calls++; return PMPI_Init(count, words); }
int MPI_Init_thread(int *count, char ***words, int a, int *b) { of_c[1].calls++; return PMPI_Init_thread(count, words, a, b); }
int MPI_Finalize(void) { of_c[2].calls++; int answer = PMPI_Finalize(); end(); return answer; }
int MPI_Pcontrol(const int level, ...) {
    va_list more;
    va_start(more, level);
    printf("tool region %d %s\\n", level, va_arg(more, char *));
    va_end(more);
    of_c[3].calls++;
    return MPI_SUCCESS;
}
"""


def source(languages: str = "C mpif f08") -> str:
    """Return the tool's text; ``languages``: whose functions it has."""
    functions = _functions()
    rows = ", ".join(f'{{"{name}"}}' for name in [*_SPECIAL, *functions]) + ", {0}"
    parts = [HEAD, *(f"static struct row {name}[] = {{{rows}}};" for name in ("of_c", "of_mpif", "of_f08")), LIFE]
    if "C" in languages:
        parts.append(C_LIFE)
        parts += [
            _in_c(number + len(_SPECIAL), name, arguments) for number, (name, arguments) in enumerate(functions.items())
        ]
    for language, suffix in (("mpif", "_"), ("f08", "_f08_")):
        if language in languages:
            life = (("Init", 0), ("Init_thread", 2), ("Finalize", 0))
            parts += [_in_fortran(number, name, count, language, suffix) for number, (name, count) in enumerate(life)]
            parts += [
                _in_fortran(number + len(_SPECIAL), name, len(_split(arguments)), language, suffix)
                for number, (name, arguments) in enumerate(functions.items())
            ]
    return "\n".join(parts)


def library(into: Path, languages: str = "C mpif f08") -> Path:
    """Build the tool as a library for LD_PRELOAD, or to link with."""
    made = into / f"libtool-{languages.replace(' ', '-')}.so"
    if not made.exists():
        made.with_suffix(".c").write_text(source(languages))
        build(made, made.with_suffix(".c"), "-shared", "-fPIC")
    return made


def build(program: Path, *words: str | Path) -> None:
    subprocess.run([COMPILER, "-w", "-o", program, *words], check=True, timeout=LIMIT_S)


def counts(output: str, language: str = "C") -> dict[str, int]:
    """Return what tools of all ranks printed: calls by function."""
    calls: dict[str, int] = {}
    for name, count in re.findall(rf"^tool {re.escape(language)} (\w+) (\d+)$", output, re.MULTILINE):
        calls[name] = calls.get(name, 0) + int(count)
    return calls


def _functions() -> dict[str, str]:
    """Return arguments by name, of all functions with an int as their value."""
    answer = subprocess.run([COMPILER, "--showme:incdirs"], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    header = (Path(answer.stdout.split()[0]) / "mpi.h").read_text()
    plain = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    left_out = {*_SPECIAL, *re.findall(r"#\s*define\s+MPI_(\w+)\(", plain)}  # macros: removed from MPI
    return {name: " ".join(arguments.split()) for name, arguments in _PROTOTYPE.findall(plain) if name not in left_out}


def _split(arguments: str) -> list[str]:
    return [] if arguments.strip() in ("", "void") else arguments.split(",")


def _in_c(number: int, name: str, arguments: str) -> str:
    passed = ", ".join(re.findall(r"(\w+)\s*(?:\[[^\]]*\])*$", argument.strip())[0] for argument in _split(arguments))
    return f"int MPI_{name}({arguments}) {{ of_c[{number}].calls++; return PMPI_{name}({passed}); }}"


def _in_fortran(number: int, name: str, count: int, language: str, suffix: str) -> str:
    words = [f"a{number}" for number in range(count + 3)]  # the error, and lengths of texts
    declared, passed = ", ".join(f"long {word}" for word in words), ", ".join(words)
    real = f"pmpi_{name.lower()}{suffix}"
    end = "end();" if name == "Finalize" else ""
    return (
        f"extern void {real}() __attribute__((weak)); void mpi_{name.lower()}{suffix}({declared}) "
        f"{{ of_{language}[{number}].calls++; if ({real}) {real}({passed}); {end} }}"
    )
