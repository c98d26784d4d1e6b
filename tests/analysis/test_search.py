"""Proposals of a search in spaces of known size."""

from __future__ import annotations

from analysis.search import MOST_DRAWN, MOST_LISTED, Result, Settings, Space, key_of, propose


def test_propose_finds_the_few_possible_combinations_of_a_large_space() -> None:
    space = Space({name: range(50) for name in "abc"}, lambda row: row["a"] * 2500 + row["b"] * 50 + row["c"] < 125)
    assert space.size > MOST_DRAWN

    proposals = propose(space, [], 6, seed=1, higher_is_better=True)

    assert len({key_of(row) for row in proposals}) == 6
    assert all(space.is_possible(row) for row in proposals)
    assert proposals == propose(space, [], 6, seed=1, higher_is_better=True)


def test_propose_finds_the_last_combination_of_a_space_that_is_not_listed() -> None:
    space = Space({"a": range(60), "b": range(60)}, lambda row: row["a"] == row["b"] == 7 or row["a"] == row["b"] == 9)
    assert MOST_LISTED < space.size <= MOST_DRAWN

    assert propose(space, [Result({"a": 7, "b": 7}, 1.0)], 6, seed=1, higher_is_better=True) == [{"a": 9, "b": 9}]


def test_propose_looks_around_the_best_results() -> None:
    space = Space(
        {"nb": [256, 16, 64, 128], "p": [1, 2, 4], "bcast": ["ring", "long", "two"]}, lambda row: row["p"] < 4
    )
    start = {"nb": 16, "p": 1, "bcast": "two"}
    rows = [row for row in space.combinations() if row["nb"] != 64][:8]
    best = Result({"nb": 128, "p": 2, "bcast": "ring"}, 9.0)
    results = [*(Result(row, 1.0) for row in rows if row != best.settings), Result(start, 1.5), best]

    proposals = propose(space, results, 6, seed=1, higher_is_better=True)

    def steps(row: Settings) -> int:
        return sum(row[name] != best.settings[name] for name in row)

    around = proposals[:3]
    assert [steps(row) for row in around] == [1, 1, 1]
    assert {row["nb"] for row in around} <= {64, 128, 256}, "numbers change by one step"
    assert all(space.is_possible(row) for row in proposals)
    assert len({key_of(row) for row in proposals}) == 6
    assert proposals == propose(space, results, 6, seed=1, higher_is_better=True)
