"""The project's own ping-pong: transfer time of a message between two ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.errors import OutputError
from experiments.workloads.base import Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, Seconds, parameter
from experiments.workloads.outputs import read_tables, results
from experiments.workloads.shipped import shipped
from experiments.workloads.transfer import curve_figures, curve_of, describe_curve

MAX_MESSAGE_BYTES: Final = 64 * 2**20

_HEADING = re.compile(r"# (Rankwire ping-pong), .*")
_HEADS = re.compile(r"#( +bytes .*)")
_COLUMNS: Final = ("bytes", "repetitions", "t_min_usec", "t_median_usec", "t_usec", "Mbytes_per_s")


_FIGURES: Final = (
    *figures_of("pingpong", (
        ("transfer_time_s", "Transfer time", "s", "lower",
         "Half of a round trip of the message, mean of the repetitions: t[usec] of the Intel MPI Benchmarks."),
        ("transfer_time_median_s", "Transfer time, median", "s", "lower",
         "Half of a round trip of the message, median of the repetitions."),
        ("transfer_time_min_s", "Transfer time, shortest", "s", "lower",
         "Half of a round trip of the message, shortest of the repetitions."),
        ("bandwidth_Bps", "Bandwidth", "B/s", "higher", "Message size over its transfer time."),
    )),
    # The curve is of medians: one delayed message must not pass for latency, while in a transfer time it counts.
    *curve_figures("pingpong", curve="Times are medians of the repetitions.")[2:],
)  # fmt: skip


class PingPongParameters(Parameters):
    """Message sizes and how often they are sent."""

    message_bytes: Bytes = parameter(4 * 2**20, "Message size", unit="B", ge=0, le=MAX_MESSAGE_BYTES)
    """Size of a message; 4 MB is 4 000 000 bytes, 4 MiB is 4 194 304, as the Intel MPI Benchmarks send."""
    all_sizes: bool = parameter(False, "All sizes")
    """Measure 0, 1, 2, 4 ... up to the message size too, and fit latency and bandwidth to the curve."""
    repetitions: int = parameter(20, "Round trips", ge=1, le=100_000)
    """Measured ones per message size."""
    warmups: int = parameter(2, "Warm-up round trips", ge=0, le=1000)
    """Per size, before the measured ones; the first opens the connection."""
    time_per_size: Seconds = parameter(10.0, "Time per size", unit="s", gt=0, le=3600)
    """No further repetition starts after this time; at least one is measured."""


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    tables = read_tables(results(output), _HEADING, _HEADS, lambda title, heads: _COLUMNS, {})
    if not tables:
        raise OutputError("the ping-pong printed no transfer time")
    table = tables[0]
    figures = describe_curve("pingpong", table.sizes, table.column("t_median_usec", factor="1e-6"))
    for name in ("", "_min", "_median"):
        times = table.column(f"t{name}_usec", factor="1e-6")
        figures[f"pingpong.transfer_time{name}_s"] = times[table.sizes.index(max(table.sizes))]
    if max(table.sizes):
        figures["pingpong.bandwidth_Bps"] = max(table.sizes) / figures["pingpong.transfer_time_s"]
    return Parsed(
        figures, {"Transfer times (1 MB = 1 000 000 bytes)": table.as_rows()}, {"message_bytes": max(table.sizes)}
    )


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    return [point for rows in tables.values() for point in curve_of(rows, "t_median_usec", 1e-6)]


def message_sizes(parameters: PingPongParameters) -> list[int]:
    """Return the sizes to measure, in bytes: one, or 0 and all powers of two up to it."""
    size = parameters.message_bytes
    if not parameters.all_sizes:
        return [size]
    return sorted({0, size, *(2**power for power in range(size.bit_length()))})


def _options(parameters: PingPongParameters) -> Mapping[str, Any]:
    sizes = ",".join(map(str, message_sizes(parameters)))
    return {"sizes": sizes, **parameters.model_dump(exclude={"message_bytes", "all_sizes"})}


def estimate_s(parameters: PingPongParameters, *, ranks: int) -> float:
    # 100 MB/s and 50 us per message, as on gigabit Ethernet.
    trips = 2 * (parameters.repetitions + parameters.warmups)
    per_size = (trips * (5e-5 + size / 1e8) for size in message_sizes(parameters))
    return 1.0 + sum(min(seconds, parameters.time_per_size) for seconds in per_size)


PINGPONG: Final = WorkloadDefinition(
    slug="pingpong",
    title="Ping-pong",
    summary="Transfer time of a message between two ranks, by size",
    programs={"/usr/bin/python3": "python3"},
    python_modules={"mpi4py": "python3-mpi4py"},
    parameters_type=PingPongParameters,
    decides="pingpong.transfer_time_s",
    first_sweep=("message_bytes", "1 KiB, 64 KiB, 4 MiB"),
    work_grows=True,
    figures=_FIGURES,
    **shipped("a ping-pong needs at least two ranks", "pingpong.py", options=_options),
    parse=parse,
    curve=curve,
    estimate_s=estimate_s,
)
"""Half round trips between ranks 0 and 1 with mpi4py; further ranks sleep."""
