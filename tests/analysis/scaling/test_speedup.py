"""Speed-up, efficiency, serial fraction and cost."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.scaling import Point, Study, scaling_table
from analysis.scaling.speedup import karp_flatt
from tests.analysis.scaling.studies import published_water, simulated
from tests.analysis.statistics.intervals import holds


def test_it_tabulates_the_published_water_study() -> None:
    rows = scaling_table(published_water())
    assert [r.size for r in rows] == [2, 4, 6, 8, 10, 12]
    assert rows[1].speedup.value == pytest.approx(245.99 / 200.4)
    assert rows[-1].efficiency.value == pytest.approx(245.99 / 264.85 / 6)
    assert rows[-1].ideal == 6
    assert rows[0].serial_fraction is None
    assert rows[1].serial_fraction is not None
    assert rows[1].serial_fraction.value == pytest.approx((200.4 / 245.99 - 1 / 2) / (1 - 1 / 2))
    assert (rows[-1].cost.value, rows[-1].cost_unit) == (pytest.approx(12 * 264.85), "host-seconds")
    assert rows[1].speedup.interval is None


def test_it_counts_core_seconds_where_ranks_are_known() -> None:
    row = scaling_table(simulated({"elapsed_s": lambda n: 100 / n}, noise=0.0))[-1]
    assert (row.cost.value, row.cost_unit) == (pytest.approx(24 * 100 / 12), "core-seconds")


def test_its_serial_fraction_is_amdahls_on_amdahls_data() -> None:
    for size in (2, 4, 64):
        assert karp_flatt(1 / (0.1 + 0.9 / size), size) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="two sizes"):
        karp_flatt(1.0, 1)


def test_its_intervals_cover_the_true_speedup_efficiency_and_serial_fraction() -> None:
    covered = np.zeros(3)
    for seed in range(200):
        row = scaling_table(simulated({"elapsed_s": lambda n: 20 + 160 / n}, hosts=(2, 8), seed=seed))[1]
        assert row.serial_fraction is not None
        for k, (estimate, truth) in enumerate(
            [(row.speedup, 2.5), (row.efficiency, 0.625), (row.serial_fraction, (1 / 2.5 - 1 / 4) / (1 - 1 / 4))]
        ):
            assert estimate.interval is not None
            covered[k] += holds(estimate.interval, truth)
    assert covered.min() >= 180
    assert covered.max() <= 199


def test_two_repetitions_of_each_size_share_their_scatter_and_times_stay_positive() -> None:
    times = {1: [1.2, 1.3], 2: [1.4, 1.5], 4: [3.6, 3.9], 8: [5.0, 5.6]}
    rows = scaling_table(Study([Point({"hosts": n}, {"elapsed_s": values}) for n, values in times.items()]))
    for row in rows:
        assert row.elapsed.interval is not None
        low, high = row.elapsed.interval.low, row.elapsed.interval.high
        assert low is not None
        assert high is not None
        assert 0.7 * row.elapsed.mean < low < high < 1.4 * row.elapsed.mean
    share = rows[-1].efficiency
    assert share.interval is not None
    assert share.interval.low is not None
    assert share.interval.high is not None
    assert 0.02 < share.interval.low < share.value < share.interval.high < 0.04


def test_an_interval_whose_ends_differ_by_more_than_ten_times_is_none() -> None:
    wild = scaling_table(
        Study([Point({"hosts": 1}, {"elapsed_s": [1.0, 9.0]}), Point({"hosts": 2}, {"elapsed_s": [5.0]})])
    )
    assert [row.elapsed.interval for row in wild] == [None, None]
    assert wild[1].efficiency.interval is None


def test_sizes_of_different_scatter_keep_their_own() -> None:
    steady, noisy = [10.0, 10.01, 9.99, 10.0], [5.0, 8.0, 3.5, 6.0]
    rows = scaling_table(Study([Point({"hosts": n}, {"elapsed_s": v}) for n, v in ((1, steady), (2, noisy))]))
    assert rows[0].elapsed.interval is not None
    assert rows[0].elapsed.interval.high == pytest.approx(10.01, rel=2e-3)
    assert "own scatter" in rows[0].elapsed.interval.method


def test_weak_scaling_counts_the_work_that_grows() -> None:
    study = simulated({"elapsed_s": lambda n: 100 + 2 * n}, noise=0.0, kind="weak")
    row = scaling_table(study)[-1]
    assert row.efficiency.value == pytest.approx(104 / 124)
    assert row.speedup.value == pytest.approx(6 * 104 / 124)
    assert row.serial_fraction is None


def test_it_leaves_out_sizes_without_a_time() -> None:
    points = [Point({"hosts": 2}, {"elapsed_s": [10.0]}), Point({"hosts": 4}, {}, excluded={"failed": 3})]
    assert [r.size for r in scaling_table(Study(points))] == [2]
    assert scaling_table(Study([])) == []


def test_a_sweep_of_more_parameters_falls_into_slices() -> None:
    points = [
        Point({"hosts": n, "link.bandwidth": rate, "molecules": 512}, {"elapsed_s": [1.0]})
        for n in (2, 4)
        for rate in (1e8, 1e9)
    ]
    slices = Study(points).slices()
    assert [s.where for s in slices] == [{"link.bandwidth": 1e8}, {"link.bandwidth": 1e9}]
    assert [s.link_bandwidth_bps for s in slices] == [1e8, 1e9]
    assert all(len(s.points) == 2 for s in slices)


def test_a_parameter_that_goes_with_the_size_makes_no_slice() -> None:
    points = [
        Point({"hosts": n, "molecules": 64 * n, "seed": seed}, {"elapsed_s": [1.0]}) for n in (2, 4) for seed in (1, 2)
    ]
    assert [s.where for s in Study(points, kind="weak").slices()] == [{"seed": 1}, {"seed": 2}]


def test_warm_ups_and_controls_are_not_lost_trials() -> None:
    excluded = {"warm-up": 1, "warmup": 1, "control": 2, "without capture": 1, "failed": 3, "cancelled": 1}
    assert Point({"hosts": 2}, {}, excluded=excluded).lost == 4
