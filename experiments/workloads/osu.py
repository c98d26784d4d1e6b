"""OSU micro-benchmarks: point-to-point and collective operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, alternatives, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.outputs import Table, read_tables, results
from experiments.workloads.pingpong import MAX_MESSAGE_BYTES
from experiments.workloads.transfer import curve_figures, curve_of, table_figures

_HEADING = re.compile(r"# (OSU .+?) Test(?: v\S+)?")
_COLUMNS = re.compile(r"# *(Size\s.*|.*\(us\).*)")
_NAMES: Final = {
    "size": "bytes",
    "latency(us)": "t_usec",
    "avg latency(us)": "t_avg_usec",
    "min latency(us)": "t_min_usec",
    "max latency(us)": "t_max_usec",
    "overall(us)": "t_overall_usec",
    "compute(us)": "t_compute_usec",
    "pure comm.(us)": "t_communication_usec",
    "overlap(%)": "overlap_percent",
    "bandwidth(mb/s)": "Mbytes_per_s",
    "mb/s": "Mbytes_per_s",
    "messages/s": "messages_per_s",
    "iterations": "iterations",
    "validation": "validation",
}
"""Heads of columns without their spaces before a bracket, which differ by version and test. A megabyte is 1 000 000 bytes."""
_GOOD: Final = {"validation": re.compile("pass", re.IGNORECASE)}
_TITLE = re.compile(r"OSU MPI(?:-\w+)? (.+)")
_BENCHMARKS: Final = {
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "multiple bandwidth / message rate": "mbw_mr",
    "multi latency": "multi_lat",
    "all-to-all personalized exchange latency": "alltoall",
    "broadcast latency": "bcast",
}
"""Benchmarks by title; those of the other collectives are the operation and *Latency*."""
_PROGRAM: Final = "osu-micro-benchmarks (not in Debian: build it from source, or ask the site for its module)"

_OfPairs = Literal["latency", "bw", "bibw", "mbw_mr", "multi_lat"]
_Collective = Literal[
    "allreduce", "allgather", "alltoall", "bcast", "gather", "reduce", "reduce_scatter", "scatter", "barrier"
]  # fmt: skip
Benchmark = Literal[_OfPairs, _Collective]
_OF_PAIRS: Final = get_args(_OfPairs)


_FIGURES: Final = (
    *curve_figures("osu"),
    *figures_of("osu", (
        ("time_s", "Time", "s", "lower", "Latency, or its average over the ranks, of the largest message."),
        ("time_min_s", "Time, fastest rank", "s", "lower", "Min Latency of the largest message."),
        ("time_max_s", "Time, slowest rank", "s", "lower", "Max Latency of the largest message."),
        ("streamed_Bps", "Streamed", "B/s", "higher", "Rate of windows of the largest message."),
        ("streamed_max_Bps", "Streamed, best size", "B/s", "higher", "Largest rate of any message size."),
        ("messages_per_s", "Messages", "1/s", "higher", "Largest message rate of any message size."),
    )),
)  # fmt: skip


class OsuParameters(Parameters):
    """One of the benchmarks and its message sizes."""

    benchmark: Benchmark = parameter("latency", "Benchmark")
    """Operation to time; latency, bw and bibw use two ranks, the others all."""
    message_bytes: Bytes = parameter(4 * 2**20, "Message size", unit="B", ge=1, le=MAX_MESSAGE_BYTES)
    """Size of a message; 4 MiB is 4 194 304 bytes."""
    all_sizes: bool = parameter(False, "All sizes")
    """Measure 1, 2, 4 ... up to the message size too."""
    repetitions: int = parameter(100, "Operations per size", ge=1, le=100_000)
    """Operations, or windows of 64 messages, per message size."""
    directory: str = parameter("", "Directory", pattern=r"^(/[A-Za-z0-9_.+@-]+)*$", max_length=300)
    """Directory of the programs on the hosts; empty: in PATH. For maintainers."""


def command(parameters: OsuParameters, *, ranks: int) -> tuple[str, ...]:
    name = f"osu_{parameters.benchmark}"
    first = 1 if parameters.all_sizes else parameters.message_bytes
    sizes = () if parameters.benchmark == "barrier" else ("-m", f"{first}:{parameters.message_bytes}")
    # The fastest and the slowest rank too; the tests of pairs have no such columns.
    full = () if parameters.benchmark in _OF_PAIRS else ("-f",)
    program = f"{parameters.directory}/{name}" if parameters.directory else name
    return (program, *sizes, "-i", str(parameters.repetitions), *full)


def check(parameters: OsuParameters, *, ranks: int) -> None:
    if ranks < 2:
        raise Mismatch(
            "hosts", f"osu_{parameters.benchmark} needs at least two ranks; take two hosts or two ranks per host"
        )
    if parameters.benchmark in ("latency", "bw", "bibw") and ranks != 2:
        raise Mismatch("hosts", f"osu_{parameters.benchmark} takes two ranks exactly")
    if parameters.benchmark in ("mbw_mr", "multi_lat") and ranks % 2:
        raise Mismatch("hosts", f"osu_{parameters.benchmark} takes an even number of ranks")
    if parameters.all_sizes and parameters.message_bytes.bit_count() > 1:
        raise Mismatch("message_bytes", "osu doubles the size from 1 B on: with all sizes take a power of two")


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    tables = read_tables(results(output), _HEADING, _COLUMNS, _columns, _GOOD)
    if not tables:
        raise OutputError("the OSU benchmark printed no table")
    rows_by_title: dict[str, list[dict[str, Any]]] = {}
    for number, table in enumerate(tables, 1):
        rows_by_title[table.title if table.title not in rows_by_title else f"{table.title}, {number}"] = table.as_rows()
    # A site's own file may hold several: those of one largest size give their figures together, of the same kind the first.
    parsed_tables = []
    for table in tables:
        figures = _figures(table)
        for other in tables:
            figures = (_figures(other) if max(other.sizes, default=0) == max(table.sizes, default=0) else {}) | figures
        parsed_tables.append(Parsed(figures, rows_by_title, table.ran_with(_benchmark(table.title))))
    return alternatives(parsed_tables)


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    # Only ping-pongs have this column; collectives print the average over the ranks.
    return next((points for rows in tables.values() if (points := curve_of(rows, "t_usec", 1e-6))), [])


def estimate_s(parameters: OsuParameters, *, ranks: int) -> float:
    window = 64 if parameters.benchmark in ("bw", "bibw", "mbw_mr") else 1
    per_operation = 1e-4 * ranks + window * parameters.message_bytes / 5e7
    return 1.0 + parameters.repetitions * per_operation * (2 if parameters.all_sizes else 1)


def _benchmark(title: str) -> str:
    match = _TITLE.fullmatch(title)
    name = match[1].lower() if match else title
    return _BENCHMARKS.get(name, name.removesuffix(" latency"))


def _columns(title: str, heads: str) -> list[str]:
    names = [_NAMES.get(re.sub(r"\s+\(", "(", head).lower(), head) for head in re.split(r"\s{2,}|\t", heads.strip())]
    # Since 7.3 ping-pongs are headed as collectives are.
    return ["t_usec" if name == "t_avg_usec" and _benchmark(title) == "latency" else name for name in names]


def _figures(table: Table) -> dict[str, float]:
    rates = {
        "osu.streamed_Bps": table.at_largest("Mbytes_per_s", factor="1e6"),
        "osu.streamed_max_Bps": max(table.column("Mbytes_per_s", factor="1e6"), default=None),
        "osu.messages_per_s": max(table.column("messages_per_s"), default=None),
    }
    figures: dict[str, float] = {name: rate for name, rate in rates.items() if rate is not None}
    figures |= table_figures("osu", table, with_curve=True)
    if not figures:
        raise table.heading.refused("the table has neither times nor rates")
    return figures


OSU: Final = WorkloadDefinition(
    slug="osu",
    title="OSU micro-benchmarks",
    summary="Time or rate of one MPI operation by message size, on sites that have osu_latency",
    programs={"osu_latency": _PROGRAM},
    parameters_type=OsuParameters,
    decides="osu.time_s",
    work_grows=True,
    figures=_FIGURES,
    constants=("directory",),
    command=command,
    check=check,
    parse=parse,
    curve=curve,
    estimate_s=estimate_s,
).with_own_program()
"""One program of the OSU micro-benchmarks; its directory may be given."""
