"""Metrics and tables of explained waits."""

from dataclasses import replace

import pytest

from analysis.catalogue import METRICS
from analysis.mpi import wait_tables
from analysis.mpi.wait_sums import PairWaits, Waits

WAITS = Waits(
    (
        PairWaits(2, 3, 10, (3.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        PairWaits(1, 3, 5, (0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)),
        PairWaits(-1, 0, 1, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
    ),
    {"why": 1.0},
)


def test_it_names_the_rank_that_waits_longest_and_whom_it_waits_for():
    result, missing = wait_tables.metrics(WAITS, dict.fromkeys(range(4), 10.0))
    assert not missing
    assert set(result) == set(wait_tables.METRICS) <= set(METRICS)
    assert result["mpi_wait_share"] == pytest.approx(5 / 40)
    assert result["mpi_wait_late_sender_share"] == pytest.approx(0.6)
    assert sum(result[name] for name in wait_tables.SHARE_METRICS.values()) == pytest.approx(1.0)
    assert (result["mpi_waiting_rank"], result["mpi_waited_for_rank"]) == (3, 2)
    assert result["mpi_waiting_rank_share"] == pytest.approx(0.4)
    assert result["mpi_waited_for_share"] == pytest.approx(0.75)


def test_it_says_why_there_are_no_shares_where_no_rank_waited():
    result, missing = wait_tables.metrics(Waits((), {}), {0: 1.0})
    assert result == {"mpi_wait_share": 0.0}
    assert set(missing) == set(wait_tables.METRICS) - {"mpi_wait_share"}


def test_no_rank_is_waited_for_where_no_sender_was_late():
    lost = Waits((PairWaits(0, 1, 1, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0)),), {})
    result, missing = wait_tables.metrics(lost, {0: 2.0, 1: 2.0})
    assert result["mpi_waiting_rank"] == 1
    assert set(missing) == {"mpi_waited_for_rank", "mpi_waited_for_share"}


def test_no_share_is_without_a_core_where_the_kernel_does_not_tell():
    result, missing = wait_tables.metrics(replace(WAITS, run_delay_known=False), dict.fromkeys(range(4), 10.0))
    assert missing == {"mpi_wait_no_core_share": wait_tables.NO_RUN_DELAY}
    assert set(result) == set(wait_tables.METRICS) - set(missing)


def test_its_table_keeps_the_longest_pairs(monkeypatch):
    monkeypatch.setattr(wait_tables, "MOST_PAIRS", 2)
    table = wait_tables.table(WAITS)
    assert table["pairs"] == [[2, 3, 10, 3.0, 0.5, *[0.0] * 6], [1, 3, 5, 0.0, 0.0, 0.5, *[0.0] * 5]]
    assert table["pairs_left_out"] == 1


@pytest.mark.parametrize(("windows_s", "waiting"), [({3: 0.0, 0: 1.0}, 0), ({1: 1.0}, None)])
def test_ranks_without_a_window_are_not_those_that_wait_longest(windows_s, waiting):
    """A program can write any time into its profile."""
    result, missing = wait_tables.metrics(WAITS, windows_s)
    assert result.get("mpi_waiting_rank") == waiting
    assert set(result) | set(missing) == set(wait_tables.METRICS)
