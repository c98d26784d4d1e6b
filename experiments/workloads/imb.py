"""Intel MPI Benchmarks (IMB-MPI1): point-to-point and collective operations, on sites that have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.pingpong import MAX_MESSAGE_BYTES
from experiments.workloads.transfer import PrintedTable, curve_figures, curve_of, describe_curve, scaled

_HEADING = re.compile(
    r"^# Benchmarking (\S+) *\n# #processes = (\d+)(?: *\n# \( *(\d+) additional processes waiting)?", re.MULTILINE
)
_COLUMNS = re.compile(r"^ +(#bytes +.*|#repetitions +.*)$", re.MULTILINE)
_ROW = re.compile(r"^ +\d[\d. ]*$", re.MULTILINE)
_NAMES: Final = {
    "#bytes": "bytes",
    "#repetitions": "repetitions",
    "t[usec]": "t_usec",
    "t_min[usec]": "t_min_usec",
    "t_max[usec]": "t_max_usec",
    "t_avg[usec]": "t_avg_usec",
    "Mbytes/sec": "Mbytes_per_s",
}
_HALF_ROUND_TRIPS: Final = ("PingPong", "PingPing", "PingPongSpecificSource", "PingPingSpecificSource")

Benchmark = Literal[
    "PingPong",
    "PingPing",
    "Sendrecv",
    "Exchange",
    "Allreduce",
    "Reduce",
    "Reduce_scatter",
    "Allgather",
    "Allgatherv",
    "Gather",
    "Scatter",
    "Alltoall",
    "Alltoallv",
    "Bcast",
    "Barrier",
]


_FIGURES: Final = (
    *curve_figures("imb"),
    *figures_of("imb", (
        ("time_s", "Time", "s", "lower", "t[usec] or t_avg[usec] of the largest message."),
        ("time_min_s", "Time, fastest rank", "s", "lower", "t_min[usec] of the largest message."),
        ("time_max_s", "Time, slowest rank", "s", "lower", "t_max[usec] of the largest message."),
    )),
)  # fmt: skip


class ImbParameters(Parameters):
    """One benchmark of IMB-MPI1 and its message sizes."""

    benchmark: Benchmark = parameter("PingPong", "Benchmark")
    """Operation to time; PingPong and PingPing use two ranks, the others all."""
    message_bytes: Bytes = parameter(4 * 2**20, "Message size", unit="B", ge=0, le=MAX_MESSAGE_BYTES)
    """Size of a message; 4 MiB is 4 194 304 bytes."""
    all_sizes: bool = parameter(False, "All sizes")
    """Measure 0, 1, 2, 4 ... up to the message size too."""
    repetitions: int = parameter(100, "Repetitions", ge=1, le=100_000)
    """Operations per message size; IMB itself does fewer for large ones."""

    program: str = parameter("", "Program", pattern=r"^(/[A-Za-z0-9_.+@-]+)*$", max_length=300)
    """Path of an IMB-MPI1 on the hosts; empty: the one that their path has. For maintainers."""
    libraries: str = parameter("", "Libraries", pattern=r"^(/[A-Za-z0-9_.+@-]+)*$", max_length=300)
    """Directory of its MPI library on the hosts, where that is a place of its own; empty: where the hosts look. For maintainers."""


@dataclass(frozen=True, slots=True)
class Section(PrintedTable):
    """One table of the output: a benchmark on a number of processes."""

    benchmark: str
    processes: int
    waiting: int
    """Further ranks, which wait while these communicate."""


def command(parameters: ImbParameters, *, ranks: int) -> tuple[str, ...]:
    sizes = () if parameters.benchmark == "Barrier" else ("-msglen", "lengths.txt")
    # -npmin: only the full number of ranks; IMB would go through 2, 4, 8 ... as well, which is another configuration.
    return (
        parameters.program or "IMB-MPI1",
        parameters.benchmark,
        *sizes,
        *("-iter", str(parameters.repetitions)),
        *("-npmin", str(_ranks_used(parameters, ranks))),
    )


def files(parameters: ImbParameters, *, ranks: int) -> Mapping[str, str]:
    size = parameters.message_bytes
    powers = (2**power for power in range(size.bit_length()))
    sizes = sorted({0, size, *powers}) if parameters.all_sizes else [size]
    return {"lengths.txt": "".join(f"{each}\n" for each in sizes)}


def check(parameters: ImbParameters, *, ranks: int) -> None:
    if ranks < 2:
        raise Mismatch("hosts", f"{parameters.benchmark} needs at least two ranks; take two hosts")


def environment(parameters: ImbParameters, *, ranks: int) -> Mapping[str, str]:
    return {"LD_LIBRARY_PATH": parameters.libraries} if parameters.libraries else {}


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    printed = list(sections(output))
    if not printed:
        raise OutputError("IMB-MPI1 printed no table of times")
    # A site's own file may hold several benchmarks and numbers of processes: the figures are those of the first
    # benchmark on most processes; the tables hold everything.
    main = max((s for s in printed if s.benchmark == printed[0].benchmark), key=lambda s: s.processes)
    tables = {_title(section): section.rows() for section in printed}
    ranks = max(section.processes + section.waiting for section in printed)
    return Parsed(_figures(main), tables, {"ranks": ranks})


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    # Only ping-pongs have this column alone; collectives print the average over the ranks.
    return next((points for rows in tables.values() if (points := curve_of(rows, "t_usec", 1e-6))), [])


def estimate_s(parameters: ImbParameters, *, ranks: int) -> float:
    per_operation = 1e-4 * _ranks_used(parameters, ranks) + parameters.message_bytes / 5e7
    return 1.0 + parameters.repetitions * per_operation * (2 if parameters.all_sizes else 1)


def _ranks_used(parameters: ImbParameters, ranks: int) -> int:
    return 2 if parameters.benchmark in _HALF_ROUND_TRIPS else ranks


IMB: Final = WorkloadDefinition(
    slug="imb",
    title="Intel MPI Benchmarks",
    summary="Time of one MPI operation by message size, where a site has IMB-MPI1",
    programs={"IMB-MPI1": "intel-mpi-benchmarks (not in Debian: take that of Intel MPI, or build it from source)"},
    parameters_type=ImbParameters,
    decides="imb.time_s",
    figures=_FIGURES,
    constants=("program", "libraries"),
    later_defaults={"program": "", "libraries": ""},
    command=command,
    files=files,
    check=check,
    environment=environment,
    parse=parse,
    curve=curve,
    estimate_s=estimate_s,
).with_own_program()
"""IMB-MPI1 with one benchmark; its path or that of its library may be given."""


def sections(output: str) -> Iterator[Section]:
    """Yield every table of an IMB-MPI1 output in its order."""
    headings = list(_HEADING.finditer(output))
    bounds = [*(heading.start() for heading in headings), len(output)]
    for heading, end in zip(headings, bounds[1:], strict=True):
        block = output[heading.end() : end]
        header = _COLUMNS.search(block)
        if header is None:
            continue
        columns = tuple(_NAMES.get(name, name) for name in header[1].split())
        cells = tuple(tuple(row.split()) for row in _ROW.findall(block))
        if cells and all(len(row) == len(columns) for row in cells):
            yield Section(columns, cells, heading[1], int(heading[2]), int(heading[3] or 0))


def megabyte_bytes(sizes_bytes: Sequence[int], times_usec: Sequence[float], printed: Sequence[float]) -> int:
    """Return what IMB meant by a megabyte: 1 000 000 bytes, or 1 048 576 in versions before 2018.

    The versions do not print it, so it is taken from the numbers of a ping-pong: size / time of the largest message that has a rate.
    Raise ValueError when no message has one.
    """
    rows = [(n, t, rate) for n, t, rate in zip(sizes_bytes, times_usec, printed, strict=True) if rate > 0 and t > 0]
    if not rows:
        raise ValueError("no message has a rate")
    size, time_usec, rate = max(rows)
    return min((1_000_000, 1_048_576), key=lambda unit: abs(size / unit / (time_usec * 1e-6) - rate))


def _title(section: Section) -> str:
    """Return a table's heading, with what its megabyte is where the numbers show it."""
    title = f"{section.benchmark}, {section.processes} processes"
    columns = [section.column(name) for name in ("bytes", "t_usec", "Mbytes_per_s")]
    if section.benchmark not in _HALF_ROUND_TRIPS or None in columns:
        return title
    sizes, times, rates = ([float(cell) for cell in column or ()] for column in columns)
    try:
        megabyte = f"{megabyte_bytes([int(size) for size in sizes], times, rates):,}".replace(",", " ")
    except ValueError:  # all messages were empty
        return title
    return f"{title} (1 MB = {megabyte} bytes)"


def _figures(section: Section) -> dict[str, float]:
    times = section.column("t_usec", "t_avg_usec")
    if times is None:
        raise OutputError(f"the table of {section.benchmark} has no times")
    sizes = section.column("bytes")
    largest = len(times) - 1 if sizes is None else max(range(len(sizes)), key=lambda i: int(sizes[i]))
    figures = {"imb.time_s": scaled(times[largest], "1e-6")}
    for name in ("t_min_usec", "t_max_usec"):
        cells = section.column(name)
        if cells is not None:
            figures[f"imb.{name.replace('t_', 'time_').replace('usec', 's')}"] = scaled(cells[largest], "1e-6")
    if section.benchmark in _HALF_ROUND_TRIPS and sizes is not None:
        figures |= describe_curve("imb", [int(size) for size in sizes], [scaled(t, "1e-6") for t in times])
    return figures
