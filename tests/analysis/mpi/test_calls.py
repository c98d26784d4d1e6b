"""The calls of a trial's ranks: collected, kept as bytes and read again."""

import json

import numpy as np
import pytest
import zstandard

from analysis.mpi.calls import CALL, NO_RANK, NotATrace, calls_of, from_bytes, members_of, to_bytes
from analysis.mpi.layout import NOT_KNOWN, table_number
from analysis.mpi.record import read
from tests.analysis.mpi.pages import PLACES, page_of

NS = 1_000_000_000
OFFSET = 1_700_000_000 * NS


def profile_of(rank, events, **words):
    """Return the profile of (name, peer, bytes, start, end), s.

    Times are from the start of the window, which is at 5 s of the host's clock.
    """
    trace = [
        (
            5 * NS + int(start * NS),
            5 * NS + int(end * NS),
            PLACES[name],
            peer % 2**64,
            carried,
            7 << 24 | 2,
            -2 % 2**64,
            3,
            NOT_KNOWN,
        )
        for name, peer, carried, start, end in events
    ]
    return read(page_of(rank, 2, window_s=1.0, trace=trace, real_offset_ns=OFFSET, **words))


@pytest.fixture
def profiles():
    sent = [("Send", 1, 800, 0.1, 0.2), ("Barrier", -1, 0, 0.3, 0.5)]
    received = [("Recv", 0, 0, 0.05, 0.21), ("Wait", -1, 0, 0.25, 0.26), ("Barrier", -1, 0, 0.4, 0.5)]
    return [profile_of(1, received), profile_of(0, sent)]


def test_it_orders_calls_by_rank_on_the_clock_of_captures(profiles):
    calls = calls_of(profiles)
    assert calls.rows["rank"].tolist() == [0, 0, 1, 1, 1]
    first = calls.of(0)[0]
    assert (first["peer"], first["bytes"], first["function"]) == (1, 800, PLACES["Send"])
    assert first["began_ns"] == pytest.approx(OFFSET + 5.1 * NS, abs=1e3)
    assert calls.of(1)["peer"].tolist() == [0, -1, -1]
    assert (first["no_core_before_ns"], first["no_core_within_ns"]) == (3, -1)
    assert (members_of(int(first["comm"])), first["source"]) == (2, NO_RANK)
    assert calls.left_out == {0: 0, 1: 0}


def test_it_gives_back_what_it_kept(profiles):
    calls = calls_of(profiles)
    again = from_bytes(to_bytes(calls))
    assert np.array_equal(again.rows, calls.rows)
    assert again.left_out == calls.left_out


def test_it_reads_what_was_kept_before_its_columns_were_named(profiles):
    calls = calls_of(profiles)
    line, _, columns = zstandard.decompress(to_bytes(calls)).partition(b"\n")
    header = {**json.loads(line), "format": 1}
    first = header.pop("columns")[:6]
    old = columns[: len(calls.rows) * sum(CALL[name].itemsize for name in first)]
    again = from_bytes(zstandard.compress(json.dumps(header).encode() + b"\n" + old))
    assert np.array_equal(again.rows[first], calls.rows[first])
    assert set(again.rows["no_core_before_ns"].tolist()) == {-1}


def test_each_rank_keeps_the_last_of_an_even_share_and_reports_how_many_are_gone(profiles):
    calls = calls_of(profiles, most=4)
    assert calls.rows["rank"].tolist() == [0, 0, 1, 1]
    assert calls.of(1)["function"].tolist() == [PLACES["Wait"], PLACES["Barrier"]]
    assert calls.left_out == {0: 0, 1: 1}


def test_there_are_no_calls_where_a_rank_kept_no_trace(profiles):
    assert calls_of([profiles[0], read(page_of(0, 2, window_s=1.0))]) is None


def line_of(**header):
    return zstandard.compress(json.dumps(header).encode() + b"\n")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no frame", "damaged"),
        (line_of(format=1), "damaged"),
        (line_of(format=3, rows=0, left_out={}), "another version"),
        (zstandard.compress(b"[]\n"), "damaged"),
        (zstandard.compress(b"[" * 100_000 + b"\n"), "damaged"),
        # 11 kB of them, which became 122 MB, took more than 2 GB.
        (zstandard.compress(b"[" + b"[]," * 400_000 + b"0]\n"), "first line is too long"),
        (line_of(format=2, table=table_number(), rows=0, left_out={}, columns=["rank", "rank"]), "another version"),
    ],
)
def test_it_refuses_what_is_no_trace(data, reason):
    with pytest.raises(NotATrace, match=reason):
        from_bytes(data)


def test_it_refuses_columns_of_another_length(profiles):
    whole = zstandard.decompress(to_bytes(calls_of(profiles)))
    with pytest.raises(NotATrace, match="length"):
        from_bytes(zstandard.compress(whole[:-1]))


def test_ranks_and_communicators_that_a_program_invented_are_unknown(profiles, monkeypatch):
    """Each of them costs the explanation of waits its time: 20 000 took 42 s."""
    monkeypatch.setattr("analysis.mpi.calls.MOST_COMMUNICATORS", 2)
    sender, receiver = profiles[1], profiles[0]
    sender.trace.rows["peer"], sender.trace.rows["source"] = [1, 7], [1 << 30, 1]
    receiver.trace.rows["comm"] = [5, 6, 7 << 24 | 2]
    sender.trace.rows["comm"] = [5, 7 << 24 | 2]
    calls = calls_of(profiles)
    assert (calls.of(0)["peer"].tolist(), calls.of(0)["source"].tolist()) == ([1, -1], [-1, 1])
    assert calls.of(1)["comm"].tolist() == [5, 0, 7 << 24 | 2]
