"""IMB-MPI1: its command and its tables, from outputs that a site recorded."""

import re

import pytest

from experiments import workloads
from experiments.errors import OutputError
from experiments.specification.design import configuration_hash
from experiments.workloads import get
from experiments.workloads.imb import ImbParameters

from .samples import sample

IMB = get("imb")
PINGPONG, COLLECTIVES = sample("imb-mpi1-pingpong.txt"), sample("imb-mpi1-collectives.txt")


def printed_rows(text):
    """Every line of numbers of an output, cell by cell."""
    return [line.split() for line in text.splitlines() if re.match(r"^ +\d", line)]


def written_again(tables):
    """Return the parsed tables as IMB prints them: two decimals for times."""
    return [
        [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row.values()]
        for rows in tables.values()
        for row in rows
    ]


@pytest.mark.parametrize("text", [PINGPONG, COLLECTIVES], ids=["pingpong", "collectives"])
def test_it_reads_a_recorded_output_to_the_numbers_that_it_prints(text):
    assert written_again(IMB.parse(text, {}).tables) == printed_rows(text)
    assert len(printed_rows(text)) > 20


def test_it_gives_the_figures_of_the_largest_message_of_a_ping_pong():
    figures = IMB.parse(PINGPONG, {}).figures
    assert figures["imb.transfer_time_s"] == figures["imb.time_s"] == 0.13990522
    assert figures["imb.bandwidth_Bps"] == pytest.approx(119.92e6, rel=1e-4)
    assert figures["imb.latency_s"] == 22.78e-6
    assert figures["imb.fit_latency_s"] == pytest.approx(18e-6, rel=0.2)


def test_it_takes_collectives_on_most_processes():
    parsed = IMB.parse(COLLECTIVES, {})
    assert list(parsed.tables) == [
        "Sendrecv, 2 processes",
        "Sendrecv, 4 processes",
        "Allreduce, 2 processes",
        "Allreduce, 4 processes",
    ]
    assert parsed.figures == {"imb.time_s": 371.57e-6, "imb.time_min_s": 370.03e-6, "imb.time_max_s": 373.03e-6}


def test_it_refuses_a_table_that_breaks_off():
    with pytest.raises(OutputError, match="no table"):
        IMB.parse(PINGPONG.partition("       #bytes")[0], {})


def test_it_writes_its_command_with_the_lengths_in_a_file():
    parameters = ImbParameters(benchmark="Allreduce", message_bytes="4 KiB", repetitions=10, all_sizes=True)
    assert IMB.command(parameters, ranks=8) == (
        *("IMB-MPI1", "Allreduce", "-msglen", "lengths.txt", "-iter", "10", "-npmin", "8"),
    )
    lengths = IMB.files(parameters, ranks=8)["lengths.txt"].split()
    assert lengths == ["0", *(str(2**n) for n in range(13))]
    assert "-msglen" not in IMB.command(ImbParameters(benchmark="Barrier"), ranks=4)
    assert IMB.command(ImbParameters(), ranks=4)[-1] == "2", "a ping-pong has two ranks, the others wait"


def test_it_runs_the_binary_that_it_is_pointed_at_and_asks_no_path_for_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    own = {"benchmark": "Bcast", "program": "/opt/imb/IMB-MPI1"}
    workload = workloads.get("imb", own)
    assert workload.command(ImbParameters(**own), ranks=2)[:2] == ("/opt/imb/IMB-MPI1", "Bcast")
    assert workloads.missing_packages(workload) == ()
    assert workloads.missing_packages(workloads.get("imb", {"benchmark": "Bcast"})) != ()


def test_imb_with_a_library_of_its_own_is_for_maintainers():
    own = {"libraries": "/opt/intel/mpi/lib"}
    workload = workloads.get("imb", own)
    assert workload.environment(ImbParameters(**own), ranks=2) == {"LD_LIBRARY_PATH": "/opt/intel/mpi/lib"}
    assert workload.restricted
    assert not IMB.restricted
    assert IMB.environment(ImbParameters(), ranks=2) == {}


@pytest.mark.parametrize("program", ["IMB-MPI1", "/opt/a b", "/opt/$X", "-x", "/opt/imb/"])
def test_it_takes_nothing_but_a_plain_path_for_a_binary(program):
    with pytest.raises(ValueError, match="program"):
        ImbParameters(program=program)
    with pytest.raises(ValueError, match="libraries"):
        ImbParameters(libraries=program)


def test_a_stored_configuration_without_a_binary_keeps_its_hash():
    stored = {"benchmark": "Bcast", "hosts": 2}
    assert configuration_hash("imb", {**stored, "program": "", "libraries": ""}) == configuration_hash("imb", stored)
