"""HPC Challenge: every figure of its summary, from HPL to ring bandwidth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal

from analysis.numbers import SHARE
from experiments.errors import OutputError
from experiments.workloads import linpack
from experiments.workloads.base import FigureOfMerit, Parsed
from experiments.workloads.outputs import results

_Rule = tuple[str, str, str, Literal["lower", "higher", "neutral"], str]
_WHO: Final = "Star: mean of all ranks at once, Single: one rank alone, MPI: all ranks together."
_PAIRS: Final = "ping-pongs between pairs of ranks, or a ring of all ranks."
_RULES: Final[tuple[_Rule, ...]] = (
    # Pattern of the summary's key, suffix of the id, unit, direction, definition. The first that matches holds.
    (r"HPL_Tflops", "Tflops", "TFLOP/s", "higher", "Rate of HPL, as printed in the summary."),
    (r"\w+_Gflops", "Gflops", "GFLOP/s", "higher", f"Floating-point rate. {_WHO}"),
    (r"\w+_GUPs", "GUPs", "GUP/s", "higher", f"Random updates of memory, 10^9 per second. {_WHO}"),
    (r"PTRANS_GBs", "GBps", "GB/s", "higher", "Rate of the parallel matrix transpose, 10^9 bytes per second."),
    (r"\w+STREAM_\w+", "GBps", "GB/s", "higher", f"Memory bandwidth, 10^9 bytes per second. {_WHO}"),
    (r"\w+Latency_usec", "us", "µs", "lower", f"Latency of 8-byte messages: {_PAIRS}"),
    (r"\w+Bandwidth_GBytes", "GBps", "GB/s", "higher", f"Bandwidth of 2 000 000-byte messages: {_PAIRS}"),
    (r"\w+_(?:time|CheckTime)", "s", "s", "lower", "Wall time of the test."),
    (r"MPIFFT_time\d", "s", "s", "lower", "Wall time of a phase of the parallel FFT."),
    (r"\w+_ErrorsFraction", "", SHARE, "lower", "Wrong locations after the updates; up to 1 % is allowed."),
    (r"\w+_Errors", "", "1", "lower", "Wrong locations after the updates; up to 1 % is allowed."),
    (r"PTRANS_residual|MPIFFT_maxErr", "", "1", "lower", "Numerical error of the test."),
)
_KEYS: Final = (
    *("HPL_Tflops", "HPL_time", "StarDGEMM_Gflops", "SingleDGEMM_Gflops"),
    *("PTRANS_GBs", "PTRANS_time", "PTRANS_residual"),
    *(
        f"MPIRandomAccess{kind}_{name}"
        for kind in ("", "_LCG")
        for name in ("GUPs", "time", "CheckTime", "Errors", "ErrorsFraction")
    ),
    *(f"{who}RandomAccess{kind}_GUPs" for who in ("Star", "Single") for kind in ("", "_LCG")),
    *(f"{who}STREAM_{name}" for who in ("Star", "Single") for name in ("Copy", "Scale", "Add", "Triad")),
    *("StarFFT_Gflops", "SingleFFT_Gflops", "MPIFFT_Gflops", "MPIFFT_maxErr"),
    *(f"MPIFFT_time{phase}" for phase in range(7)),
    *(f"{which}PingPongLatency_usec" for which in ("Min", "Avg", "Max")),
    *(f"{which}PingPongBandwidth_GBytes" for which in ("Min", "Avg", "Max")),
    *(
        f"{order}OrderedRing{what}"
        for order in ("Naturally", "Randomly")
        for what in ("Latency_usec", "Bandwidth_GBytes")
    ),
)
"""Measurements of the summary. Its other entries are settings; the table of the trial shows all of them."""


def _figure(key: str) -> FigureOfMerit:
    _, suffix, unit, direction, definition = next(rule for rule in _RULES if re.fullmatch(rule[0], key))
    stem = re.sub(r"_(?:Tflops|Gflops|GUPs|GBs|usec|GBytes)$", "", key)
    label = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=MPI)(?=[A-Z])|_", " ", stem)
    identifier = f"hpcc.{stem}_{suffix}" if suffix else f"hpcc.{key}"
    return FigureOfMerit(identifier, label, unit, direction, f"{definition} {key} of the summary.")


_RAN_WITH: Final = {"ranks": "CommWorldProcs", "ns": "HPL_N", "nb": "HPL_NB", "p": "HPL_nprow", "q": "HPL_npcol"}
_FIGURES: Final = {key: _figure(key) for key in _KEYS}


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    name = linpack.OUTPUT if linpack.OUTPUT in files else ""
    lines = results(files.get(name, output), name)
    summary = linpack.summary(lines)
    if not summary:
        raise OutputError("HPC Challenge wrote no summary: the run did not reach its end")
    success, line = summary.get("Success", ("", lines[-1]))
    if success != "1":
        raise line.refused("HPC Challenge says that a test failed, or did not say Success=1")
    printed = {key: line.figure(text) for key, (text, line) in summary.items() if key in _FIGURES}
    # A test that could not run prints -1; that is not a measurement.
    figures = {_FIGURES[key].id: value for key, value in printed.items() if value >= 0}
    tables = {
        "Summary": [{"entry": key, "value": value} for key, (value, _) in summary.items()],
        "HPL results": [solution.shown() for solution in linpack.solutions(lines)],
    }
    entries = {name: summary[key] for name, key in _RAN_WITH.items() if key in summary}
    return Parsed(figures, tables, {name: line.figure(text) for name, (text, line) in entries.items()})


HPCC: Final = linpack.challenge(
    slug="hpcc",
    title="HPC Challenge",
    summary="Linpack, memory, random access, FFT, transpose, latency and bandwidth in one run",
    figures=tuple(_FIGURES.values()),
    outputs=(linpack.OUTPUT,),
    parse=parse,
)
"""All tests of HPC Challenge 1.5."""
