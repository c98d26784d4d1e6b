"""Importer of summaries of TALP, of the library DLB 3.5 to 3.7.

They are written by ``--talp-output-file=NAME.json`` (``src/talp/talp_output.c``). The region that spans MPI becomes one trial. As long
as ranks have no threads and no accelerators its POP efficiencies are defined as those of the catalogue: useful time is the time outside
of MPI, and the elapsed time the window from MPI_Init to MPI_Finalize. Times are in nanoseconds, efficiencies to two digits.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field, FiniteFloat

from experiments.errors import BadBundle
from experiments.exchange.importers.report import Lenient, ToolReport, checked

_VERSIONS: Final = ("3.5", "3.6", "3.7")
_WHOLE: Final = ("Global", "Application", "MPI Execution")
"""Names of the region that TALP itself opens, newest first."""
_Share = Annotated[FiniteFloat, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Nanoseconds = Annotated[int, Field(ge=0)]


class _Region(Lenient):
    numCpus: _Count  # noqa: N815 - as TALP writes it
    numMpiRanks: _Count  # noqa: N815
    numNodes: _Count  # noqa: N815
    numMpiCalls: Annotated[int, Field(ge=0)]  # noqa: N815
    numOmpParallels: int  # noqa: N815
    numOmpTasks: int  # noqa: N815
    numGpuRuntimeCalls: int = 0  # noqa: N815 - since 3.6
    elapsedTime: _Nanoseconds  # noqa: N815
    usefulTime: _Nanoseconds  # noqa: N815
    mpiParallelEfficiency: _Share  # noqa: N815
    mpiCommunicationEfficiency: _Share  # noqa: N815
    mpiLoadBalance: _Share  # noqa: N815


class _Summary(Lenient):
    dlbVersion: str  # noqa: N815
    timestamp: str | None = None
    Application: dict[str, dict[str, Any]]


def recognises(data: dict[str, Any]) -> bool:
    return "dlbVersion" in data


def read(data: dict[str, Any]) -> ToolReport:
    """Return the region that spans MPI as a trial. Raise BadBundle for other formats."""
    version = str(data["dlbVersion"])[:40]
    if not version.startswith(tuple(f"{version_known}." for version_known in _VERSIONS)) and version not in _VERSIONS:
        raise BadBundle(f"Results of TALP are read of DLB {', '.join(_VERSIONS)}; this one is of {version!r}.")
    if "Application" not in data:
        raise BadBundle("It has no summary of TALP's: have it written with --talp-summary=pop-metrics.")
    summary = checked(_Summary, data, "TALP")
    report = ToolReport(f"TALP of DLB {version}", [])
    whole = next((name for name in _WHOLE if name in summary.Application), None)
    for name in summary.Application:
        if name != whole:
            report.left_out.append(f"the region {name[:80]}: only the one that spans MPI becomes a trial")
    if whole is None:
        raise BadBundle("It has no region that spans MPI, which TALP calls Global.")
    region = checked(_Region, summary.Application[whole], "TALP")
    if why := _why_not(region):
        report.left_out.append(f"the region {whole}: {why}")
        return report
    report.sets = [
        {
            "name": f"TALP on {region.numNodes} hosts, {region.numMpiRanks} ranks",
            "workload": "talp",
            "cluster": "TALP",
            "source": f"{report.tool}{f', {summary.timestamp}' if summary.timestamp else ''}"[:300],
            "trials": [
                {"parameters": {"hosts": region.numNodes, "ranks": region.numMpiRanks}, "figures": _figures(region)}
            ],
        }
    ]
    return report


def _why_not(region: _Region) -> str:
    if not region.numMpiRanks or not region.numNodes:
        return "it is of one process, as --talp-partial-output writes it: a trial needs the summary of all ranks"
    if not region.elapsedTime:
        return "it has no data"
    if region.usefulTime > region.elapsedTime * max(region.numCpus, region.numMpiRanks):
        return "its useful time is more than its processors had"
    kinds = "calls to accelerators" if region.numGpuRuntimeCalls else ""
    kinds = "OpenMP threads" if region.numOmpParallels or region.numOmpTasks else kinds
    return f"its ranks have {kinds}, and the efficiencies of such mean another thing" if kinds else ""


def _figures(region: _Region) -> dict[str, float]:
    return {
        "mpi_window_s": region.elapsedTime / 1e9,
        "mpi_useful_s": region.usefulTime / 1e9,
        "mpi_parallel_efficiency": region.mpiParallelEfficiency,
        "mpi_communication_efficiency": region.mpiCommunicationEfficiency,
        "mpi_load_balance": region.mpiLoadBalance,
        "mpi_calls": float(region.numMpiCalls),
    }
