"""OSU micro-benchmarks: commands, and tables of versions 3 to 7."""

import pytest

from experiments import workloads
from experiments.errors import OutputError
from experiments.workloads import Mismatch, get
from experiments.workloads.osu import OsuParameters

OSU = get("osu")
OLD_LATENCY = """\
# OSU MPI Latency Test v5.6.3
# Size          Latency (us)
0                       1.50
1                       2.00
1024                    4.00
1048576              1000.00
"""
NEW_LATENCY = """\
some launcher said something
# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.00
1048576              1000.00
"""
BANDWIDTH = """\
# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       3.25
1048576             12000.50
4194304             11000.25
"""
RATES = """\
# OSU MPI Multiple Bandwidth / Message Rate Test v5.7
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
1                       6.00        6000000.25
4096                 9000.00        2197265.50
"""
FULL = """\
# OSU MPI Allreduce Latency Test v7.4
# Datatype: MPI_INT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.50              1.50              3.50          10
1048576               104.25            104.00            105.50          10
"""
BARRIER = """\

# OSU MPI Barrier Latency Test v5.8
# Avg Latency(us)
             8.25
"""
OVERLAP = """\
# OSU MPI Non-blocking Allreduce Latency Test v5.6.3
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
4                       9.00              5.00              4.50             22.00
"""


@pytest.mark.parametrize("output", [OLD_LATENCY, NEW_LATENCY], ids=["old", "new"])
def test_a_ping_pong_gives_times_and_a_curve(output):
    parsed = OSU.parse(output, {})
    assert parsed.figures["osu.time_s"] == parsed.figures["osu.transfer_time_s"] == 1e-3
    assert parsed.figures["osu.bandwidth_Bps"] == pytest.approx(1048576 / 1e-3)
    assert OSU.curve(parsed.tables)[-1] == (1048576, pytest.approx(1e-3))
    assert list(parsed.tables) == ["OSU MPI Latency"]


def test_bandwidths_are_in_bytes_of_a_million_a_megabyte():
    figures = OSU.parse(BANDWIDTH, {}).figures
    assert figures == {"osu.streamed_Bps": 11000.25e6, "osu.streamed_max_Bps": 12000.5e6}


def test_message_rates_are_read_with_the_bandwidth():
    parsed = OSU.parse(RATES, {})
    assert parsed.figures["osu.messages_per_s"] == 6000000.25
    assert parsed.figures["osu.streamed_Bps"] == 9000e6
    assert parsed.tables["OSU MPI Multiple Bandwidth / Message Rate"][0] == {
        "bytes": 1, "Mbytes_per_s": 6.0, "messages_per_s": 6000000.25,
    }  # fmt: skip


def test_collectives_give_the_slowest_and_the_fastest_rank():
    parsed = OSU.parse(FULL, {})
    assert parsed.figures == {"osu.time_s": 104.25e-6, "osu.time_min_s": 104e-6, "osu.time_max_s": 105.5e-6}
    assert OSU.curve(parsed.tables) == []


def test_a_barrier_has_no_size():
    parsed = OSU.parse(BARRIER, {})
    assert parsed.figures == {"osu.time_s": 8.25e-6}
    assert parsed.tables == {"OSU MPI Barrier Latency": [{"t_avg_usec": 8.25}]}


def test_overlap_is_kept_and_the_whole_is_the_time():
    parsed = OSU.parse(OVERLAP, {})
    assert parsed.figures == {"osu.time_s": 9e-6}
    assert parsed.tables["OSU MPI Non-blocking Allreduce Latency"][0]["overlap_percent"] == 22.0


def test_several_tables_in_one_file_keep_their_names_and_the_requested_one_counts():
    output = OLD_LATENCY + BANDWIDTH + NEW_LATENCY
    parsed = OSU.parse(output, {})
    assert list(parsed.tables) == ["OSU MPI Latency", "OSU MPI Bandwidth", "OSU MPI Latency, 3"]
    assert parsed.figures["osu.latency_s"] == 1.5e-6
    assert "osu.streamed_Bps" not in parsed.figures, "it is of another largest size"
    assert OSU.read(output, {}, {"benchmark": "bw", "message_bytes": 2**22}).figures["osu.streamed_Bps"] == 11000.25e6
    together = OSU.parse(OLD_LATENCY + BANDWIDTH.replace("4194304             11000.25\n", ""), {})
    assert (together.figures["osu.latency_s"], together.figures["osu.streamed_Bps"]) == (1.5e-6, 12000.5e6)


@pytest.mark.parametrize("output", ["", "# OSU MPI Latency Test v7.5\n", FULL.replace("104.25", ""), "1 2\n3 4\n"])
def test_it_refuses_what_is_no_whole_table(output):
    with pytest.raises(OutputError):
        OSU.parse(output, {})


def test_it_asks_for_one_size_or_for_all():
    assert OSU.command(OsuParameters(message_bytes=1024, repetitions=50), ranks=2) == (
        *("osu_latency", "-m", "1024:1024", "-i", "50"),
    )
    every = OsuParameters(benchmark="allreduce", message_bytes=1024, all_sizes=True)
    assert OSU.command(every, ranks=4) == ("osu_allreduce", "-m", "1:1024", "-i", "100", "-f")
    assert OSU.command(OsuParameters(benchmark="barrier"), ranks=4) == ("osu_barrier", "-i", "100", "-f")


@pytest.mark.parametrize(
    ("benchmark", "ranks", "words"),
    [("barrier", 1, "at least two"), ("bw", 4, "two ranks exactly"), ("mbw_mr", 3, "an even number")],
)
def test_it_refuses_ranks_that_the_program_would_refuse(benchmark, ranks, words):
    with pytest.raises(Mismatch, match=words):
        OSU.check(OsuParameters(benchmark=benchmark), ranks=ranks)


def test_programs_of_a_directory_are_for_maintainers():
    own = {"benchmark": "bcast", "directory": "/opt/osu/collective"}
    workload = workloads.get("osu", own)
    assert workload.command(OsuParameters(**own), ranks=2)[0] == "/opt/osu/collective/osu_bcast"
    assert workload.restricted
    assert not OSU.restricted
    with pytest.raises(ValueError, match="directory"):
        OsuParameters(directory="/opt/$X")
