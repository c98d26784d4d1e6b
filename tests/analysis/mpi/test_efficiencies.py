"""POP efficiencies, against the worked values of their definition."""

import pytest

from analysis.mpi.efficiencies import Counts, Size, efficiencies, scaled


def test_it_finds_the_imbalance_of_two_to_one():
    measured = efficiencies([0.64, 0.34], 0.66)
    assert measured.load_balance == pytest.approx(0.49 / 0.64)
    assert measured.communication == pytest.approx(0.64 / 0.66)
    assert measured.parallel == pytest.approx(0.49 / 0.66)


def test_it_refuses_a_run_that_computed_nothing():
    with pytest.raises(ValueError, match="no time outside of MPI"):
        efficiencies([0.0, 0.0], 1.0)


def test_it_compares_useful_time_with_the_smallest_size():
    sizes = [Size(8, 12.0, 0.5), Size(2, 10.0, 0.9)]
    smallest, largest = scaled(sizes)
    assert (smallest.ranks, smallest.computation, smallest.whole) == (2, 1.0, 0.9)
    assert largest.computation == pytest.approx(10 / 12)
    assert largest.whole == pytest.approx(10 / 12 * 0.5)


def test_it_lets_work_grow_with_the_ranks():
    _, largest = scaled([Size(2, 10.0, 0.9), Size(8, 40.0, 0.5)], weak=True)
    assert largest.computation == pytest.approx(1.0)


@pytest.mark.parametrize("weak", [False, True])
def test_factors_of_computation_scalability_have_its_product(weak):
    """Twice the instructions, half the IPC, 0.8 of the clock, 0.9 on a core."""
    before = Counts(instructions=4e9, cycles=2e9, cpu_s=1.0)
    here = Counts(instructions=8e9, cycles=8e9, cpu_s=5.0)
    smallest, largest = scaled([Size(2, 1.0, 0.9, before), Size(8, 5.0 / 0.9, 0.5, here)], weak=weak)
    split = largest.split
    assert split.instructions == pytest.approx(2.0 if weak else 0.5)
    assert (split.ipc, split.frequency, split.core) == pytest.approx((0.5, 0.8, 0.9))
    assert split.instructions * split.ipc * split.frequency * split.core == pytest.approx(largest.computation)
    assert smallest.split.instructions == smallest.split.core == 1.0


def test_factors_need_counters_of_both_sizes():
    _, largest = scaled([Size(2, 1.0, 0.9), Size(8, 5.0, 0.5, Counts(1.0, 1.0, 1.0))])
    assert largest.split is None
