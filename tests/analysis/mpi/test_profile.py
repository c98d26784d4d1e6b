"""Metrics and tables of a run from the profiles of its ranks."""

import tracemalloc

import pytest

from analysis.catalogue import METRICS
from analysis.mpi import layout, profile
from analysis.mpi.record import read
from tests.analysis.mpi.pages import page_of


@pytest.fixture
def ranks():
    first = page_of(0, 2, window_s=1.0, calls=[("Recv", 4, 0.2, 0)], off=(0.25, 0.0))
    second = page_of(
        *(1, 2),
        window_s=1.0,
        calls=[("Send", 4, 0.5, 4000), ("Allreduce", 1, 0.1, 8)],
        messages=[(0, 4, 4000)],
        off=(0.0, 0.5),
    )
    return [read(first), read(second)]


def test_it_gives_metrics_of_the_catalogue_alone(ranks):
    measured = profile.metrics(ranks)
    assert set(measured) <= {m.id for m in METRICS.values() if m.section == "mpi"}
    assert measured["mpi_load_balance"] == pytest.approx(0.6 / 0.8)
    assert measured["mpi_communication_efficiency"] == pytest.approx(0.8)
    assert measured["mpi_parallel_efficiency"] == pytest.approx(0.6)


def test_its_four_shares_add_up_to_one(ranks):
    measured = profile.metrics(ranks)
    shares = [measured[f"mpi_{name}_share"] for name in ("useful", "no_core", "on_cpu", "blocked")]
    assert shares == pytest.approx([0.5, 0.1, 0.25, 0.15])
    assert sum(shares) == pytest.approx(1.0)


def test_run_delay_divides_the_time_on_no_processor():
    page = {"window_s": 1.0, "calls": [("Recv", 4, 0.2, 0)], "off": (0.5, 0.5)}
    ranks = [read(page_of(0, 2, **page, delay=(0.3, 0.05, 0.0))), read(page_of(1, 2, **page, delay=(0.1, 0.0, 0.0)))]

    measured = profile.metrics(ranks)

    assert measured["mpi_descheduled_share"] == pytest.approx(0.2)
    assert measured["mpi_descheduled_share"] + measured["mpi_blocked_outside_share"] == pytest.approx(
        measured["mpi_no_core_share"]
    )
    assert measured["mpi_descheduled_inside_share"] == pytest.approx(0.025)
    assert (measured["mpi_busiest_computing_s"], measured["mpi_busiest_descheduled_s"]) == pytest.approx((0.4, 0.3))
    row = profile.tables(ranks, {}, "summary")["ranks"][0]
    assert row["descheduled_s"] + row["blocked_outside_s"] == pytest.approx(row["no_core_s"])


def test_a_rank_without_run_delay_leaves_the_split_out(ranks):
    rank = read(page_of(1, 2, window_s=1.0, delay=(0.3, 0.0, 0.0)))

    assert not set(profile.RUN_DELAY_METRICS) & set(profile.metrics([ranks[0], rank]))
    assert "descheduled_s" not in profile.tables([ranks[0], rank], {}, "summary")["ranks"][0]


def test_its_classes_add_up_to_the_time_inside(ranks):
    measured = profile.metrics(ranks)
    assert sum(measured[name] for name in profile.CLASS_METRICS.values()) == pytest.approx(0.4)
    assert measured["mpi_collective_share"] == pytest.approx(0.05)


def test_it_counts_messages_and_bytes(ranks):
    measured = profile.metrics(ranks)
    assert (measured["mpi_messages"], measured["mpi_sent_bytes"]) == (4, 4000)
    assert measured["mpi_collective_bytes"] == 8
    assert measured["mpi_calls"] == 9


def test_its_tables_name_hosts_functions_and_pairs(ranks):
    table = profile.tables(ranks, {0: "n1", 1: "n2"}, "summary")
    assert [row["host"] for row in table["ranks"]] == ["n1", "n2"]
    assert [row["name"] for row in table["functions"]] == ["MPI_Send", "MPI_Recv", "MPI_Allreduce"]
    assert table["functions"][0]["max_rank"] == 1
    assert table["pairs"] == [[1, 0, 4, 4000]]
    assert table["between_hosts_bytes"] == 4000
    assert profile.tables(ranks, {0: "n1", 1: "n1"}, "summary")["between_hosts_bytes"] == 0
    assert table["sizes"]["point_to_point"][10] == 4


def test_its_last_bin_ends_with_the_window():
    bin_ns = 1 << layout.FIRST_SHIFT
    bins = [bin_ns // 4, bin_ns // 2, bin_ns // 4, *[0] * (2 * layout.BINS - 3)]
    rank = read(page_of(0, 1, window_s=2.5 * bin_ns / 1e9, calls=[("Recv", 1, bin_ns / 1e9, 0)], bins=bins))
    assert profile.tables([rank], {0: "n1"}, "summary")["inside"][0]["shares"] == [0.25, 0.5, 0.5]


def test_pairs_of_many_ranks_are_not_in_memory_at_once():
    """Each rank may have messages for 4096 others, in a forged profile too."""
    messages = [(to, 1, 8 + to) for to in range(layout.MOST_PEERS)]
    page = page_of(0, layout.MOST_PEERS, window_s=1.0, messages=messages)
    ranks = [read(page)] * 40
    tracemalloc.start()
    tables = profile.tables(ranks, {0: "n1"}, "summary")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(tables["pairs"]) == profile.MOST_PAIRS
    assert tables["pairs"][0] == [0, 4095, 1, 8 + 4095]
    assert tables["pairs_left_out"] == 40 * layout.MOST_PEERS - profile.MOST_PAIRS
    assert tables["between_hosts_bytes"] == 40 * sum(8 + to for to in range(1, layout.MOST_PEERS))
    assert peak < 15 << 20
