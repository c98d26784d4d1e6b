"""HPL, the Linpack benchmark, run through HPC Challenge.

A plain HPL.out is read too. HPC Challenge runs all its tests whenever it runs; Debian's program has no switch for one of them. HPL's
own time is in its table, the elapsed time of the trial holds the other tests too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from experiments.errors import OutputError
from experiments.workloads.base import Mismatch, Parameters, Parsed, WorkloadDefinition, alternatives, figures_of
from experiments.workloads.fields import parameter
from experiments.workloads.outputs import Line, as_printed, results

INPUT: Final = "hpccinf.txt"
OUTPUT: Final = "hpccoutf.txt"

_TEXT: Final = """\
HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
{ns:<12} Ns
1            # of NBs
{nb:<12} NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p:<12} Ps
{q:<12} Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
{bcast:<12} BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
{depth:<12} DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0                      		Number of additional problem sizes for PTRANS
1200 10000 30000        	values of N
0                       	number of additional blocking sizes for PTRANS
40 9 8 13 13 20 16 32 64       	values of NB
"""

_ROW = re.compile(r"W[RC]\w+\s")
_ENTRY = re.compile(r"(\w+)=(.*)")
_CHECK = re.compile(r"\|\|Ax-b\|\|_oo\s*/.*?=\s*(\S*)(?: \.+ (PASSED|FAILED))?")
_COLUMNS: Final = ("T/V", "N", "NB", "P", "Q", "time_s", "gflops")


class LinpackParameters(Parameters):
    """The dials of HPL; names as in its input file."""

    ns: int = parameter(1000, "Problem size (Ns)", ge=1, le=100_000_000)
    """Order of the matrix; it takes 8 Ns² bytes, shared by the ranks."""
    nb: int = parameter(80, "Block size (NB)", ge=1, le=4096)
    """Columns of a block: the grain of computing and of messages."""
    p: int = parameter(0, "Process rows (P)", ge=0, le=65_536)
    """Rows of the process grid; 0: as near to a square as the ranks allow, P at most Q."""
    q: int = parameter(0, "Process columns (Q)", ge=0, le=65_536)
    """Columns of the process grid; 0: ranks / P. P x Q is the number of ranks."""
    bcast: int = parameter(1, "Panel broadcast (BCAST)", ge=0, le=5)
    """0 ring, 1 ring modified, 2 two rings, 3 two rings modified, 4 bandwidth reducing, 5 the same modified."""
    depth: int = parameter(1, "Look-ahead depth (DEPTH)", ge=0, le=10)
    """Panels that are factored ahead of the update."""


def grid(parameters: LinpackParameters, ranks: int) -> tuple[int, int]:
    """Return the process grid (P, Q). Raise Mismatch if it does not hold all ranks."""
    p, q = parameters.p, parameters.q
    if not p and not q:
        p = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
        return p, ranks // p
    side, name = (q, "q") if not p else (p, "p")
    if (not p or not q) and ranks % side:
        raise Mismatch(name, f"{ranks} ranks do not make a grid with {name.upper()} = {side}")
    p, q = p or ranks // q, q or ranks // p
    if p * q != ranks:
        raise Mismatch("p", f"P x Q = {p} x {q} = {p * q} is not the number of ranks, {ranks}")
    return p, q


def input_file(parameters: LinpackParameters, ranks: int) -> str:
    """Return the text of hpccinf.txt."""
    p, q = grid(parameters, ranks)
    return _TEXT.format(ns=parameters.ns, nb=parameters.nb, p=p, q=q, bcast=parameters.bcast, depth=parameters.depth)


def command(parameters: LinpackParameters, *, ranks: int) -> tuple[str, ...]:
    return ("hpcc",)


def files(parameters: LinpackParameters, *, ranks: int) -> Mapping[str, str]:
    return {INPUT: input_file(parameters, ranks)}


def check(parameters: LinpackParameters, *, ranks: int) -> None:
    grid(parameters, ranks)


def estimate_s(parameters: LinpackParameters, *, ranks: int) -> float:
    # 2/3 N^3 operations at 1 GFLOP/s. On 4 ranks of a 2-core test-bed the other tests took 30 to 35 s, most of it in messages.
    return 3.0 + 7.0 * ranks + (2 / 3) * parameters.ns**3 / 1e9


def bottleneck_bytes(parameters: LinpackParameters, *, ranks: int) -> float:
    # Counted on two hosts with Ns 34 to 1000, and on four with 4000: 0.86 and 1.2 GB in each direction.
    return 0.0 if ranks < 2 else 0.9e9 + 20.0 * parameters.ns**2


def challenge(**fields: Any) -> WorkloadDefinition:
    """Return a workload that runs HPC Challenge, with further fields."""
    return WorkloadDefinition(
        programs={"hpcc": "hpcc"},
        parameters_type=LinpackParameters,
        command=command,
        files=files,
        check=check,
        estimate_s=estimate_s,
        bottleneck_bytes=bottleneck_bytes,
        **fields,
    )


@dataclass(slots=True)
class Solution:
    """A row of HPL, and its residual check: line, residual and verdict."""

    line: Line
    cells: Mapping[str, str]
    check: tuple[Line, str, str] | None = None

    def as_rows(self) -> dict[str, Any]:
        """Return the row for the page of the trial, columns as HPL names them."""
        residual, verdict = (as_printed(self.check[1]), self.check[2]) if self.check else (None, None)
        return {**{name: as_printed(cell) for name, cell in self.cells.items()}, "residual": residual, "check": verdict}

    def result(self, rows_by_name: Mapping[str, Any]) -> Parsed:
        """Return the figures, or the refusal of a failed check."""
        n, nb, p, q = (self.line.whole(self.cells[name]) for name in ("N", "NB", "P", "Q"))
        ran_with = {"ns": n, "nb": nb, "p": p, "q": q, "ranks": p.to(p * q)}
        if self.check and self.check[2] == "FAILED":
            return Parsed({}, rows_by_name, ran_with, refusal=self.check[0].refused("HPL's residual check failed"))
        figures = {f"hpl.{name}": self.line.figure(self.cells[name]) for name in ("gflops", "time_s")}
        if not figures["hpl.time_s"]:  # the table prints hundredths of a second: 0.00 is no time
            del figures["hpl.time_s"]
        if self.check:
            figures["hpl.residual"] = self.check[0].figure(self.check[1])
        return Parsed(figures, rows_by_name, ran_with)


def solutions(lines: Iterable[Line]) -> list[Solution]:
    """Return the results of HPL.out or hpccoutf.txt. Raise OutputError for a cut one."""
    output: list[Solution] = []
    for line in lines:
        if _ROW.match(line.text):
            # NVIDIA's HPL adds the rate of a processor in brackets.
            output.append(Solution(line, line.cells(_COLUMNS, line.text.partition(" (")[0].split())))
        elif output and (check := _CHECK.match(line.text)):
            if check[2] is None:
                raise line.refused("the residual check has no verdict")
            if output[-1].check is None or check[2] == "FAILED":  # HPL 1 prints three
                output[-1].check = line, check[1], check[2]
    return output


def summary(lines: Iterable[Line]) -> dict[str, tuple[str, Line]]:
    """Return the summary's entries in hpccoutf.txt with lines; {} without its end."""
    entries: dict[str, tuple[str, Line]] | None = None
    for line in lines:
        if line.text == "Begin of Summary section.":
            entries = {}
        elif line.text == "End of Summary section.":
            return entries or {}
        elif entries is not None and (entry := _ENTRY.fullmatch(line.text)):
            entries[entry[1]] = entry[2], line
    return {}


_PLAIN_OUTPUT: Final = "HPL.out"
_HPL_RESIDUAL: Final = "Scaled residual ||Ax-b|| / (eps (||A|| ||x|| + ||b||) N); HPL accepts values below 16."
_HPL_FIGURES: Final = figures_of("hpl", (
    ("gflops", "HPL rate", "GFLOP/s", "higher", "Floating-point operations per second of HPL, as printed."),
    ("time_s", "HPL time", "s", "lower", "HPL's own wall time of the solution."),
    ("residual", "HPL residual", "1", "neutral", _HPL_RESIDUAL),
))  # fmt: skip


def _parse_hpl(output: str, files: Mapping[str, str]) -> Parsed:
    texts = [*((name, files[name]) for name in (OUTPUT, _PLAIN_OUTPUT) if name in files), ("", output)]
    for name, text in texts:
        lines = results(text, name)
        if solved := solutions(lines):
            break
    else:
        raise OutputError("HPL printed no result: the run did not reach its end")
    rows_by_name = {"HPL results": [solution.as_rows() for solution in solved]}
    of_rows = [solution.result(rows_by_name) for solution in solved]
    of_rows.sort(key=lambda result: result.figures.get("hpl.gflops", -1.0), reverse=True)
    best = alternatives(of_rows)
    if best.refusal is not None:
        raise best.refusal
    exact = summary(lines)
    if len(solved) == 1 and {"HPL_Tflops", "HPL_time"} <= exact.keys():  # the same two numbers with more digits
        (rate, of_rate), (time, of_time) = exact["HPL_Tflops"], exact["HPL_time"]
        more = {"hpl.gflops": of_rate.figure(rate, "1e3"), "hpl.time_s": of_time.figure(time)}
        best = replace(best, figures={**best.figures, **more})
    return best


HPL: Final = challenge(
    slug="hpl",
    title="HPL",
    summary="Linpack through HPC Challenge, which runs its other tests too: GFLOP/s against problem size, blocks and process grid",
    figures=_HPL_FIGURES,
    decides="hpl.gflops",
    decides_of="hpl.time_s",
    treatments=("nb", "p", "q"),
    gflops="hpl.gflops",
    outputs=(OUTPUT, _PLAIN_OUTPUT),
    parse=_parse_hpl,
)
"""The solution of a dense linear system, Ns x Ns, on a P x Q grid of ranks."""
