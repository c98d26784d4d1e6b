"""NetPIPE: its command, its two recorded outputs, and a real run of it."""

import pytest

from experiments.errors import OutputError
from experiments.workloads import Mismatch, get
from experiments.workloads.netpipe import NetPipeParameters

from .mpirun import run
from .samples import sample

NETPIPE = get("netpipe")
MBPS_BITS = 2**20  # NetPIPE 3's "Mbps": 8 n / t / 1 048 576, as its printed times and rates show
FILE, SCREEN = sample("netpipe-np.out"), sample("netpipe-stdout.txt")


def rows_of(parsed):
    (rows,) = parsed.tables.values()
    return rows


def test_it_reads_the_result_file_to_the_numbers_that_it_holds():
    rows = rows_of(NETPIPE.parse("", {"np.out": FILE}))
    again = "".join(f"{row['bytes']:8d} {row['Mbps']:f}   {row['time_s']:.8f}\n" for row in rows)
    assert again == FILE


def test_it_reads_the_screen_when_there_is_no_file():
    rows = rows_of(NETPIPE.parse(SCREEN, {}))
    again = [
        f"{number:3d}: {row['bytes']:7d} bytes {row['repeats']:6d} times --> {row['Mbps']:9.2f} Mbps"
        f" in {row['time_s'] * 1e6:10.2f} usec"
        for number, row in enumerate(rows)
    ]
    assert again == [line for line in SCREEN.splitlines() if "-->" in line]


def test_it_knows_its_rates_to_be_powers_of_two():
    for row in rows_of(NETPIPE.parse("", {"np.out": FILE})):
        assert row["Mbps"] * MBPS_BITS == pytest.approx(8 * row["bytes"] / row["time_s"], rel=1e-3)


def test_it_gives_its_curve_as_figures():
    figures = NETPIPE.parse("", {"np.out": FILE}).figures
    assert figures["netpipe.latency_s"] == 30.73e-6
    assert figures["netpipe.transfer_time_s"] == 0.00751612
    assert figures["netpipe.bandwidth_max_Bps"] == pytest.approx(1784.954506 * MBPS_BITS / 8, rel=1e-5)


def test_it_refuses_a_run_without_results():
    with pytest.raises(OutputError, match=r"np\.out"):
        NETPIPE.parse("Sending output to np.out\n", {"np.out": ""})


def test_it_writes_its_command_as_an_argument_list():
    parameters = NetPipeParameters(message_bytes="64 KiB", perturbation=0, repeats=20)
    assert NETPIPE.command(parameters, ranks=2) == (
        *("NPopenmpi", "-l", "1", "-u", "65536", "-p", "0", "-n", "20", "-o", "np.out"),
    )


@pytest.mark.parametrize(
    ("parameters", "ranks", "at"),
    [(NetPipeParameters(), 4, "hosts"), (NetPipeParameters(first_bytes="2 MiB"), 2, "first_bytes")],
)
def test_it_refuses_what_does_not_go_together_at_the_parameter(parameters, ranks, at):
    with pytest.raises(Mismatch) as refused:
        NETPIPE.check(parameters, ranks=ranks)
    assert refused.value.parameter == at


def test_it_measures_a_real_run(tmp_path):
    parsed = run(NETPIPE, NetPipeParameters(message_bytes="64 KiB", perturbation=0, repeats=20), tmp_path)
    sizes = [row["bytes"] for row in rows_of(parsed)]
    assert sizes[0] == 1
    assert sizes == sorted(sizes)
    assert 32768 < sizes[-1] <= 65536
    assert parsed.figures["netpipe.latency_s"] > 0
    assert parsed.figures["netpipe.bandwidth_max_Bps"] > 0
