"""Outputs of kinds that public reports are about: each number that is read is the number that was printed."""

from __future__ import annotations

import re

import pytest

from experiments.errors import OutputError
from experiments.workloads import get

from .samples import sample

IMB = """\
# Benchmarking PingPong
# #processes = 2
#---------------------------------------------------
       #bytes #repetitions      t[usec]   Mbytes/sec      defects
            0         1000         1.00         0.00         0.00
         1024         1000         2.00       512.00         0.00
      1048576           40       200.00      5242.88         0.00

# All processes entering MPI_Finalize
"""
OSU = """\
# OSU MPI Allreduce Latency Test v7.3
# Datatype: MPI_INT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation
4                  12.00       11.00       13.00        1000        Pass
1024               24.00       23.00       25.00        1000        Pass
1048576            30.00       29.00       31.00        1000        Pass
"""
HPL = """\
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4       20000   192     2     2              66.70             7.9976e+01
HPL_pdgesv() start time Mon Jan  1 10:00:00 2024
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.10000000e-03 ...... PASSED
"""
PINGPONG = """\
# Rankwire ping-pong, ranks 0 and 1 of 2 on n1 and n2
# t is half of a round trip; Mbytes/s is bytes / t, 1 MB = 1 000 000 bytes
#      bytes  #repetitions   t_min[usec]  t_med[usec]       t[usec]      Mbytes/s
            0            20         8.371         8.622         9.596         0.000
      1048576            20       500.125       510.500       520.250      2015.523
"""
RING = """\
# Rankwire ring, 4 ranks on n1, n2, n3, n4
#  ranks         bytes         steps        loop[s]
       4         16384          2000       1.250000
"""
WATER, HPCC, NETPIPE = (sample(f"{name}.txt") for name in ("lammps-water-stdout", "hpcc-hpccoutf", "netpipe-stdout"))
OUTPUTS = {
    "imb": IMB, "osu": OSU, "hpl": HPL, "hpcc": HPCC, "netpipe": NETPIPE, "water": WATER, "pingpong": PINGPONG, "ring": RING,
}  # fmt: skip
REQUESTED = {
    "imb": {"benchmark": "PingPong", "message_bytes": 2**20, "ranks": 2},
    "osu": {"benchmark": "allreduce", "message_bytes": 2**20},
    "hpl": {"ns": 20000, "nb": 192, "p": 0, "q": 0, "ranks": 4},
    "hpcc": {"ns": 1000, "ranks": 4},
    "netpipe": {"message_bytes": 2**20},
    "water": {"molecules": 512, "steps": 100, "ranks": 4},
    "pingpong": {"message_bytes": 2**20},
    "ring": {"message_bytes": 16384, "steps": 2000, "ranks": 4},
}


def read(name, output, **requested):
    return get(name).read(output, {}, {**REQUESTED[name], **requested})


def refusal(name, output, **requested):
    with pytest.raises(OutputError) as error:
        read(name, output, **requested)
    return str(error.value)


def each_line(change):
    return lambda text: "".join(f"{change(line)}\n" for line in text.splitlines())


DISGUISES = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "byte-order mark": lambda text: f"\ufeff{text}",
    "indentation": lambda text: "ok: [node1] =>\n  msg:\n" + each_line(lambda line: f"    {line}")(text),
    "tabs around": each_line(lambda line: f"\t{line}\t "),
    "tags of Open MPI": each_line(lambda line: f"[1,0]<stdout>: {line}"),
    "tags of PRRTE": each_line(lambda line: f"[prterun-n1-4711@1,12]<stdout>:{line}"),
    "tags of Hydra": each_line(lambda line: f"[0] {line}"),
    "tags of Slurm": each_line(lambda line: f" 0: {line}"),
    "colours": each_line(lambda line: f"\x1b[32m{line[:9]}\x1b[1m{line[9:]}\x1b[0m"),
    "title of a terminal": lambda text: f"\x1b]0;run\x07{text}",
    "progress bar": lambda text: f"step 1/3\rstep 2/3\rstep 3/3\r{text}",
    "spinner": lambda text: f"working |\b/\b-\b\b\n{text}",
    "noise of launchers": lambda text: f"[n1:12] WARNING: no fabric\n{text}1 more process has sent help message\n2026-11-26 10:00 end\n",
}  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_are_read_as_terminals_and_launchers_pass_them_on(name, disguise):
    plain = read(name, OUTPUTS[name])
    disguised = read(name, DISGUISES[disguise](OUTPUTS[name]))
    assert disguised.figures == plain.figures
    assert (disguised.tables, disguised.ran_with) == (plain.tables, plain.ran_with)


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("disguise", ["CRLF", "tags of Slurm", "colours"])
def test_figures_remember_the_line_that_holds_them(name, disguise):
    output = DISGUISES[disguise](OUTPUTS[name])
    stored = output.split("\n")
    deciding = get(name).decides if get(name).decides != "elapsed_s" else f"{name}.HPL_Tflops"
    figure = read(name, output).figures[deciding]
    (line,) = figure.lines
    digits = "".join(re.findall(r"[1-9]", f"{float(figure):.6g}".partition("e")[0]))[:4]
    assert digits in re.sub(r"\x1b\[\d*m|[.\s0]", "", stored[line.number - 1])


LARGER, OTHER = {"message_bytes": 2**22}, {"message_bytes": 2**10}


@pytest.mark.parametrize(
    ("name", "requested", "words"),
    [
        ("imb", LARGER, "the largest timed size is 1 MiB, not 4 MiB, in line 7"),
        ("imb", OTHER, "the largest timed size is 1 MiB, not 1 KiB"),
        ("imb", {"message_bytes": 0}, "the largest timed size is 1 MiB, not 0 B"),
        ("imb", {"benchmark": "Sendrecv"}, "the table is of PingPong, not Sendrecv, in line 1"),
        ("imb", {"ranks": 8}, "it ran with ranks 2, not 8"),
        ("osu", LARGER, "the largest timed size is 1 MiB, not 4 MiB, in line 6"),
        ("osu", OTHER, "the largest timed size is 1 MiB, not 1 KiB"),
        ("osu", {"benchmark": "reduce"}, "the table is of allreduce, not reduce, in line 1"),
        ("osu", {"benchmark": "latency"}, "the table is of allreduce, not latency"),
        ("hpl", {"ns": 40000}, "it ran with ns 20000, not 40000, in line 3"),
        ("hpl", {"nb": 256}, "it ran with nb 192, not 256"),
        ("hpl", {"p": 1, "q": 4}, "it ran with p 2, not 1"),
        ("hpl", {"ranks": 8}, "it ran with ranks 4, not 8"),
        ("hpcc", {"ns": 2000}, "it ran with ns 1000, not 2000"),
        ("hpcc", {"ranks": 2}, "it ran with ranks 4, not 2"),
        ("netpipe", LARGER, "the largest timed size is 1 048 579 B, not 4 MiB"),
        ("netpipe", {"message_bytes": 1_600_000}, "not 1 600 kB"),
        ("netpipe", {"message_bytes": 2**16}, "not 64 KiB"),
        ("water", {"molecules": 4096}, "it ran with molecules 512, not 4096"),
        ("water", {"steps": 300}, "it ran with steps 100, not 300"),
        ("water", {"ranks": 8}, "it ran with ranks 4, not 8"),
        ("pingpong", LARGER, "the largest timed size is 1 MiB, not 4 MiB"),
        ("pingpong", OTHER, "the largest timed size is 1 MiB, not 1 KiB"),
        ("ring", {"message_bytes": 2**10}, "the largest timed size is 16 KiB, not 1 KiB"),
        ("ring", {"steps": 10}, "it ran with steps 2000, not 10"),
    ],
)
def test_output_of_another_run_than_requested_is_refused(name, requested, words):
    assert words in refusal(name, OUTPUTS[name], **requested).replace("\u202f", " ")


def test_netpipe_ends_at_the_last_step_below_the_requested_size():
    assert read("netpipe", NETPIPE, message_bytes=1_500_000).figures
    cut = NETPIPE[: NETPIPE.index(" 1048573 bytes")].rpartition("\n")[0]
    assert "the largest timed size is 786 435 B, not 1 MiB" in refusal("netpipe", cut).replace("\u202f", " ")
    assert read("netpipe", cut, message_bytes=1_000_000).figures


UNTIMED = """
      2097152           20 time-out.; Time limit (secs_per_sample * msg_sizes_list_len) is over
      4194304 out-of-mem.; needed X=  0.5 GB
"""


def test_sizes_that_a_benchmark_left_out_are_not_those_that_it_timed():
    output = IMB.replace("\n\n# All", f"{UNTIMED}\n# All")
    assert read("imb", output).figures["imb.time_s"] == 200e-6
    assert "the largest timed size is 1 MiB, not 4 MiB" in refusal("imb", output, message_bytes=2**22)


def second_run(text):
    return text + "Setting up Verlet run ...\n     0   450.1\n"


ABORTS = {
    "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n": "a rank called MPI_Abort",
    "= BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n": "a signal ended a rank",
    "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 11\n": "a signal ended a rank",
}
BAD_CHECK = HPL.replace("2.10000000e-03 ...... PASSED", "4.1e+03 ...... FAILED")
WRONG = [
    ("imb", IMB.replace("5242.88         0.00", "5242.88         1.00"), "defects is 1.00, in line 7"),
    ("imb", IMB.replace("512.00         0.00", "512.00         3"), "defects is 3, in line 6"),
    ("osu", OSU.replace("1000        Pass\n1024", "1000        Fail\n1024"), "validation is Fail, in line 4"),
    ("osu", OSU[:-5] + "FAIL\n", "validation is FAIL, in line 6"),
    ("hpl", BAD_CHECK, "residual check failed, in line 6"),
    ("hpl", HPL + BAD_CHECK.replace("20000", "40000"), ""),
    ("hpl", BAD_CHECK.replace("4.1e+03", "-nan").replace("7.9976e+01", "inf"), "residual check failed, in line 6"),
    ("hpl", HPL + "||Ax-b||_oo / ( eps * ||A||_1  * N ) = 99.0 ...... FAILED\n", "residual check failed, in line 7"),
    ("hpl", HPL + "HPL ERROR from process # 0, on line 172 of function HPL_pdtest:\n", "an error, in line 7"),
    ("hpcc", HPCC.replace("Success=1", "Success=0"), "a test failed"),
    ("hpcc", HPCC.replace("Success=1\n", ""), "did not say Success=1"),
    ("hpcc", HPCC.replace("StarSTREAM_Copy=", "StarSTREAM_Copy=nan"), "StarSTREAM_Copy=nan"),
    ("hpcc", HPCC.replace("End of Summary section.", ""), "no summary"),
    ("water", WATER + "ERROR: Lost atoms: original 1536 current 1530 (src/thermo.cpp:494)\n", "an error, in line 84"),
    ("water", WATER + "ERROR on proc 0: Out of range atoms - cannot compute PPPM\n", "an error"),
    ("water", WATER + "Loop time of 9.5 on 4 procs for 100 steps with 1536 atoms\n", "did not reach its end, in line 84"),
    ("water", second_run(WATER), "a further run of LAMMPS did not reach its end, in line 84"),
    ("water", WATER.replace("1536 atoms\n\nPerf", "1530 atoms\n\nPerf"), "molecules 510, not 512"),
    *((name, output + abort, words) for name, output in OUTPUTS.items() for abort, words in ABORTS.items()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "output", "words"), WRONG)
def test_output_that_says_that_it_is_wrong_is_refused_at_its_line(name, output, words):
    if not words:  # the failed result is of another size
        assert read(name, output).figures["hpl.gflops"] == 79.976
        assert "residual check failed, in line 12" in refusal(name, output, ns=40000)
    else:
        assert words in refusal(name, output)


def test_hpl_reads_the_requested_result_of_several():
    two = HPL + HPL.replace("20000", "40000").replace("7.9976e+01", "8.5e+01")
    assert read("hpl", two).figures["hpl.gflops"] == 79.976
    assert read("hpl", two, ns=40000).figures["hpl.gflops"] == 85.0
    in_brackets = HPL.replace("7.9976e+01", "7.9976e+01 ( 1.999e+01)")
    assert read("hpl", in_brackets).figures == read("hpl", HPL).figures


ROWS = {
    "imb": r"^ +\d+ +1000 .*|^ +1048576 .*", "osu": r"^(?:4|1024|1048576) .*", "hpl": r"^WR.*", "netpipe": r"^ +\d+: .*usec$",
    "water": r"^(?:Pair|Comm|Other) .*", "pingpong": r"^ +\d+ +20 .*", "ring": r"^ +4 .*",
}  # fmt: skip


BROKEN = {"nan": "-nan", "inf": "inf", "stars": "******", "glued": "1.5[n1:1]WARNING", "comma": "1,5", "unit": "12s"}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("broken", [*BROKEN, "cut", "longer"])
def test_broken_row_is_refused_and_never_skipped(name, broken):
    rows = list(re.finditer(ROWS[name], OUTPUTS[name], re.MULTILINE))
    assert rows
    for row in rows:
        number = OUTPUTS[name][: row.start()].count("\n") + 1
        last = list(re.finditer(r"[\d.]+(?:e[+-]\d+)?(?=\s|$)", row[0]))[-1]
        before, after = row[0][: last.start()], row[0][last.end() :]
        changed = f"{before}{BROKEN[broken]}{after}" if broken in BROKEN else before.rstrip(" |")
        if broken == "longer":
            changed = row[0] + (" | 7" if name == "water" else " 7.5 7")
        output = OUTPUTS[name][: row.start()] + changed + OUTPUTS[name][row.end() :]
        assert f"in line {number}: " in refusal(name, output), changed


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("imb", "      1048576           40       200.00", "      1048576           40         0.00"),
        ("pingpong", "510.500", "0.000"),
        ("netpipe", "30.73 usec", "0.00 usec"),
        ("water", "Performance: 1.002", "Performance: inf"),
        ("water", "Loop time of 8.62671", "Loop time of nan"),
    ],
)
def test_impossible_time_is_refused_at_its_line(name, old, new):
    assert ", in line " in refusal(name, OUTPUTS[name].replace(old, new))


def test_osu_takes_a_table_of_another_version_or_of_graphics_cards():
    for heading in ("OSU MPI-CUDA Allreduce Latency Test v5.9", "OSU MPI Allreduce Latency Test"):
        assert read("osu", OSU.replace("OSU MPI Allreduce Latency Test v7.3", heading)).figures
    titles = {
        "All-to-All Personalized Exchange Latency": "alltoall",
        "Broadcast Latency": "bcast",
        "Reduce_scatter Latency": "reduce_scatter",
        "Multi Latency": "multi_lat",
        "Bi-Directional Bandwidth": "bibw",
    }
    for title, benchmark in titles.items():
        assert read("osu", OSU.replace("Allreduce Latency", title), benchmark=benchmark).figures
    assert "not allreduce" in refusal("osu", OSU.replace("MPI Allreduce", "MPI Non-blocking Allreduce"))
