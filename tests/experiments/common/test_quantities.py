"""Quantities."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.common.quantities import BANDWIDTH, DURATION, FRACTION, SIZE, Dimension


@pytest.mark.parametrize(
    ("dimension", "text", "value"),
    [
        (BANDWIDTH, "1 Gbit/s", 1e9),
        (BANDWIDTH, "300Mbit/s", 3e8),
        (BANDWIDTH, " 10 MB/s ", 8e7),
        (BANDWIDTH, "100 mbit", 1e8),
        (BANDWIDTH, "2.5e3 kbit/s", 2.5e6),
        (BANDWIDTH, 1_000_000, 1e6),
        (DURATION, "4 ms", 0.004),
        (DURATION, "250 µs", 0.00025),
        (DURATION, ".5 s", 0.5),
        (DURATION, "2 min", 120.0),
        (FRACTION, "0.1 %", 0.001),
        (FRACTION, "0.25", 0.25),
        (SIZE, "4 MB", 4e6),
        (SIZE, "64 KiB", 65536.0),
    ],
)
def test_parse_reads_user_text_exactly(dimension: Dimension, text: str | float, value: float) -> None:
    assert dimension.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "fast", "Gbit/s", "1 parsec", "1,5 s", "--1 s", "nan", "inf", "1e999 s", "1e99999999999999999999 s",
        "1" * 100_000, "1 s; reboot", "1\0 s", True, float("nan"), float("inf"), pytest.param(10**5000, id="huge"),
    ],
)  # fmt: skip
def test_it_refuses_everything_else_with_a_sentence(text: str | float) -> None:
    with pytest.raises(ValueError, match=r"is not a time|unknown unit|too large") as caught:
        DURATION.parse(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("dimension", "value", "text"),
    [
        (BANDWIDTH, 1e9, "1 Gbit/s"),
        (BANDWIDTH, 3e8, "300 Mbit/s"),
        (BANDWIDTH, 1.5e9, "1.5 Gbit/s"),
        (DURATION, 0.004, "4 ms"),
        (DURATION, 0.0, "0 us"),
        (FRACTION, 0.001, "0.1 %"),
    ],
)
def test_it_writes_the_largest_fitting_unit(dimension: Dimension, value: float, text: str) -> None:
    assert dimension.format(value) == text


@given(st.floats(min_value=1e-9, max_value=1e13), st.sampled_from([BANDWIDTH, DURATION]))
def test_it_reads_back_what_it_wrote_without_loss(value: float, dimension: Dimension) -> None:
    text = dimension.format(value)
    if len(text) <= 60:
        assert dimension.parse(text) == pytest.approx(value, rel=1e-15)
