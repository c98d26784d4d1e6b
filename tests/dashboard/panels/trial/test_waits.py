"""Causes of waits on a trial's page."""

import json
from pathlib import Path

import pytest

from dashboard.panels.trial.waits import waits_table
from tests.dashboard.panels.trial.profiles import with_profile
from tests.dashboard.texts import plain_text, text_of
from tests.experiments.factories import experiment, finished
from tests.words import plain

RECORDED = json.loads(Path("tests/data/mpi-profile-imbalance.json").read_text())["profile"]
OLD_CAUSES = ["late_sender", "line_rate", "under_way", "retransmission", "receiver", "unknown"]
CAUSES = [*OLD_CAUSES[:4], "closed_window", "receiver", "no_core", "unknown"]


def profile_with(pairs, **reported):
    ranks = [{"rank": rank, "host": f"n{rank + 1}", "window_s": 10.0} for rank in range(4)]
    waits = {"causes": CAUSES, "long_wait_s": 5e-5, "pairs": pairs, "pairs_left_out": 0, "unknown_s": {}}
    return {"ranks": ranks, "waits": {**waits, **reported}}


def sentence(*pairs):
    return plain(waits_table(profile_with(list(pairs)))["sentence"])


def test_it_says_for_whom_the_rank_that_waits_longest_waits():
    reported = sentence([2, 3, 9, 3.77, 0, 0, 0.33, 0, 0, 0, 0], [0, 1, 9, 0, 3.0, *[0] * 6])
    assert reported == "Rank 3 waits 41 % of its time, 92 % of it because rank 2 sends late."


def test_it_adds_up_what_many_senders_cost():
    late, full = [1.0, *[0] * 7], [0, 1.6, *[0] * 6]
    reported = sentence([0, 3, 9, *late], [1, 3, 9, 1.5, *late[1:]], [2, 3, 9, *full])
    assert reported == "Rank 3 waits 41 % of its time, 61 % of it is “Late sender”: 37 % because rank 1 sends late."


def test_a_small_share_is_shown_without_powers_of_ten():
    table = waits_table(profile_with([[0, 1, 9, 5.0, 0, 0, 1e-7, 0, 0, 0, 0]]))
    assert [plain(share) for share in table["rows"][0]["shares"][:4]] == ["100 %", "–", "–", "< 0.01 %"]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("line_rate", "because the link from rank 0 is full"),
        ("under_way", "for data of rank 0 in transit"),
        ("retransmission", "for lost packets of rank 0"),
        ("closed_window", "because the receiver's window was closed between it and rank 0"),
        ("no_core", "because it or rank 0 had no CPU core"),
        ("receiver", "after the last packet of rank 0 arrived"),
        ("unknown", "for unexplained reasons"),
    ],
)
def test_it_names_the_cause(cause, words):
    assert sentence([0, 1, 1, *(2.0 * (row == cause) for row in CAUSES)]).endswith(f"100 % of it {words}.")


def test_it_names_no_sender_if_it_is_unknown():
    assert "for unexplained reasons" in sentence([-1, 1, 1, *[0] * 7, 2.0])


def test_it_adds_up_what_it_does_not_list():
    table = waits_table(profile_with([[0, 1, 1, *[0] * 7, 1.0] for _ in range(15)]))
    assert [row["name"] for row in table["rows"][-2:]] == ["3 other pairs", "All pairs"]
    assert table["rows"][-1]["waits"] == "15"


def test_there_is_nothing_without_a_trace():
    assert waits_table({"ranks": []}) is None


def test_the_page_shows_each_pair_with_its_causes_and_reasons(page, library):
    experiment()
    reported = profile_with([[0, 1, 12, 1.5, 0.25, 0, 0, 0, 0, 0, 0.25]], unknown_s={"the cause is unknown": 0.25})[
        "waits"
    ]
    trial = with_profile(finished(), {**RECORDED, "waits": reported})
    words = plain_text(text_of(page.get(trial.get_absolute_url())))
    assert "Waits explained by their packets" in words
    assert "0 → 1" in words
    assert "12 2 s 75 % 12.5 % – – – – – 12.5 %" in words
    assert "Not explained, 250 ms: the cause is unknown." in words


def test_it_separates_transfers_of_collectives_from_unknown_waits():
    table = waits_table(profile_with([[-2, 1, 3, 0, 0, 2.0, *[0] * 5]]))
    assert table["rows"][0]["name"] == "all → 1"
    assert plain(table["sentence"]).endswith("100 % of it in collectives after all packets arrived.")
    table = sentence([-2, 1, 3, *[0] * 6, 2.0, 0])
    assert table.endswith("100 % of it because it had no CPU core in collectives after all packets arrived.")


def test_it_shows_what_was_kept_when_there_were_fewer_causes():
    table = waits_table(profile_with([[0, 1, 1, 0, 0, 0, 1.0, 0, 1.0]], causes=OLD_CAUSES))
    assert [cause["label"] for cause in table["causes"]][3:] == ["Lost packets", "After last packet", "Not explained"]
    assert plain(table["rows"][0]["shares"][3]) == "50 %"
