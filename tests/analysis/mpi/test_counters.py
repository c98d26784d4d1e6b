"""Counters of ranks: scaled, absent with a reason, joined to metrics of a trial."""

import errno

import pytest

from analysis.catalogue import METRICS
from analysis.mpi import counters as mpi_counters
from analysis.mpi import layout
from analysis.mpi.counters import counter_metrics
from analysis.mpi.record import read
from tests.analysis.mpi.pages import NS, page_of
from tests.words import plain

ALL = {"readings": 20, "reading": 1000, "counted": NS, "enabled": NS // 2, "running": NS // 2}
VALUES = [8_000_000_000, 2_000_000_000, 4_000_000, 50]


def counted(rank=0, trace=(), **changed):
    words = {**ALL, "values": VALUES, **changed}
    return read(page_of(rank, 2, window_s=1.5, calls=[("Recv", 4, 0.5, 0)], trace=trace, counters=words)).counters


@pytest.mark.parametrize("trace", [(), [(5 * NS, 5 * NS + 1, 0, 0, 0, 0)]])
def test_counters_come_behind_the_trace(trace):
    counters = counted(trace=trace)
    assert counters.values == {"instructions": 8e9, "cycles": 2e9, "cache_misses": 4e6, "page_faults": 50, "cpu_s": 0.5}
    assert not counters.missing
    assert (counters.counted_share, counters.cost_s) == (1.0, pytest.approx(20e-6))


def test_counters_of_a_part_of_the_time_are_scaled_to_all_of_it():
    counters = counted(counted=NS * 95 // 100, running=NS // 8)
    assert counters.counted_share == pytest.approx(0.95 / 4)
    assert counters.values["instructions"] == pytest.approx(8e9 * 4 / 0.95)
    assert counters.values["cpu_s"] == pytest.approx(0.5 / 0.95), "the kernel knows that without counters"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"counted": NS // 2}, "50 % of the time outside MPI was counted"),
        ({"counted": NS // 2, "skipped": 9}, "more than 1 % of the time between"),
        ({"running": NS // 100}, "other programs used"),
        ({"errors": [errno.EACCES] * 4, "level": 5}, "kernel.perf_event_paranoid is 3"),
        ({"errors": [errno.ENOSYS] * 4}, "a filter of system calls"),
        ({"errors": [1 << 50] * 4}, "perf_event_open: failed"),
        ({"version": 1}, "a version that counted nothing"),
    ],
)
def test_counters_of_too_little_are_absent_with_a_reason(changed, reason):
    counters = counted(**changed)
    assert not counters.values
    assert set(counters.missing) == {*layout.COUNTED, "cpu_s"}
    assert all(reason in plain(why) for why in counters.missing.values())


def test_a_profile_of_an_older_version_has_no_counters():
    old = read(page_of(0, 2, window_s=1.5))
    assert old.window_s == pytest.approx(1.5)
    measured, absent = counter_metrics([(0, old.counters)])
    assert (measured, set(absent)) == ({}, set(mpi_counters.METRICS))


def test_metrics_are_sums_of_all_ranks():
    other = counted(rank=1, values=[2_000_000_000, 2_000_000_000, 0, 0], running=NS // 4)
    measured, absent = counter_metrics([(0, counted()), (1, other)])
    assert not absent
    of_ranks = {metric for metric in METRICS if metric.startswith("processor_")}
    assert set(measured) == set(mpi_counters.METRICS) == of_ranks
    assert measured["processor_instructions"] == 12e9
    assert measured["processor_ipc"] == pytest.approx(12 / 6)
    assert measured["processor_frequency_hz"] == pytest.approx(6e9 / 1.0)
    assert measured["processor_counted_share"] == pytest.approx(0.5)


def test_a_sum_without_one_rank_is_absent_and_names_it():
    no_pmu = counted(rank=1, errors=[errno.ENOENT] * 3 + [0])
    measured, absent = counter_metrics([(0, counted()), (1, no_pmu)])
    assert measured == {"processor_page_faults": 100, "processor_cpu_s": 1.0, "processor_counted_share": 1.0}
    assert absent["processor_ipc"] == "rank 1: no hardware counters here (virtual machines often have none)"
