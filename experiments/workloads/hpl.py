"""HPL, the Linpack benchmark of clusters, run through HPC Challenge; a plain HPL.out is read too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from experiments.workloads import linpack
from experiments.workloads.base import Parsed, figures_of
from experiments.workloads.transfer import scaled

_PLAIN_OUTPUT: Final = "HPL.out"
_RESIDUAL: Final = "Scaled residual ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N); HPL accepts values below 16."
_FIGURES: Final = figures_of("hpl", (
    ("gflops", "HPL rate", "GFLOP/s", "higher", "Floating-point operations per second of HPL, as printed."),
    ("time_s", "HPL time", "s", "lower", "HPL's own wall time of the solution."),
    ("residual", "HPL residual", "1", "neutral", _RESIDUAL),
))  # fmt: skip


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    texts = (files.get(linpack.OUTPUT, ""), files.get(_PLAIN_OUTPUT, ""), output)
    text, runs = next(((text, rows) for text in texts if (rows := linpack.runs(text))), ("", []))
    best = linpack.best_run(runs)
    figures = {"hpl.gflops": best["gflops"]}
    if best["time_s"] > 0:  # the table prints hundredths of a second: 0.00 is no time
        figures["hpl.time_s"] = best["time_s"]
    if best["residual"] is not None:
        figures["hpl.residual"] = best["residual"]
    summary = linpack.summary(text)
    if len(runs) == 1 and "HPL_Tflops" in summary:  # the same two numbers with more digits
        figures["hpl.gflops"] = scaled(summary["HPL_Tflops"], "1e3")
        figures["hpl.time_s"] = float(summary["HPL_time"])
    ran_with = {"ns": best["N"], "nb": best["NB"], "p": best["P"], "q": best["Q"], "ranks": best["P"] * best["Q"]}
    return Parsed(figures, {"HPL results": runs}, ran_with)


HPL: Final = linpack.challenge(
    slug="hpl",
    title="HPL",
    summary="Linpack through HPC Challenge: GFLOP/s against problem size, blocks and process grid",
    figures=_FIGURES,
    decides="hpl.gflops",
    treatments=("nb", "p", "q"),
    gflops="hpl.gflops",
    outputs=(linpack.OUTPUT, _PLAIN_OUTPUT),
    parse=parse,
)
"""The solution of a dense linear system, Ns x Ns, on a P x Q grid of ranks."""
