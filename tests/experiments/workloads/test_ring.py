"""The ring: its command, its table, and a real run of it."""

import pytest

from experiments.errors import OutputError
from experiments.workloads import get
from experiments.workloads.ring import RingParameters

from .mpirun import run

RING = get("ring")
OUTPUT = """\
# Rankwire ring, 4 ranks on n1, n2, n3, n4
#  ranks         bytes         steps        loop[s]
       4         16384          2000       1.250000
"""


def test_it_writes_its_command_as_an_argument_list():
    parameters = RingParameters(message_bytes="16 KiB", steps=100, warmups=3)
    assert RING.command(parameters, ranks=2) == (
        *("/usr/bin/python3", "-I", "ring.py"),
        *("--message-bytes", "16384", "--steps", "100", "--warmups", "3"),
    )
    assert list(RING.files(parameters, ranks=2)) == ["ring.py"]


def test_it_reads_its_table_as_printed():
    parsed = RING.parse(OUTPUT, {})
    assert parsed.figures == {
        "ring.loop_time_s": 1.25,
        "ring.step_time_s": 625e-6,
        "ring.bandwidth_Bps": pytest.approx(16384 * 2000 / 1.25),
    }
    assert parsed.tables == {"Ring exchange": [{"ranks": 4, "bytes": 16384, "steps": 2000, "loop_s": 1.25}]}


def test_messages_without_bytes_have_no_bandwidth():
    assert "ring.bandwidth_Bps" not in RING.parse(OUTPUT.replace("16384", "    0"), {}).figures


def test_it_refuses_a_run_without_a_table():
    with pytest.raises(OutputError, match="no loop time"):
        RING.parse("# Rankwire ring, 4 ranks on n1\n", {})


def test_it_knows_what_its_fullest_port_carries():
    assert RING.bottleneck_bytes(RingParameters(message_bytes=1000, steps=90, warmups=10), ranks=2) == 100_000


def test_three_ranks_exchange_in_a_real_run(tmp_path):
    parsed = run(RING, RingParameters(message_bytes="1 KiB", steps=50, warmups=2), tmp_path, ranks=3)
    (rows,) = parsed.tables.values()
    assert [(row["ranks"], row["bytes"], row["steps"]) for row in rows] == [(3, 1024, 50)]
    assert parsed.figures["ring.loop_time_s"] > 0
    assert parsed.figures.keys() <= {figure.id for figure in RING.figures}
