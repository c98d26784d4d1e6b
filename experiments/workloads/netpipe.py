"""NetPIPE over Open MPI: transfer time and throughput by message size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.outputs import Line, results
from experiments.workloads.pingpong import MAX_MESSAGE_BYTES
from experiments.workloads.transfer import curve_figures, curve_of, describe_curve

RESULT: Final = "np.out"

_SCREEN_ROW = re.compile(r"(?:\d+:)?\s*(\S+) bytes +(\S+) times --> +(\S+) Mbps in +(\S+) usec")
_SCREEN_ROW_BEGINS = re.compile(r"(?:\d+:)?\s*\S+ bytes +\S+ times")


class NetPipeParameters(Parameters):
    """Range of message sizes."""

    message_bytes: Bytes = parameter(2**20, "Largest message", unit="B", ge=1, le=MAX_MESSAGE_BYTES)
    """Upper bound of the message sizes (option -u)."""
    first_bytes: Bytes = parameter(1, "Smallest message", unit="B", ge=1, le=MAX_MESSAGE_BYTES)
    """Lower bound of the message sizes (option -l)."""
    perturbation: int = parameter(3, "Perturbation", unit="B", ge=0, le=1024)
    """Each size is measured this many bytes above and below too (option -p)."""
    repeats: int = parameter(0, "Repeats", ge=0, le=100_000)
    """Round trips per size; 0 lets NetPIPE choose, about half a second for each size."""


def command(parameters: NetPipeParameters, *, ranks: int) -> tuple[str, ...]:
    repeats = ("-n", str(parameters.repeats)) if parameters.repeats else ()
    return (
        *("NPopenmpi", "-l", str(parameters.first_bytes), "-u", str(parameters.message_bytes)),
        *("-p", str(parameters.perturbation), *repeats, "-o", RESULT),
    )


def check(parameters: NetPipeParameters, *, ranks: int) -> None:
    if ranks != 2:
        raise Mismatch(
            "hosts", f"NetPIPE runs on exactly two ranks, not {ranks}; take two hosts, or two ranks on one host"
        )
    if parameters.first_bytes > parameters.message_bytes:
        raise Mismatch("first_bytes", "the smallest message is larger than the largest")


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    # The screen (standard error of the run) shows the same rows with fewer digits; np.out is the result. An import may bring it alone.
    rows = _rows(results(files.get(RESULT, ""), RESULT)) or _rows(results(output))
    if not rows:
        raise OutputError("NetPIPE wrote no message size to np.out")
    sizes = [row["bytes"] for row in rows]
    figures = describe_curve("netpipe", sizes, [row["time_s"] for row in rows])
    typed_rows = [{**row, "bytes": int(row["bytes"])} for row in rows]
    return Parsed(figures, {"Transfer times (1 Mbps = 1 048 576 bit/s)": typed_rows}, {"message_bytes": max(sizes)})


def times_largest(ran: float, requested: Mapping[str, Any]) -> bool:
    """Return whether a run up to ``ran`` bytes is whole: slow messages end it."""
    defaults = NetPipeParameters()
    first = requested.get("first_bytes", defaults.first_bytes)
    last = max(_steps(first, requested["message_bytes"]), default=0)
    return bool(last <= ran <= requested["message_bytes"] + requested.get("perturbation", defaults.perturbation))


def _steps(size: int, most: int) -> Iterator[int]:
    """Yield the sizes from which NetPIPE varies by its perturbation (its main loop)."""
    step, number = (size // 2, 1) if size > 1 else (1, 0)
    while size <= most:
        yield size
        step = 2 * step if number > 2 and number % 2 else step
        size, number = size + step, number + 1


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    return [point for rows in tables.values() for point in curve_of(rows, "time_s")]


def estimate_s(parameters: NetPipeParameters, *, ranks: int) -> float:
    doublings = (parameters.message_bytes // parameters.first_bytes).bit_length()
    sizes = doublings * (5 if parameters.perturbation else 2)
    if not parameters.repeats:
        return 1.0 + 0.48 * sizes  # 82 sizes up to 64 KiB took 39 s
    return 1.0 + sizes * 2 * parameters.repeats * (5e-5 + parameters.message_bytes / 1e8 / doublings)


NETPIPE: Final = WorkloadDefinition(
    slug="netpipe",
    title="NetPIPE",
    summary="Latency and throughput curve between two hosts",
    programs={"NPopenmpi": "netpipe-openmpi"},
    parameters_type=NetPipeParameters,
    decides="netpipe.transfer_time_s",
    work_grows=True,
    figures=curve_figures("netpipe"),
    outputs=(RESULT,),
    command=command,
    check=check,
    parse=parse,
    times_largest=times_largest,
    curve=curve,
    estimate_s=estimate_s,
)
"""NPopenmpi between two ranks."""


def _rows(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Return the rows of np.out or of the screen. Raise OutputError for a cut one."""
    rows = []
    for line in lines:
        if screen := _SCREEN_ROW.fullmatch(line.text):
            size, rate, seconds = screen[1], screen[3], line.figure(screen[4], "1e-6")
            more = {"repeats": int(line.whole(screen[2]))}
        elif line.is_row or _SCREEN_ROW_BEGINS.match(line.text):
            (size, rate, time), more = line.cells(("bytes", "Mbps", "time_s")).values(), {}
            seconds = line.figure(time)
        else:
            continue
        rows.append({"bytes": line.whole(size), "Mbps": line.figure(rate), "time_s": seconds, **more})
    return rows
