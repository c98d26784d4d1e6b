"""Ranges and lists of swept values."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.common.quantities import BANDWIDTH, DURATION, FRACTION, SIZE, Dimension
from experiments.specification.ranges import MAX_VALUES, expand_values


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
        ("1 KiB..4 MiB x8", ["1 KiB", "8 KiB", "64 KiB", "512 KiB", "4 MiB"]),
        ("1 ms..16 ms x2", ["1 ms", "2 ms", "4 ms", "8 ms", "16 ms"]),
        ("1..16ms*4", ["1 ms", "4 ms", "16 ms"]),
        ("1 .. 16 x4 ms", ["1 ms", "4 ms", "16 ms"]),
        ("100..300 step 100 Mbit/s", ["100 Mbit/s", "200 Mbit/s", "300 Mbit/s"]),
        ("100..300 Mbit/s / 100", ["100 Mbit/s", "200 Mbit/s", "300 Mbit/s"]),
        ("0..2 ms step 500 us", ["0 ms", "500 us", "1 ms", "1500 us", "2 ms"]),
        ("0..1 % step 0.5, 5 %", ["0 %", "0.5 %", "1 %", "5 %"]),
        ("9998..10000 B", ["9998 B", "9999 B", "10000 B"]),
        ("1e3", [1000]),
        (7, [7]),
        (True, [True]),
    ],
)
def test_expand_values_reads_lists_and_ranges(written: Any, values: list[Any]) -> None:
    assert expand_values(written) == values


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ([], "no values"),
        ("", "no values"),
        (None, "not a value"),
        ({"from": 1}, "must be a list, a range"),
        ([[1]], "not a value"),
        ("9..2", "ends before it starts"),
        ("1..9 step 0", "must be positive"),
        ("1..9 x1", "grow by more than 1"),
        ("0..9 x2", "start above 0"),
        ("4 ms..1 ms", "ends before it starts"),
        ("1 ms..9 ms step 0 us", "must be positive"),
        ("0 ms..9 ms x2", "start above 0"),
        ("1 ms..4 x2", "the last value of '1 ms..4 x2' needs a unit too"),
        ("1 KiB..4 MiB", "needs a step with its unit, as in 'step 1 MiB', or a factor"),
        ("1 KiB..4 MiB step 1", "needs a step with its unit"),
        ("1 foo..4 foo", "unknown unit 'foo' in the range"),
        ("1 ms..4 KiB x2", "units of different kinds: ms and KiB"),
        ("1 ns..1" + "0" * 30 + " h x2", "too large for a time"),
        (f"1..{MAX_VALUES + 1}", "more than"),
        (list(range(MAX_VALUES + 1)), "more than"),
        ("1.." + "1" * 100_000 + "z", "longer than"),
        ("1..2 step 0.0000000000000000000000000000000000001", "more than"),
        ("1.2.3..5", "is not a range: write 1..8"),
        ("1....3", "is not a range: write 1..8"),
    ],
)
def test_it_refuses_with_a_sentence(written: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        expand_values(written)


@given(st.lists(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+=@%-]{0,20}", fullmatch=True), min_size=1, max_size=9))
def test_it_changes_no_word_in_a_list_or_between_commas(words: list[str]) -> None:
    assert expand_values(words, text=True) == words
    assert expand_values(", ".join(words), text=True) == words


@pytest.mark.parametrize("text", ["1e99999999", "nan", "..", "0x10"])
def test_expand_values_keeps_other_text(text: str) -> None:
    assert expand_values(text) == [text]


@given(st.text(max_size=60))
def test_it_answers_or_refuses_any_text(text: str) -> None:
    try:
        values = expand_values(text)
    except ValueError:
        return  # refused with a sentence; anything else escapes and fails the test
    assert values


_UNITS = [(dimension, unit) for dimension in (BANDWIDTH, DURATION, FRACTION, SIZE) for unit in dimension.units if unit]


@given(st.sampled_from(_UNITS), st.decimals(0, 1000, places=2), st.integers(0, 100), st.decimals("0.01", 50, places=2))
def test_it_counts_in_any_unit_as_without_one(
    unit: tuple[Dimension, str], first: Decimal, n: int, step: Decimal
) -> None:
    dimension, name = unit
    last = first + n * step
    values = expand_values(f"{first}..{last} step {step} {name}")
    assert [dimension.parse(value) for value in values] == [
        dimension.parse(f"{first + i * step} {name}") for i in range(n + 1)
    ]


_PAIRS = [(kind, low, high) for kind, low in _UNITS for other, high in _UNITS if kind is other]


@given(st.sampled_from(_PAIRS), st.integers(1, 100), st.integers(2, 9))
def test_it_takes_the_ends_in_different_units_of_one_kind(
    units: tuple[Dimension, str, str], first: int, factor: int
) -> None:
    dimension, *names = units
    low, high = sorted(names, key=lambda unit: dimension.parse(f"1 {unit}"))
    meant = [dimension.parse(value) for value in expand_values(f"{first} {low}..{9 * first} {high} x{factor}")]
    start, end = dimension.parse(f"{first} {low}"), dimension.parse(f"{9 * first} {high}")
    assert meant == pytest.approx([start * factor**i for i in range(len(meant))])
    assert meant[-1] <= end < meant[-1] * factor * (1 + 1e-9)
