"""The project's own ping-pong: its command, its table, and real runs of it."""

import pytest

from experiments.errors import OutputError
from experiments.workloads import get
from experiments.workloads.pingpong import PingPongParameters, message_sizes

from .mpirun import run

PINGPONG = get("pingpong")
OUTPUT = """\
# Rankwire ping-pong, ranks 0 and 1 of 2 on n1 and n2
# t is half of a round trip; Mbytes/s is bytes / t, 1 MB = 1 000 000 bytes
#      bytes  #repetitions   t_min[usec]  t_med[usec]       t[usec]      Mbytes/s
            0            20         8.371         8.622         9.596         0.000
         1024            20         8.317         8.435         8.966       114.209
      1048576            20       500.125       510.500       520.250      2015.523
"""


def test_it_reads_a_size_with_a_unit_in_bytes():
    sizes = [PingPongParameters(message_bytes=text).message_bytes for text in ("4 MB", "4 MiB", "16 kB", 5)]
    assert sizes == [4_000_000, 4_194_304, 16_000, 5]


def test_it_measures_a_size_alone_or_a_curve_up_to_it():
    assert message_sizes(PingPongParameters(message_bytes=6)) == [6]
    assert message_sizes(PingPongParameters(message_bytes=6, all_sizes=True)) == [0, 1, 2, 4, 6]
    assert message_sizes(PingPongParameters(message_bytes=4, all_sizes=True)) == [0, 1, 2, 4]


def test_it_writes_its_command_as_an_argument_list():
    parameters = PingPongParameters(message_bytes="16 MiB", repetitions=5, warmups=1, time_per_size="2 s")
    assert PINGPONG.command(parameters, ranks=2) == (
        *("/usr/bin/python3", "-I", "pingpong.py", "--sizes", "16777216"),
        *("--repetitions", "5", "--warmups", "1", "--time-per-size", "2"),
    )
    assert list(PINGPONG.files(parameters, ranks=2)) == ["pingpong.py"]


def test_it_reads_its_table_as_printed():
    parsed = PINGPONG.parse(OUTPUT, {})
    assert parsed.figures["pingpong.transfer_time_s"] == 520.25e-6
    assert parsed.figures["pingpong.transfer_time_median_s"] == 510.5e-6
    assert parsed.figures["pingpong.transfer_time_min_s"] == 500.125e-6
    assert parsed.figures["pingpong.bandwidth_Bps"] == pytest.approx(1048576 / 520.25e-6)
    assert parsed.figures["pingpong.latency_s"] == 8.622e-6
    assert parsed.figures["pingpong.fit_latency_s"] == pytest.approx(8.2e-6, rel=0.1)
    assert parsed.figures["pingpong.fit_bandwidth_Bps"] == pytest.approx(2.1e9, rel=0.1)
    (rows,) = parsed.tables.values()
    assert rows[1] == {
        "bytes": 1024,
        "repetitions": 20,
        "t_min_usec": 8.317,
        "t_median_usec": 8.435,
        "t_usec": 8.966,
        "Mbytes_per_s": 114.209,
    }


def test_it_refuses_a_run_without_a_table():
    with pytest.raises(OutputError, match="no transfer time"):
        PINGPONG.parse("# Rankwire ping-pong\n", {})


def test_it_measures_one_size_in_a_real_run(tmp_path):
    parsed = run(PINGPONG, PingPongParameters(message_bytes="64 MiB", repetitions=2, warmups=1), tmp_path)
    times = [parsed.figures[f"pingpong.transfer_time_{name}s"] for name in ("min_", "median_", "")]
    assert 0 < times[0] <= times[1]
    (rows,) = parsed.tables.values()
    assert [(row["bytes"], row["repetitions"]) for row in rows] == [(64 * 2**20, 2)]
    assert "pingpong.latency_s" not in parsed.figures, "one size is no curve"


def test_it_measures_a_real_run_with_waiting_ranks_size_by_size(tmp_path):
    parameters = PingPongParameters(message_bytes="1 MiB", all_sizes=True, repetitions=10)
    parsed = run(PINGPONG, parameters, tmp_path, ranks=4)
    (rows,) = parsed.tables.values()
    assert [row["bytes"] for row in rows] == [0, *(2**n for n in range(21))]
    assert all(0 < row["t_min_usec"] <= row["t_median_usec"] for row in rows)
    assert {
        f"pingpong.{name}" for name in ("transfer_time_s", "latency_s", "bandwidth_max_Bps")
    } <= parsed.figures.keys()
    assert parsed.figures.keys() <= {figure.id for figure in PINGPONG.figures}


def test_it_keeps_a_time_limit_with_one_repetition_at_least(tmp_path):
    parameters = PingPongParameters(message_bytes="1 MiB", repetitions=100_000, warmups=1000, time_per_size="1 ms")
    (rows,) = run(PINGPONG, parameters, tmp_path).tables.values()
    assert 1 <= rows[0]["repetitions"] < 100_000
