"""Searches for the best settings, judged by trials made after the choice."""

from __future__ import annotations

import pytest

from analysis.conclusions.context import Searched
from tests.analysis.conclusions.designs import METHOD, asks, checked

SCATTERED = (0.8, 1.0, 1.25)


@pytest.mark.parametrize(
    ("tree_s", "best", "gain"), [(1.05, "pull", "0.952"), (0.95, "tree", "1.05")], ids=["worse", "better"]
)
def test_a_candidate_that_looks_worse_than_the_start_is_not_called_best(tree_s: float, best: str, gain: str) -> None:
    search = Searched({"method": "pull"}, ())
    result = checked(asks([METHOD], {"pull": 1.0, "tree": tree_s}, repetitions=SCATTERED, search=search))
    assert result.strength == "open"
    assert next(figure.value for figure in result.figures if figure.name == "best") == best
    assert f"The best candidate, tree, is {gain} (" in result.sentence
