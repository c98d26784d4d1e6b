"""Fits without negative parts, against scipy's solver of one right side."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from analysis.scaling.fitting import nonnegative_solutions


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("dependent", [False, True], ids=["independent", "dependent"])
def test_many_right_sides_are_solved_as_each_by_itself(parts: int, dependent: bool) -> None:
    rng = np.random.default_rng(parts)
    design = rng.normal(1, 1, (6, parts))
    if dependent:
        design[:, -1] = 2 * design[:, 0]
    right = rng.normal(0, 1, (300, 6))
    right = right[(right @ np.linalg.pinv(design).T < 0).any(axis=1)]
    assert len(right) > 30
    solved = nonnegative_solutions(design, right)
    assert (solved >= 0).all()
    missed = np.linalg.norm(right - solved @ design.T, axis=1)
    assert missed == pytest.approx([scipy.optimize.nnls(design, row)[1] for row in right])
    if not dependent:
        assert solved == pytest.approx(np.array([scipy.optimize.nnls(design, row)[0] for row in right]), abs=1e-9)
