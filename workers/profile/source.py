"""C source of the profile library: shim.c and the table's functions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from analysis.mpi import layout
from analysis.mpi.functions import FUNCTIONS, LIFE, Function

SHIM: Final = Path(__file__).resolve().parent / "shim.c"
COUNTERS: Final = SHIM.with_name("counters.h")
FORTRAN: Final = ("_", "_f08_")
"""mpif.h and the module mpi; the module mpi_f08. A handle of the last is a type that holds one integer."""
_TAKES: Final = {
    "Recv": (3, 5, 6),
    "Probe": (0, 2, 3),
    "Mprobe": (0, 2, 4),
    "Sendrecv": (8, 10, 11),
    "Sendrecv_replace": (5, 7, 8),
}
"""Argument positions of source, communicator and status of a receiving call."""
_OF_STATUSES: Final = {
    "Wait": (
        "status_room room; int place = awaited_at(request_at(C, a0)); if (place >= 0 && is_ignored(a1)) a1 = (word)&room; ",
        "if (place >= 0) settle(place, answer ? 0 : a1); ",
    ),
    "Waitall": ("struct gathered all; gather(&all, a0, a1, &a2); ", "settle_all(&all, a2, !answer); "),
}
"""Statements around calls that end receives and whose statuses show the senders."""
_GIVE_UP: Final = ("Waitany", "Waitsome", "Test", "Testany", "Testall", "Testsome", "Request_free", "Cancel")
"""Calls that end requests without identifying them."""
_DATA_PLACE: Final = 0
"""Position of the send buffer, which may be MPI_IN_PLACE, in every collective."""


def texts() -> dict[str, str]:
    """Return the files that are compiled, by name."""
    names = ", ".join(f'"PMPI_{function.name}"' for function in FUNCTIONS)
    wrappers = [f"static const char *const all_names[FUNCTIONS] = {{{names}}};", *_wrappers()]
    written = {"layout.h": layout.as_c(), "wrappers.h": "\n".join(wrappers)}
    return {file.name: file.read_text() for file in (SHIM, COUNTERS)} | written


def _wrappers() -> Iterator[str]:
    for number, function in enumerate(FUNCTIONS):
        if function.name in LIFE:
            continue
        yield _c_wrapper(number, function)
        for suffix in FORTRAN:
            yield _fortran_wrapper(number, function, suffix)


def _c_wrapper(number: int, function: Function) -> str:
    """Return both C wrappers; that of PMPI_ counts calls that passed by the other."""
    name, count = function.name, function.arguments
    call = f"((int (*)({_types(count)}))real)({_passed(count)})"
    parameters = ", ".join(["anything real", *_parameters(count)])
    above, below = (f"count_{name}({', '.join([real, *_names(count)])})" for real in (f'NEXT("PMPI_{name}")', "real"))
    return "\n".join(
        [
            f"static ALWAYS int count_{name}({parameters}) {{ struct call call; if (UNLIKELY(!real)) return MISSING; "
            f"{_before(function, 'C')}{_before_statuses(function)}enter(&call, {number}); int answer = {call}; leave(&call); "
            f"if (call.counted && !answer) {{ {_counted(function, 'C')} {_trace(function, 'C')} }} "
            f"{_after_statuses(function)}return answer; }}",
            f"int MPI_{name}({_declared(count)}) {{ return {above}; }}",
            f'int PMPI_{name}({_declared(count)}) {{ anything real = REAL("PMPI_{name}"); '
            f"if (PASSED_BY({name}, {name.lower()})) return {below}; return LIKELY(real) ? {call} : MISSING; }}",
        ]
    )


def _fortran_wrapper(number: int, function: Function, suffix: str) -> str:
    """Return the Fortran wrapper, never called if Open MPI's modules are missing."""
    name = function.name.lower()
    count = function.arguments + 1 + function.hidden
    return (
        f"void mpi_{name}{suffix}({_declared(count)}) {{ struct call call; anything real = NEXT(\"pmpi_{name}{suffix}\"); "
        f"if (UNLIKELY(!real)) return; "
        f"if (!open_mpi) {{ ((void (*)({_types(count)}))real)({_passed(count)}); return; }} {_before(function, 'F')}"
        f"enter(&call, {number}); ((void (*)({_types(count)}))real)({_passed(count)}); leave(&call); "
        f"if (call.counted) {{ {_counted(function, 'F')} {_trace(function, 'F')} }} }}"
    )  # fmt: skip


def _parameters(count: int) -> list[str]:
    return [f"word {name}" for name in _names(count)]


def _names(count: int) -> list[str]:
    return [f"a{number}" for number in range(count)]


def _declared(count: int) -> str:
    return ", ".join(_parameters(count)) or "void"


def _passed(count: int) -> str:
    return ", ".join(_names(count))


def _types(count: int) -> str:
    return ", ".join(["word"] * count) or "void"


def _before(function: Function, language: str) -> str:
    """Return the statement for state that the call clears."""
    if function.bytes.startswith("forget"):
        return f"forget(request_at({language}, a0)); "
    return f"release({language}, a0); " if function.bytes.startswith("release") else ""


def _before_statuses(function: Function) -> str:
    """Return the statement for a status that shows the sender of a wildcard receive."""
    if function.name in _GIVE_UP:
        return "give_up(); "
    if function.name in _TAKES:
        source, _, status = _TAKES[function.name]
        return f"status_room room; a{status} = status_for(a{status}, a{source}, &room); "
    return _OF_STATUSES.get(function.name, ("", ""))[0]


def _after_statuses(function: Function) -> str:
    return _OF_STATUSES.get(function.name, ("", ""))[1]


def _trace(function: Function, language: str) -> str:
    """Return the trace statement: the sender of a receive, or the communicator."""
    if function.name in _TAKES:
        source, comm, status = _TAKES[function.name]
        return f"took(&call, {language}, a{source}, a{comm}, {f'a{status}' if language == 'C' else '0'});"
    if function.name == "Irecv" and language == "C":
        return "awaiting(&call, a3, a5, a6);"
    if _is_collective(function):
        behind = 1 if function.name[:1] != "I" else 2  # the last but a request
        return f"met(&call, {language}, a{function.arguments - behind});"
    return ""


def _is_collective(function: Function) -> bool:
    return function.kind == "collective" or function.name in ("Barrier", "Ibarrier")


def _counted(function: Function, language: str) -> str:
    """Return the statement that counts a call's bytes; empty without any."""
    main, _, instead = function.bytes.partition(" else ")
    word, *places = main.split() or [""]
    if word in ("", "forget", "release"):
        return ""
    if word == "makes":
        return f"made(&call, {language}, a{places[0]});"
    if word == "start":
        return f"start_keyed(&call, request_at({language}, a0));"
    condition = ""
    if word.startswith("root-"):
        word, places, root = word.removeprefix("root-"), places[:-1], places[-1]
        comm = places.pop() if word == "block" else places[-1]
        condition = f"if (is_root({language}, a{root}, a{comm})) "
    statement = f"{_helper(word)}(&call, {language}, {', '.join(f'a{number}' for number in places)});"
    if function.kind != "collective" or condition:
        return condition + statement
    other = (
        f"{_helper(word)}(&call, {language}, {', '.join(f'a{number}' for number in [*instead.split(), *places[2:]])});"
    )
    alternative = other if instead else "all_of(&call, 0, 0);"
    return f"if (!in_place({language}, a{_DATA_PLACE})) {statement} else {alternative}"


def _helper(word: str) -> str:
    return "received" if word == "from" else word
