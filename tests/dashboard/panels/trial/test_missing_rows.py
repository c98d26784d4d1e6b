"""Metrics that a trial lacks: one row for a reason that many share."""

from dashboard.panels.trial.metric_rows import missing_rows

REASON = "the experiment keeps no calls (profile: trace)"


def test_metrics_with_one_reason_share_a_row_that_names_all_of_them():
    names = ("mpi_wait_share", "mpi_wait_late_sender_share", "mpi_waiting_rank")
    (row,) = missing_rows(dict.fromkeys(names, REASON))
    assert (row["label"], row["reason"]) == ("Long waits and 2 more", REASON)
    assert row["all"].startswith("Long waits, Waits for a late sender, ")


def test_a_few_stand_for_themselves():
    rows = missing_rows({"mpi_wait_late_sender_share": REASON, "mpi_wait_share": REASON, "packets": "no capture"})
    assert {(row["label"], row["all"]) for row in rows} >= {("Long waits", ""), ("Waits for a late sender", "")}
    assert len(rows) == 3


def test_names_that_the_catalogue_no_longer_has_are_left_out():
    assert missing_rows({"no_such_metric": "why"}) == []
