"""Ring of ranks that exchange known numbers of messages of known sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from experiments.errors import OutputError
from experiments.workloads.base import OwnTime, Parameters, Parsed, WorkloadDefinition, figures_of
from experiments.workloads.fields import Bytes, parameter
from experiments.workloads.outputs import read_tables, results
from experiments.workloads.shipped import shipped

MAX_MESSAGE_BYTES: Final = 64 * 2**20

_HEADING = re.compile(r"# (Rankwire ring), .*")
_HEADS = re.compile(r"#( +ranks .*)")
_COLUMNS: Final = ("ranks", "bytes", "steps", "loop_s")


_FIGURES: Final = figures_of("ring", (
    ("loop_time_s", "Loop time", "s", "lower", "Time of all steps of the slowest rank."),
    ("step_time_s", "Step time", "s", "lower", "Loop time over the number of steps."),
    ("bandwidth_Bps", "Bandwidth", "B/s", "higher", "Bytes that a rank sends in a step over the step time."),
))  # fmt: skip


class RingParameters(Parameters):
    """Size and number of the messages."""

    message_bytes: Bytes = parameter(
        16 * 2**10,
        "Message size",
        "Size of a message. Above a limit of the MPI library (64 KiB with Open MPI over TCP) each takes three messages one "
        "way: a request, the permission, and the bytes.",
        unit="B",
        ge=0,
        le=MAX_MESSAGE_BYTES,
    )
    steps: int = parameter(2000, "Steps", ge=1, le=10_000_000)
    """Times that every rank sends to its right neighbour and receives from its left one; none begins before the last."""
    warmups: int = parameter(20, "Warm-up steps", ge=0, le=100_000)
    """Steps before the measured ones; they open the connections."""


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    tables = read_tables(results(output), _HEADING, _HEADS, lambda title, heads: _COLUMNS, {})
    if not tables:
        raise OutputError("the ring printed no loop time")
    ranks, size, steps, loop = (tables[0].column(name)[0] for name in _COLUMNS)
    figures = {"ring.loop_time_s": loop, "ring.step_time_s": loop.to(loop / steps)}
    if size and loop:
        figures["ring.bandwidth_Bps"] = loop.to(size * steps / loop)
    ran_with = {"ranks": ranks, "message_bytes": size, "steps": steps}
    return Parsed(figures, {"Ring exchange": tables[0].as_rows()}, ran_with)


def estimate_s(parameters: RingParameters, *, ranks: int) -> float:
    return 1.0 + 1e-4 * (parameters.steps + parameters.warmups)


def bottleneck_bytes(parameters: RingParameters, *, ranks: int) -> float:
    return float(parameters.message_bytes * (parameters.steps + parameters.warmups))


RING: Final = WorkloadDefinition(
    slug="ring",
    title="Ring exchange",
    summary="Time of a known number of messages that wait for each other around a ring",
    programs={"/usr/bin/python3": "python3"},
    python_modules={"mpi4py": "python3-mpi4py"},
    parameters_type=RingParameters,
    decides="ring.loop_time_s",
    own_time=OwnTime("ring.loop_time_s"),
    work_grows=True,
    figures=_FIGURES,
    **shipped("a ring needs at least two ranks", "ring.py"),
    parse=parse,
    estimate_s=estimate_s,
    bottleneck_bytes=bottleneck_bytes,
)
"""Every rank sends to its right neighbour and receives from its left one, step by step, with mpi4py."""
