"""Outputs of external benchmarks are imported by their parsers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments import metrics
from experiments.errors import InvalidSpec
from experiments.exchange.external_results import import_description
from experiments.library import load_defaults
from experiments.models import Experiment
from tests.experiments.workloads.samples import sample

OSU = """\
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.00
1024                    4.00
1048576              1000.00
"""
HPL = """\
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4       11500   240     2     4              79.60              1.274e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0070010 ...... PASSED
"""


@dataclass(frozen=True)
class ExternalOutput:
    """Runs: program, parameters, printed and written texts, expected figures."""

    workload: str
    parameters: dict[str, Any]
    output: str
    figures: dict[str, tuple[float, str]]
    table: str
    file: str = "output.txt"
    beside: tuple[str, ...] = ()


LINPACK = sample("hpcc-hpccoutf.txt")
CASES = {
    "IMB": ExternalOutput(
        "imb",
        {"benchmark": "Allreduce", "hosts": 4},
        sample("imb-mpi1-collectives.txt"),
        {"imb.time_s": (1384.13e-6, "s"), "imb.time_max_s": (1448.98e-6, "s")},
        "Allreduce, 4 processes",
    ),
    "OSU": ExternalOutput(
        "osu",
        {"benchmark": "latency", "hosts": 2},
        OSU,
        {"osu.latency_s": (2e-6, "s"), "osu.transfer_time_s": (1e-3, "s"), "osu.bandwidth_Bps": (1048576e3, "B/s")},
        "OSU MPI Latency",
    ),
    "HPL": ExternalOutput(
        "hpl",
        {"ns": 11500, "nb": 240, "p": 2, "q": 4, "hosts": 4, "ranks_per_host": 2},
        HPL,
        {"hpl.gflops": (12.74, "GFLOP/s"), "hpl.time_s": (79.6, "s"), "hpl.residual": (0.007001, "1")},
        "HPL results",
        file="HPL.out",
    ),
    "HPL of HPC Challenge": ExternalOutput(
        "hpl",
        {"hosts": 4},
        LINPACK,
        {"hpl.gflops": (0.95264, "GFLOP/s"), "hpl.time_s": (0.701384, "s")},
        "HPL results",
        file="hpccoutf.txt",
    ),
    "HPC Challenge": ExternalOutput(
        "hpcc",
        {"hosts": 4},
        LINPACK,
        {
            "hpcc.SingleSTREAM_Triad_GBps": (66.3457, "GB/s"),
            "hpcc.MPIRandomAccess_GUPs": (0.000276836, "GUP/s"),
            "hpcc.MaxPingPongLatency_us": (126.629, "µs"),
        },
        "Summary",
        file="hpccoutf.txt",
    ),
    "NetPIPE's screen with its result beside": ExternalOutput(
        "netpipe",
        {"hosts": 2},
        sample("netpipe-stdout.txt"),
        {"netpipe.latency_s": (3.073e-05, "s"), "netpipe.transfer_time_s": (0.00751612, "s")},
        "Transfer times (1 Mbps = 1 048 576 bit/s)",
        beside=("np.out",),
    ),
    "LAMMPS": ExternalOutput(
        "water",
        {"molecules": 512, "steps": 100, "hosts": 4},
        sample("lammps-water-stdout.txt"),
        {
            "water.loop_time_s": (8.62671, "s"),
            "water.ns_per_day": (1.002, "ns/day"),
            "water.timesteps_per_s": (11.592, "1/s"),
            "water.cpu_use_percent": (4.7, "%"),
            "water.kspace_s": (4.7879, "s"),
        },
        "MPI task timing breakdown",
        file="log.lammps",
    ),
}


@pytest.fixture
def directory(tmp_path: Path, db: None, session_directory: Path) -> Path:
    load_defaults()
    return tmp_path


def described(directory: Path, external: ExternalOutput, **changes: Any) -> Path:
    """Write the description and its files; return its path."""
    (directory / external.file).write_text(external.output)
    for name in external.beside:
        (directory / name).write_text(sample(f"netpipe-{name}"))
    trial = {"output": external.file, "files": list(external.beside)}
    record = {"name": "Theirs", "workload": external.workload, "cluster": "Hawk", "parameters": external.parameters}
    place = directory / "measured.yaml"
    place.write_text(yaml.safe_dump({**record, "trials": [trial], **changes}, sort_keys=False))
    return place


def stored(directory: Path, external: ExternalOutput) -> Experiment:
    experiment = import_description(described(directory, external), project=load_defaults()).stored
    assert experiment is not None
    return experiment


@pytest.mark.parametrize("external", CASES.values(), ids=CASES)
def test_import_of_an_output_stores_figures_units_and_tables(directory: Path, external: ExternalOutput) -> None:
    experiment = stored(directory, external)
    trial = experiment.trials.get()
    values = dict(trial.measurements.values_list("metric", "value"))
    assert {name: (values[name], metrics.find(name).unit) for name in external.figures} == external.figures
    assert trial.tables[external.table]
    assert trial.configuration.hosts == external.parameters["hosts"]
    assert trial.configuration.ranks == external.parameters["hosts"] * external.parameters.get("ranks_per_host", 1)
    assert (experiment.is_imported, trial.state, trial.cluster.name if trial.cluster else "") == (
        *(True, "finished"),
        "Hawk",
    )
    assert {each.name for each in trial.artifacts.all()} == {external.file, *external.beside}


@pytest.mark.parametrize("external", CASES.values(), ids=CASES)
def test_another_program_s_output_is_refused_at_its_field_and_stores_nothing(
    directory: Path, external: ExternalOutput
) -> None:
    other = CASES["OSU" if external.workload != "osu" else "IMB"].output
    place = described(directory, external)
    (directory / external.file).write_text(other)
    for name in external.beside:
        (directory / name).write_text(other)
    with pytest.raises(InvalidSpec) as caught:
        import_description(place, project=load_defaults())
    (error,) = caught.value.errors
    assert (error.path, "\n" in error.message) == ("trials.0.output", False)
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("name", CASES)
def test_one_that_broke_off_is_refused_at_its_field(directory: Path, name: str) -> None:
    external = CASES[name]
    place = described(directory, external)
    (directory / external.file).write_text(external.output.partition("\n")[0])
    for beside in external.beside:
        (directory / beside).write_text("")
    with pytest.raises(InvalidSpec, match=r"^trials\.0\.output: "):
        import_description(place, project=load_defaults())


@pytest.mark.parametrize(
    ("name", "wrong", "path", "words"),
    [
        ("LAMMPS", {"hosts": 8}, "trials.0.output", "ranks 4, not 8, in line 54"),
        ("LAMMPS", {"steps": 300}, "parameters.steps", "steps 100, not 300"),
        ("HPL", {"ranks_per_host": 1, "p": 2, "q": 2}, "parameters.q", "q 4, not 2"),
        ("HPL of HPC Challenge", {"ns": 2000}, "parameters.ns", "ns 1000, not 2000"),
        ("HPC Challenge", {"hosts": 2}, "trials.0.output", "ranks 4, not 2"),
        ("IMB", {"hosts": 2}, "trials.0.output", "ranks 4, not 2"),
    ],
)
def test_one_of_another_run_than_is_described_is_refused(
    directory: Path, name: str, wrong: dict[str, Any], path: str, words: str
) -> None:
    place = described(directory, CASES[name], parameters={**CASES[name].parameters, **wrong})
    with pytest.raises(InvalidSpec) as caught:
        import_description(place, project=load_defaults())
    (error,) = caught.value.errors
    assert error.path == path
    assert f"{CASES[name].file} says that it ran with {words}" in error.message
    assert not Experiment.objects.exists()


def test_import_reports_a_contradiction_at_the_trial(directory: Path) -> None:
    external = CASES["LAMMPS"]
    trials = [{"output": external.file, "parameters": {"hosts": 2, "ranks_per_host": 2, "steps": 10}}]
    with pytest.raises(InvalidSpec) as caught:
        import_description(described(directory, external, trials=trials), project=load_defaults())
    assert [error.path for error in caught.value.errors] == ["trials.0.parameters.steps"]
