"""The C text of the shim: what is written by hand in shim.c, with a function for every row of the table. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.mpi import layout
from analysis.mpi.functions import FUNCTIONS, LIFE, Function

SHIM: Final = Path(__file__).resolve().parent / "shim.c"
FORTRAN: Final = ("_", "_f08_")
"""mpif.h and the module mpi; the module mpi_f08. A handle of the last is a type that holds one integer."""
_DATA_PLACE: Final = 0
"""The send buffer, which says MPI_IN_PLACE, comes first in every collective."""


def texts() -> dict[str, str]:
    """Return the files that are compiled, by name."""
    return {"shim.c": SHIM.read_text(), "layout.h": layout.as_c(), "wrappers.h": "\n".join(_wrappers())}


def _wrappers() -> Iterator[str]:
    for number, function in enumerate(FUNCTIONS):
        if function.name in LIFE:
            continue
        yield _c_wrapper(number, function)
        for suffix in FORTRAN:
            yield _fortran_wrapper(number, function, suffix)


def _c_wrapper(number: int, function: Function) -> str:
    count = function.arguments
    return (
        f"int MPI_{function.name}({_declared(count)}) {{ struct call call; anything real = REAL(\"PMPI_{function.name}\"); "
        f"if (UNLIKELY(!real)) return MISSING; {_before(function, 'C')}enter(&call, {number}); "
        f"int answer = ((int (*)({_types(count)}))real)({_passed(count)}); leave(&call); "
        f"if (call.counted && !answer) {{ {_counted(function, 'C')} }} return answer; }}"
    )  # fmt: skip


def _fortran_wrapper(number: int, function: Function, suffix: str) -> str:
    """Also the modules of Open MPI are not in all installations: then nobody calls this."""
    name = function.name.lower()
    count = function.arguments + 1 + function.hidden
    return (
        f"void mpi_{name}{suffix}({_declared(count)}) {{ struct call call; anything real = REAL(\"pmpi_{name}{suffix}\"); "
        f"if (UNLIKELY(!real)) real = (anything)dlsym(RTLD_NEXT, \"mpi_{name}{suffix}\"); if (UNLIKELY(!real)) return; "
        f"if (!open_mpi) {{ ((void (*)({_types(count)}))real)({_passed(count)}); return; }} {_before(function, 'F')}"
        f"enter(&call, {number}); ((void (*)({_types(count)}))real)({_passed(count)}); leave(&call); "
        f"if (call.counted) {{ {_counted(function, 'F')} }} }}"
    )  # fmt: skip


def _declared(count: int) -> str:
    return ", ".join(f"word a{number}" for number in range(count)) or "void"


def _passed(count: int) -> str:
    return ", ".join(f"a{number}" for number in range(count))


def _types(count: int) -> str:
    return ", ".join(["word"] * count) or "void"


def _before(function: Function, language: str) -> str:
    """What has to be known before the call, which clears it."""
    if function.bytes.startswith("forget"):
        return f"forget(request_at({language}, a0)); "
    return "release_all(); " if function.bytes.startswith("release") else ""


def _counted(function: Function, language: str) -> str:
    """The statement that counts what a call carried; empty for those that carry nothing."""
    main, _, instead = function.bytes.partition(" else ")
    word, *places = main.split() or [""]
    if word in ("", "forget", "release"):
        return ""
    if word == "start":
        return f"start_keyed(&call, request_at({language}, a0));"
    condition = ""
    if word.startswith("root-"):
        word, places, root = word.removeprefix("root-"), places[:-1], places[-1]
        comm = places.pop() if word == "block" else places[-1]
        condition = f"if (is_root({language}, a{root}, a{comm})) "
    statement = f"{_helper(word)}(&call, {language}, {', '.join(f'a{place}' for place in places)});"
    if function.kind != "collective" or condition:
        return condition + statement
    other = (
        f"{_helper(word)}(&call, {language}, {', '.join(f'a{place}' for place in [*instead.split(), *places[2:]])});"
    )
    alternative = other if instead else "all_of(&call, 0, 0);"
    return f"if (!in_place({language}, a{_DATA_PLACE})) {statement} else {alternative}"


def _helper(word: str) -> str:
    return "received" if word == "from" else word
