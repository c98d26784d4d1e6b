"""Reading what a rank left, whole, cut off or forged."""

import numpy as np
import pytest

from analysis.mpi import layout
from analysis.mpi.record import NotAProfile, read
from tests.analysis.mpi.pages import NS, PLACES, page_of


def test_it_splits_a_window_into_four():
    profile = read(page_of(0, 2, window_s=2.0, calls=[("Send", 10, 0.5, 1000)], off=(0.2, 0.4)))
    assert (profile.window_s, profile.mpi_s, profile.useful_s) == (2.0, 0.5, 1.5)
    assert profile.no_core_s == pytest.approx(0.3)
    assert profile.blocked_s == pytest.approx(0.2)
    assert profile.delay_s is None
    assert profile.end == "finalize"
    assert profile.call_cost_s == pytest.approx(50e-9)


@pytest.mark.parametrize(
    ("delay", "split"),
    [
        ((0.25, 0.05, 0.0), (0.25, 0.05)),
        ((0.9, 0.0, 0.0), (0.3, 0.0)),
        ((0.2, 0.1, 0.1), (0.25, 0.15)),
        ((0.0, 0.0, 9.0), (0.3, 0.2)),
    ],
)
def test_run_delay_is_a_part_of_the_time_on_no_processor(delay, split):
    profile = read(page_of(0, 2, window_s=2.0, calls=[("Send", 10, 0.5, 1000)], off=(0.2, 0.4), delay=delay))
    assert profile.delay_s == pytest.approx(split)


def test_it_counts_the_call_in_which_a_rank_was_killed():
    killed = page_of(1, 2, window_s=2.0, ended=0, inside=PLACES["Recv"] + 1, entered=6 * NS, last=6 * NS)
    profile = read(killed, killed_ns=9 * NS)
    assert (profile.end, profile.inside) == ("killed", "Recv")
    assert profile.window_s == pytest.approx(4.0)
    assert profile.mpi_s == pytest.approx(3.0)


def test_it_leaves_out_what_the_program_did_not_want_counted():
    assert read(page_of(0, 1, window_s=2.0, paused=NS)).window_s == pytest.approx(1.0)


def test_it_keeps_the_last_calls_of_a_long_trace_in_their_order():
    events = [(5 * NS + number, 5 * NS + number + 1, 0, 0, number, 0) for number in range(layout.RING + 3)]
    trace = read(page_of(0, 1, window_s=2.0, trace=events)).trace
    assert trace.left_out == 3
    assert np.all(np.diff(trace.rows["began"].astype(np.int64)) >= 0)
    assert trace.rows["bytes"][[0, -1]].tolist() == [3, layout.RING + 2]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"magic": 0}, "before MPI_Init had ended"),
        ({"table": 1}, "another version"),
        ({"peers": 1 << 40}, "do not fit"),
        ({"bins_shown": 1 << 63}, "too long"),
        ({"real_offset_ns": 1 << 63}, "do not agree"),
        ({"rank": 7}, "do not fit"),
    ],
)
def test_it_refuses_what_no_shim_wrote(changed, why):
    with pytest.raises(NotAProfile, match=why):
        read(page_of(**{"rank": 0, "size": 2, "window_s": 1.0, **changed}))


def test_it_refuses_a_file_that_was_cut_off():
    with pytest.raises(NotAProfile, match="too short"):
        read(page_of(0, 2, window_s=1.0)[:1000])


def test_it_refuses_clocks_that_do_not_advance():
    data = bytearray(page_of(0, 1, window_s=1.0))
    offset = layout.PAGE_TYPE.fields["clock"][1]
    data[offset + 16 : offset + 32] = data[offset : offset + 16]
    with pytest.raises(NotAProfile, match="do not advance"):
        read(bytes(data))
