"""OSU micro-benchmarks: point-to-point and collective operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.pingpong import MAX_MESSAGE_BYTES
from experiments.workloads.transfer import PrintedTable, curve_figures, curve_of, printed_tables, scaled

_HEADING = re.compile(r"^# (OSU .+?) Test(?: v\S+)? *$", re.MULTILINE)
_COLUMNS = re.compile(r"^# *((?:Size  +.*|.*\(us\).*))$", re.MULTILINE)
_ROW = re.compile(r"^ *\d[\d.]*(?: +\d[\d.]*)* *$", re.MULTILINE)
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
}
"""Heads of columns without their spaces before a bracket, which differ by version and test. A megabyte is 1 000 000 bytes."""
_PING_PONG = re.compile(r"OSU MPI(?:-\w+)? Latency$")
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
    repetitions: int = parameter(100, "Repetitions", ge=1, le=100_000)
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
        raise Mismatch("hosts", f"osu_{parameters.benchmark} needs at least two ranks; take two hosts")
    if parameters.benchmark in ("latency", "bw", "bibw") and ranks != 2:
        raise Mismatch("hosts", f"osu_{parameters.benchmark} takes two ranks exactly")
    if parameters.benchmark in ("mbw_mr", "multi_lat") and ranks % 2:
        raise Mismatch("hosts", f"osu_{parameters.benchmark} takes an even number of ranks")


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    printed = tables_of(output)
    if not printed:
        raise OutputError("the OSU benchmark printed no table")
    # A site's own file may hold several: each gives its figures, of the same kind the first.
    figures: dict[str, float] = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    for number, (title, table) in enumerate(printed, 1):
        figures = _figures(title, table) | figures
        tables[title if title not in tables else f"{title}, {number}"] = table.rows()
    return Parsed(figures, tables)


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    # Only ping-pongs have this column; collectives print the average over the ranks.
    return next((points for rows in tables.values() if (points := curve_of(rows, "t_usec", 1e-6))), [])


def estimate_s(parameters: OsuParameters, *, ranks: int) -> float:
    window = 64 if parameters.benchmark in ("bw", "bibw", "mbw_mr") else 1
    per_operation = 1e-4 * ranks + window * parameters.message_bytes / 5e7
    return 1.0 + parameters.repetitions * per_operation * (2 if parameters.all_sizes else 1)


def tables_of(output: str) -> list[tuple[str, PrintedTable]]:
    """Return every table with its heading; unknown columns keep their heads."""

    def names(heading: re.Match[str], heads: str) -> list[str]:
        is_ping_pong = _PING_PONG.search(heading[1]) is not None
        return [_column(head, is_ping_pong) for head in re.split(r" {2,}", heads.strip())]

    return [(heading[1], table) for heading, table in printed_tables(output, _HEADING, _COLUMNS, _ROW, names)]


def _column(head: str, is_ping_pong: bool) -> str:
    name = _NAMES.get(re.sub(r" +\(", "(", head).lower(), head)
    # Since 7.3 ping-pongs are headed as collectives are.
    return "t_usec" if is_ping_pong and name == "t_avg_usec" else name


def _figures(title: str, table: PrintedTable) -> dict[str, float]:
    rates = [scaled(rate, "1e6") for rate in table.column("Mbytes_per_s") or ()]
    values = {
        "osu.time_s": table.at_largest("t_usec", "t_avg_usec", "t_overall_usec"),
        "osu.time_min_s": table.at_largest("t_min_usec"),
        "osu.time_max_s": table.at_largest("t_max_usec"),
        "osu.streamed_Bps": rates[table.largest] if rates else None,
        "osu.streamed_max_Bps": max(rates, default=None),
        "osu.messages_per_s": max(map(float, table.column("messages_per_s") or ()), default=None),
    }
    figures = {name: value for name, value in values.items() if value is not None} | table.curve("osu", "t_usec")
    if not figures:
        raise OutputError(f"the table of {title} has neither times nor rates")
    return figures


OSU: Final = WorkloadDefinition(
    slug="osu",
    title="OSU micro-benchmarks",
    summary="Time or rate of one MPI operation by message size, on sites that have osu_latency",
    programs={"osu_latency": _PROGRAM},
    parameters_type=OsuParameters,
    decides="osu.time_s",
    figures=_FIGURES,
    constants=("directory",),
    command=command,
    check=check,
    parse=parse,
    curve=curve,
    estimate_s=estimate_s,
).with_own_program()
"""One program of the OSU micro-benchmarks; its directory may be given."""
