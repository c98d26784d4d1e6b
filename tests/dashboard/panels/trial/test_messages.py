"""MPI messages of a trial's page: time over the run, requested and sent bytes."""

import pytest

from dashboard.charts.ranks import MOST_RANKS, inside_over_time, requested_matrix
from dashboard.panels.trial.inside_mpi import messages_by_pair
from tests.words import plain


def test_time_over_the_run_is_in_steps_of_the_coarsest_rank():
    figure = inside_over_time(
        [{"rank": 0, "bin_s": 0.5, "shares": [0.2, 0.4, 1.0]}, {"rank": 1, "bin_s": 1.0, "shares": [0.5, 0.0]}]
    )
    lowest, highest, mean = figure["data"]
    assert mean["y"] == pytest.approx([40, 25])
    assert (lowest["y"], highest["y"]) == ([pytest.approx(30), 0], [50, pytest.approx(50)])
    assert mean["x"] == [0, 1]


def test_without_ranks_there_is_nothing_to_draw():
    assert inside_over_time([])["data"] == []
    assert requested_matrix([])["data"] == []


def test_the_matrix_keeps_the_ranks_that_sent_most():
    pairs = [[rank, rank + 1, 1, 1000 + rank] for rank in range(0, 2 * MOST_RANKS, 2)]
    (trace,) = requested_matrix(pairs)["data"]
    assert len(trace["y"]) == MOST_RANKS
    assert trace["y"][-1] == str(2 * MOST_RANKS - 1)
    assert "0" not in trace["y"]


def test_pairs_have_bytes_on_the_network_if_handshakes_identify_ranks():
    ranks = [{"rank": rank, "host": host} for rank, host in enumerate(("n1", "n2", "n1"))]
    table = {"ranks": ranks, "pairs": [[0, 1, 4, 40_000], [0, 2, 1, 10], [1, 2, 1, 0]], "pairs_left_out": 0}
    wire = {"matrices": {"ranks": {"labels": [0, 1], "wire_bytes": [[0, 50_000], [300, 0]]}}}
    output = messages_by_pair(table, wire)
    assert [(row["name"], plain(row["bytes"]), plain(row["wire"])) for row in output["rows"]] == [
        ("0 → 1", "40 kB", "50 kB"),
        ("0 → 2", "10 B", "one host"),
        ("1 → 2", "–", "–"),
    ]
    assert (output["has_wire"], messages_by_pair(table, None)["has_wire"]) == (True, False)
