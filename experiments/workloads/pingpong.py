"""The project's own ping-pong: transfer time of a message between two ranks, for any size and network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, Seconds, parameter
from experiments.workloads.transfer import curve_figures, curve_of, describe_curve, scaled

PROGRAM: Final = Path(__file__).parent.parent / "programs" / "pingpong.py"
MAX_MESSAGE_BYTES: Final = 64 * 2**20

_ROW = re.compile(r"^ *(\d+) +(\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+) +(\d+\.\d+)$", re.MULTILINE)


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
    repetitions: int = parameter(20, "Repetitions", ge=1, le=100_000)
    """Round trips per message size."""
    warmups: int = parameter(2, "Warm-ups", ge=0, le=1000)
    """Round trips per size before the measured ones; the first opens the connection."""
    time_per_size: Seconds = parameter(10.0, "Time per size", unit="s", gt=0, le=3600)
    """No further repetition starts after this time; at least one is measured."""


def command(parameters: PingPongParameters, *, ranks: int) -> tuple[str, ...]:
    return (
        *("/usr/bin/python3", "-I", PROGRAM.name),
        *("--sizes", ",".join(map(str, message_sizes(parameters)))),
        *("--repetitions", str(parameters.repetitions)),
        *("--warmups", str(parameters.warmups)),
        *("--time-per-size", f"{parameters.time_per_size:g}"),
    )


def files(parameters: PingPongParameters, *, ranks: int) -> Mapping[str, str]:
    # Shipped with the inputs: hosts need no Rankwire, and the trial keeps the very program that it ran.
    return {PROGRAM.name: PROGRAM.read_text()}


def check(parameters: PingPongParameters, *, ranks: int) -> None:
    if ranks < 2:
        raise Mismatch("hosts", "a ping-pong needs at least two ranks; take two hosts")


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    printed = _ROW.findall(output)
    if not printed:
        raise OutputError("the ping-pong printed no transfer time")
    rows: list[dict[str, Any]] = [
        {
            "bytes": int(size),
            "repetitions": int(repetitions),
            "t_min_usec": float(low),
            "t_median_usec": float(middle),
            "t_usec": float(mean),
            "Mbytes_per_s": float(rate),
        }
        for size, repetitions, low, middle, mean, rate in printed
    ]
    size, _, low, middle, mean, _ = max(printed, key=lambda row: int(row[0]))
    medians_s = [scaled(row[3], "1e-6") for row in printed]
    figures = describe_curve("pingpong", [row["bytes"] for row in rows], medians_s)
    figures["pingpong.transfer_time_s"] = scaled(mean, "1e-6")
    figures["pingpong.transfer_time_min_s"] = scaled(low, "1e-6")
    figures["pingpong.transfer_time_median_s"] = scaled(middle, "1e-6")
    if int(size):
        figures["pingpong.bandwidth_Bps"] = int(size) / figures["pingpong.transfer_time_s"]
    return Parsed(figures, {"Transfer times (1 MB = 1 000 000 bytes)": rows})


def curve(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[int, float]]:
    return [point for rows in tables.values() for point in curve_of(rows, "t_median_usec", 1e-6)]


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
    figures=_FIGURES,
    command=command,
    files=files,
    check=check,
    parse=parse,
    curve=curve,
    estimate_s=estimate_s,
)
"""Half round trips between ranks 0 and 1 with mpi4py; further ranks sleep."""


def message_sizes(parameters: PingPongParameters) -> list[int]:
    """Return the sizes to measure, in bytes: the one that is asked for, or 0 and all powers of two up to it."""
    size = parameters.message_bytes
    if not parameters.all_sizes:
        return [size]
    return sorted({0, size, *(2**power for power in range(size.bit_length()))})
