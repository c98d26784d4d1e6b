"""Intel MPI Benchmarks (IMB-MPI1): point-to-point and collective operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, alternatives, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.outputs import Table, read_tables, results
from experiments.workloads.pingpong import MAX_MESSAGE_BYTES
from experiments.workloads.transfer import curve_figures, curve_of, table_figures

_HEADING = re.compile(r"# Benchmarking (\S+)")
_PROCESSES = re.compile(r"# #processes = (\d+)|# \( *(\d+) additional processes waiting")
_COLUMNS = re.compile(r"(#(?:bytes|repetitions)\s.*)")
_GOOD: Final = {"defects": re.compile(r"0(?:\.0*)?")}
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

_PointToPoint = Literal["PingPong", "PingPing", "Sendrecv", "Exchange"]
_Reduction = Literal["Allreduce", "Reduce", "Reduce_scatter"]
_Collective = Literal["Allgather", "Allgatherv", "Gather", "Scatter", "Alltoall", "Alltoallv", "Bcast", "Barrier"]
Benchmark = Literal[_PointToPoint, _Reduction, _Collective]


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
    repetitions: int = parameter(100, "Operations per size", ge=1, le=100_000)
    """Operations per message size; IMB itself does fewer for large ones."""

    program: str = parameter("", "Program", pattern=r"^(/[A-Za-z0-9_.+@-]+)*$", max_length=300)
    """Path of IMB-MPI1 on the hosts; empty: in PATH. For maintainers."""
    libraries: str = parameter("", "Libraries", pattern=r"^(/[A-Za-z0-9_.+@-]+)*$", max_length=300)
    """Directory of its MPI library on the hosts; empty: the hosts' own search path. For maintainers."""


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
    return {"lengths.txt": "".join(f"{length}\n" for length in sizes)}


def check(parameters: ImbParameters, *, ranks: int) -> None:
    if ranks < 2:
        raise Mismatch(
            "hosts", f"{parameters.benchmark} needs at least two ranks; take two hosts or two ranks per host"
        )


def environment(parameters: ImbParameters, *, ranks: int) -> Mapping[str, str]:
    return {"LD_LIBRARY_PATH": parameters.libraries} if parameters.libraries else {}


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    tables = read_tables(
        results(output), _HEADING, _COLUMNS, lambda _, heads: [_NAMES.get(name, name) for name in heads.split()], _GOOD
    )
    if not tables:
        raise OutputError("IMB-MPI1 printed no table of times")
    tables_by_name = {f"{table.title}, {_processes(table)[0]} processes": table.as_rows() for table in tables}
    # A site's own file may hold several benchmarks and numbers of processes: unless others are requested, the figures are
    # those of the first benchmark on most processes; the tables hold everything.
    first = tables[0].title
    tables.sort(key=lambda table: (table.title != first, -_processes(table)[0]))
    return alternatives([_result(table, tables_by_name) for table in tables])


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    # Only ping-pongs have this column alone; collectives print the average over the ranks.
    return next((points for rows in tables.values() if (points := curve_of(rows, "t_usec", 1e-6))), [])


def estimate_s(parameters: ImbParameters, *, ranks: int) -> float:
    per_operation = 1e-4 * _ranks_used(parameters, ranks) + parameters.message_bytes / 5e7
    return 1.0 + parameters.repetitions * per_operation * (2 if parameters.all_sizes else 1)


def _ranks_used(parameters: ImbParameters, ranks: int) -> int:
    return 2 if parameters.benchmark in _HALF_ROUND_TRIPS else ranks


def _processes(table: Table) -> list[int]:
    """Return the processes of the benchmark, then those that wait, if any."""
    matches = [_PROCESSES.match(note.text) for note in table.notes]
    return [int(match[1] or match[2]) for match in matches if match] or [0]


def _result(table: Table, rows_by_name: Mapping[str, Any]) -> Parsed:
    figures = table_figures("imb", table, with_curve=table.title in _HALF_ROUND_TRIPS)
    if not figures:
        raise table.heading.refused("the table has no times")
    ranks = sum(_processes(table))
    return Parsed(figures, rows_by_name, {**table.ran_with(table.title), **({"ranks": ranks} if ranks else {})})


IMB: Final = WorkloadDefinition(
    slug="imb",
    title="Intel MPI Benchmarks",
    summary="Time of one MPI operation by message size, on sites that have IMB-MPI1",
    programs={"IMB-MPI1": "intel-mpi-benchmarks (not in Debian: take that of Intel MPI, or build it from source)"},
    parameters_type=ImbParameters,
    decides="imb.time_s",
    work_grows=True,
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
