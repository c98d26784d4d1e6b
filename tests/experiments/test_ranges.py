"""Ranges and lists of swept values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.ranges import MAX_VALUES, expand_values


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("2..5", [2, 3, 4, 5]),
        ("2..12 step 2", [2, 4, 6, 8, 10, 12]),
        ("2..12/5", [2, 7, 12]),
        ("1..64 x2", [1, 2, 4, 8, 16, 32, 64]),
        ("1..10 ×3", [1, 3, 9]),
        ("0.1..0.3 step 0.1", [0.1, 0.2, 0.3]),
        ("1, 2, 4", [1, 2, 4]),
        ("1, 4..6, 8", [1, 4, 5, 6, 8]),
        ([1, "4..5", 8], [1, 4, 5, 8]),
        ("1 ms, 2 ms", ["1 ms", "2 ms"]),
        ("1e3", [1000]),
        (7, [7]),
        (True, [True]),
    ],
)
def test_it_expands_what_people_write(written: Any, values: list[Any]) -> None:
    assert expand_values(written) == values


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ([], "no values"),
        ("", "no values"),
        (None, "not a value"),
        ({"from": 1}, "not a value"),
        ([[1]], "not a value"),
        ("9..2", "ends before it starts"),
        ("1..9 step 0", "must be positive"),
        ("1..9 x1", "grow by more than 1"),
        ("0..9 x2", "start above 0"),
        (f"1..{MAX_VALUES + 1}", "more than"),
        (list(range(MAX_VALUES + 1)), "more than"),
        ("1.." + "1" * 100_000 + "z", "longer than"),
        ("1..2 step 0.0000000000000000000000000000000000001", "more than"),
    ],
)
def test_it_refuses_with_a_sentence(written: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        expand_values(written)


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("007, 1.10", ["007", "1.10"]),
        (["007", "1e3", "1..3", 5], ["007", "1e3", "1..3", 5]),
        ("1..4 x2", ["1..4 x2"]),
        (" a ,, b ", ["a", "b"]),
    ],
)
def test_it_keeps_words_as_they_are(written: Any, values: list[Any]) -> None:
    assert expand_values(written, text=True) == values


@given(st.lists(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+=@%-]{0,20}", fullmatch=True), min_size=1, max_size=9))
def test_it_changes_no_word_in_a_list_or_between_commas(words: list[str]) -> None:
    assert expand_values(words, text=True) == words
    assert expand_values(", ".join(words), text=True) == words


@pytest.mark.parametrize("text", ["1e99999999", "1.2.3..5", "nan", "..", "1....3", "0x10"])
def test_it_leaves_what_is_no_number_as_text_for_the_parameter_to_judge(text: str) -> None:
    assert expand_values(text) == [text]


@given(st.text(max_size=60))
def test_it_answers_or_refuses_any_text(text: str) -> None:
    try:
        values = expand_values(text)
    except ValueError:
        return  # refused with a sentence; anything else escapes and fails the test
    assert values


@given(st.integers(-50, 50), st.integers(0, 100), st.integers(1, 9))
def test_it_counts_like_range(first: int, length: int, step: int) -> None:
    assert expand_values(f"{first}..{first + length} step {step}") == list(range(first, first + length + 1, step))
