"""HPL and HPC Challenge: input file, recorded output, a real run."""

import pytest

from experiments.errors import OutputError
from experiments.workloads import Mismatch, get, linpack
from experiments.workloads.linpack import LinpackParameters, grid

from .mpirun import run
from .samples import sample

HPL, HPCC = get("hpl"), get("hpcc")
OUTPUT = sample("hpcc-hpccoutf.txt")
HPL_OUT = """\
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4       11500   240     1     8              88.11              1.151e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0063920 ...... PASSED
================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4       11500   240     2     4              79.60              1.274e+01
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0070010 ...... PASSED
"""


def test_it_writes_the_recorded_input_byte_for_byte():
    text = HPL.files(LinpackParameters(ns=1000, nb=80, p=2, q=2), ranks=4)["hpccinf.txt"]
    assert text == sample("hpcc-hpccinf.txt")


def test_it_puts_every_dial_into_the_input():
    text = linpack.input_file(LinpackParameters(ns=12300, nb=180, p=2, q=4, bcast=3, depth=0), 8)
    values = [line.split()[0] for line in text.splitlines()]
    assert [values[i] for i in (5, 7, 10, 11, 22, 24)] == ["12300", "180", "2", "4", "3", "0"]


@pytest.mark.parametrize(
    ("p", "q", "ranks", "made"),
    [(0, 0, 8, (2, 4)), (0, 0, 7, (1, 7)), (0, 0, 16, (4, 4)), (2, 0, 8, (2, 4)), (0, 8, 8, (1, 8)), (8, 1, 8, (8, 1))],
)
def test_it_makes_a_grid_of_all_ranks(p, q, ranks, made):
    assert grid(LinpackParameters(p=p, q=q), ranks) == made


@pytest.mark.parametrize(
    ("p", "q", "ranks", "words"),
    [(2, 2, 8, "P x Q = 2 x 2 = 4 is not the number of ranks, 8"), (3, 0, 8, "P = 3"), (0, 5, 8, "Q = 5")],
)
def test_it_refuses_a_grid_that_leaves_ranks_over(p, q, ranks, words):
    with pytest.raises(Mismatch, match=words):
        HPL.check(LinpackParameters(p=p, q=q), ranks=ranks)


def test_it_reads_the_recorded_result_of_hpl():
    parsed = HPL.parse("", {"hpccoutf.txt": OUTPUT})
    assert parsed.figures == {"hpl.gflops": 0.95264, "hpl.time_s": 0.701384, "hpl.residual": 0.0072510}
    assert parsed.tables["HPL results"] == [
        {
            "T/V": "WR11C2R4",
            "N": 1000,
            "NB": 80,
            "P": 2,
            "Q": 2,
            "time_s": 0.70,
            "gflops": 0.9526,
            "residual": 0.007251,
            "check": "PASSED",
        }
    ]


@pytest.mark.parametrize("place", ["screen", "file"])
def test_it_reads_a_plain_hpl_out_and_takes_the_fastest(place):
    parsed = HPL.parse(HPL_OUT, {}) if place == "screen" else HPL.parse("", {"HPL.out": HPL_OUT})
    assert parsed.figures == {"hpl.gflops": 12.74, "hpl.time_s": 79.60, "hpl.residual": 0.007001}
    assert [(row["P"], row["Q"]) for row in parsed.tables["HPL results"]] == [(1, 8), (2, 4)]


def test_it_does_not_take_a_failed_residual_for_a_result():
    with pytest.raises(OutputError, match="residual check failed"):
        HPL.parse(HPL_OUT.replace("PASSED", "FAILED"), {})
    mixed = HPL.parse(HPL_OUT[::-1].replace("DESSAP", "DELIAF", 1)[::-1], {})
    assert mixed.figures["hpl.gflops"] == 11.51


def test_it_refuses_a_run_that_broke_off():
    broken = OUTPUT.partition("Begin of HPL section")[0]
    with pytest.raises(OutputError, match="HPL printed no result"):
        HPL.parse("", {"hpccoutf.txt": broken})
    with pytest.raises(OutputError, match="no summary"):
        HPCC.parse("", {"hpccoutf.txt": broken})
    with pytest.raises(OutputError, match="Success=0"):
        HPCC.parse("", {"hpccoutf.txt": OUTPUT.replace("Success=1", "Success=0")})


def test_it_reads_the_recorded_summary_whole():
    parsed = HPCC.parse("", {"hpccoutf.txt": OUTPUT})
    summary = OUTPUT.partition("Begin of Summary section.\n")[2].partition("End of Summary section.")[0]
    assert [f"{row['entry']}={row['value']}" for row in parsed.tables["Summary"]] == summary.splitlines()


def test_it_gives_every_measured_number_of_the_summary_as_a_figure():
    figures = HPCC.parse("", {"hpccoutf.txt": OUTPUT}).figures
    assert figures.keys() == {figure.id for figure in HPCC.figures}
    assert figures["hpcc.HPL_Tflops"] == 0.00095264
    assert figures["hpcc.SingleSTREAM_Triad_GBps"] == 66.3457
    assert figures["hpcc.MPIRandomAccess_GUPs"] == 0.000276836
    assert figures["hpcc.PTRANS_GBps"] == 0.0614078
    assert figures["hpcc.MPIFFT_Gflops"] == 0.170087
    assert figures["hpcc.MaxPingPongLatency_us"] == 126.629
    assert figures["hpcc.RandomlyOrderedRingBandwidth_GBps"] == 0.0648515
    assert figures["hpcc.MPIFFT_time6_s"] == 3.41e-07


def test_it_leaves_out_a_test_that_could_not_run():
    figures = HPCC.parse("", {"hpccoutf.txt": OUTPUT.replace("MPIFFT_Gflops=0.170087", "MPIFFT_Gflops=-1")}).figures
    assert "hpcc.MPIFFT_Gflops" not in figures
    assert len(figures) == len(HPCC.figures) - 1


def test_it_measures_a_real_run_for_both(tmp_path):
    parameters = LinpackParameters(ns=120, nb=16)
    challenge = run(HPCC, parameters, tmp_path)
    assert challenge.figures["hpcc.HPL_Tflops"] > 0
    assert challenge.figures.keys() <= {figure.id for figure in HPCC.figures}
    alone = HPL.parse("", {"hpccoutf.txt": (tmp_path / "hpccoutf.txt").read_text()})
    assert alone.figures["hpl.gflops"] == pytest.approx(1000 * challenge.figures["hpcc.HPL_Tflops"])
    (row,) = alone.tables["HPL results"]
    assert (row["N"], row["NB"], row["P"], row["Q"], row["check"]) == (120, 16, 1, 2, "PASSED")
