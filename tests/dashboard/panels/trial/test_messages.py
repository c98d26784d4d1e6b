"""What a program asked MPI for, on a trial's page: time over the run, and messages beside the wire."""

import json
from pathlib import Path

import pytest

from dashboard.charts.ranks_asked import MOST_RANKS, asked_matrix, inside_over_time
from dashboard.panels.trial.messages import messages_by_pair
from tests.dashboard.panels.trial.profiles import with_analysis, with_profile
from tests.dashboard.texts import plain_text, text_of
from tests.experiments.factories import experiment, finished
from tests.words import plain

RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]


def test_the_page_shows_the_run_the_matrix_and_the_pairs(page, library):
    experiment()
    words = plain_text(text_of(page.get(with_profile(finished(), RECORDED).get_absolute_url())))
    assert "Time inside MPI over the run" in words
    assert "Asked for, rank to rank" in words
    assert "1 → 0 n2 → n1 20 20 kB" in words


def test_time_over_the_run_is_in_steps_of_the_coarsest_rank():
    figure = inside_over_time(
        [{"rank": 0, "bin_s": 0.5, "shares": [0.2, 0.4, 1.0]}, {"rank": 1, "bin_s": 1.0, "shares": [0.5, 0.0]}]
    )
    highest, lowest, mean = figure["data"]
    assert mean["y"] == pytest.approx([40, 25])
    assert (lowest["y"], highest["y"]) == ([pytest.approx(30), 0], [50, pytest.approx(50)])
    assert mean["x"] == [0, 1]


def test_without_ranks_there_is_nothing_to_draw():
    assert inside_over_time([])["data"] == []
    assert asked_matrix([])["data"] == []


def test_the_matrix_keeps_the_ranks_that_sent_most():
    pairs = [[rank, rank + 1, 1, 1000 + rank] for rank in range(0, 2 * MOST_RANKS, 2)]
    (trace,) = asked_matrix(pairs)["data"]
    assert len(trace["y"]) == MOST_RANKS
    assert trace["y"][-1] == str(2 * MOST_RANKS - 1)
    assert "0" not in trace["y"]


def test_pairs_stand_beside_the_wire_where_its_handshakes_told_the_ranks():
    ranks = [{"rank": rank, "host": host} for rank, host in enumerate(("n1", "n2", "n1"))]
    kept = {"ranks": ranks, "pairs": [[0, 1, 4, 40_000], [0, 2, 1, 10], [1, 2, 1, 0]], "pairs_left_out": 0}
    wire = {"matrices": {"ranks": {"labels": [0, 1], "wire_bytes": [[0, 50_000], [300, 0]]}}}
    shown = messages_by_pair(kept, wire)
    assert [(row["name"], plain(row["bytes"]), plain(row["wire"])) for row in shown["rows"]] == [
        ("0 → 1", "40 kB", "50 kB"),
        ("0 → 2", "10 B", "one host"),
        ("1 → 2", "–", "–"),
    ]
    assert (shown["has_wire"], messages_by_pair(kept, None)["has_wire"]) == (True, False)


@pytest.mark.parametrize("why", [None, "the library does not say who speaks, and several ranks ran on 10.77.0.1"])
def test_the_page_says_why_some_ranks_are_known_by_host_alone(page, library, why):
    """Of MPICH with several ranks on a host: between hosts with one rank the wire is told, the matrix is that of hosts."""
    matrices = {
        "hosts": {"labels": ["10.77.0.1", "10.77.0.2", "10.77.0.3"], "wire_bytes": [[0, 9, 0], [0, 0, 4], [0, 0, 0]]},
        "ranks": {"labels": [2, 3], "wire_bytes": [[0, 4], [0, 0]], "by_host_alone": why},
    }
    experiment()
    trial = with_profile(finished(), RECORDED)
    with_analysis(trial, {"series": {"wire_bytes": [13], "bin_s": 1.0}, "matrices": matrices})
    words = plain_text(text_of(page.get(trial.get_absolute_url())))
    assert ("Host traffic" in words, "Rank traffic" in words) == (why is not None, why is None)
    assert (f"By host: {why}." in words) == (why is not None)
    assert (f"On the wire some ranks are known by host alone: {why}." in words) == (why is not None)


def test_pairs_that_are_not_listed_are_counted():
    kept = {"ranks": [], "pairs": [[0, to, 1, 1] for to in range(1, 16)], "pairs_left_out": 2}
    assert messages_by_pair(kept, None)["others"] == 5
