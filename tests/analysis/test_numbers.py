"""Numbers for readers: one table of cases, and properties of all numbers."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from analysis import numbers
from analysis.numbers import NARROW, SHARE, Scale
from analysis.statistics import Interval

CASES = [
    # four significant digits, no zeros at the end, no digit before the point rounded away
    (218.2, "s", "218.2 s"),
    (2.6, "s", "2.6 s"),
    (245.99, "s", "246 s"),
    (12345.6, "s", "12 346 s"),
    (0, "s", "0 s"),
    (12.5, "ns/day", "12.5 ns/day"),
    (1817.64, "1/s", "1 818 1/s"),
    (-3.5, "1", "−3.5"),
    (2.2e-5, "1", "2.2 × 10⁻⁵"),
    (1e16, "1", "1 × 10¹⁶"),
    # prefixes: smaller ones for seconds, larger ones for bytes and bits, and the one that the rounded number needs
    (0.000458, "s", "458 µs"),
    (0.00122, "s", "1.22 ms"),
    (5e-7, "s", "500 ns"),
    (1e-10, "s", "0.1 ns"),
    (0.00099999, "s", "1 ms"),
    (1335000, "B/s", "1.335 MB/s"),
    (999_999, "bit/s", "1 Mbit/s"),
    (0.99997, "s", "1 s"),
    (0.9999, "s", "999.9 ms"),
    (999.97, "s", "1 000 s"),
    (9999.4, "B", "9 999 B"),
    (9999.7, "B", "10 kB"),
    (1e9, "bit/s", "1 Gbit/s"),
    (0.5, "B/s", "0.5 B/s"),
    (687, "B", "687 B"),
    (39.98, "B", "39.98 B"),
    (1514, "B", "1 514 B"),
    (9018.4, "B", "9 018 B"),
    (12_345, "B", "12.35 kB"),
    # counts and their rates
    (476209, "packets", "476 209 packets"),
    (476209, "1", "476 209"),
    (5_000_000_000, "1", "5 000 000 000"),
    (2181.4, "packets/s", "2 181 packets/s"),
    (123_457.3, "packets/s", "123 457 packets/s"),
    (817.64, "packets/s", "817.6 packets/s"),
    # shares are per cent, and so is what was printed as such
    (0.0123, SHARE, "1.23 %"),
    (0.4871, SHARE, "48.7 %"),
    (-0.012, SHARE, "−1.2 %"),
    (1, SHARE, "100 %"),
    (51.68, "%", "51.7 %"),
    (None, "s", "–"),
    (float("nan"), "s", "–"),
    (float("inf"), "B", "–"),
    (float("-inf"), SHARE, "–"),
    (-0.0, "s", "0 s"),
]


@pytest.mark.parametrize(("value", "unit", "text"), CASES)
def test_it_writes_an_amount_by_the_rule(value, unit, text):
    assert numbers.amount(value, unit).replace(NARROW, " ") == text
    assert " " not in numbers.amount(value, unit)  # nothing breaks between a number and its unit


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (numbers.amount(0.3215, SHARE, 2), "32 %"),
        (numbers.amount(0.0207, SHARE, 2), "2.1 %"),
        (numbers.between(0.35, 0.45, SHARE), "35 to 45 %"),
        (numbers.between(0.2414, 1.2, "s"), "241 ms to 1.2 s"),
        (numbers.between(-1.5, 2.25), "−1.5 to 2.25"),
        (numbers.between(None, 2.25), ""),
        (numbers.with_interval(1.2534, Interval(1.21, 1.29, 0.95, "t"), "s"), "1.253 s (1.21 to 1.29 s)"),
        (numbers.with_interval(1.2534, None, digits=3), "1.25"),
        (numbers.with_interval(1.2534, Interval(1.21, None, 0.95, "t"), digits=3), "1.25"),
        (numbers.times(2.8243), "2.82×"),
        (numbers.change(0.912), "−8.8 %"),
        (numbers.change(1.2), "+20 %"),
        (numbers.change(3.1), "3.1×"),
        (numbers.change(113.2), "113×"),
        (numbers.change(1.0001), "0 %"),
        (numbers.change(None), "–"),
        (numbers.signed(0.5619, 2), "+0.56"),
        (numbers.signed(-1, 2), "−1"),
        (numbers.signed(-0.001, 2), "0"),
        (numbers.size(4_194_304), "4 MiB"),
        (numbers.size(568_000_000), "568 MB"),
        (numbers.size(1500), "1 500 B"),
        (numbers.size(0), "0 B"),
    ],
)  # fmt: skip
def test_it_writes_intervals_changes_and_sizes_by_the_rule(words, text):
    assert words.replace(NARROW, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.84, "0.84 s"),
        (2, "2 s"),
        (9.97, "10 s"),
        (12.4, "12 s"),
        (260, "4 min 20 s"),
        (7560, "2 h 6 min"),
        (3600, "1 h"),
        (90061, "1 d 1 h"),
        (None, "–"),
    ],
)
def test_duration_has_at_most_two_parts(seconds, text):
    assert numbers.duration(seconds).replace(NARROW, " ") == text


def test_a_sentence_keeps_numbers_and_units_together():
    text = "Below 80 % at 4 hosts, 64 KiB in 1.2 s: 5 samples, 3 Bytes, 0.5 ms/step."
    whole = f"Below 80{NARROW}% at 4 hosts, 64{NARROW}KiB in 1.2{NARROW}s: 5 samples, 3 Bytes, 0.5 ms/step."
    assert numbers.unbroken(text) == whole


def test_percent_apart_is_signed():
    assert numbers.percent_apart(101.5, 100) == f"+1.5{NARROW}%"
    assert numbers.percent_apart(98.5, 100) == f"−1.5{NARROW}%"
    assert numbers.percent_apart(100.01, 100) == f"0{NARROW}%"
    assert numbers.percent_apart(5, 0) is None


@pytest.mark.parametrize("nothing", [float("nan"), float("inf"), float("-inf")])
def test_it_writes_a_dash_for_what_is_no_number(nothing):
    for words in (numbers.significant, numbers.grouped, numbers.times, numbers.change, numbers.duration):
        assert words(nothing) == "–"
    assert numbers.signed(nothing, 2) == "–"
    assert numbers.between(1.0, nothing, "s") == ""
    assert Scale.of([nothing, 0.5], "s") == Scale(-3, "ms")


def test_plural_inflects_the_noun():
    words = [numbers.plural(count, "host") for count in (0, 1, 1.0, 2, 2.5, 1200)]
    assert words == ["0 hosts", "1 host", "1 host", "2 hosts", "2.5 hosts", f"1{NARROW}200 hosts"]
    assert numbers.plural(1.02, "round trip", digits=2) == "1 round trip"
    assert [numbers.plural(count, "match", "matches") for count in (1, 2)] == ["1 match", "2 matches"]


@pytest.mark.parametrize(
    ("values", "unit", "scale"),
    [
        ([0.1, 2.5e6], "bit/s", Scale(6, "Mbit/s")),
        ([0.002, 0.5], "s", Scale(-3, "ms")),
        ([4000.0], "s", Scale(0, "s")),
        ([1500, 9000], "B", Scale(0, "B")),
        ([19_999], "1", Scale(0, "")),
        ([20_000], "1", Scale(3, "thousands")),
        ([817.0], "packets/s", Scale(0, "packets/s")),
        ([123_457.0], "packets/s", Scale(3, "thousand packets/s")),
        ([0.02, 0.3], SHARE, Scale(-2, "%")),
        ([], "s", Scale(0, "s")),
        ([12.5], "ns/day", Scale(0, "ns/day")),
    ],
)
def test_it_gives_a_column_the_scale_of_its_largest_value(values, unit, scale):
    assert Scale.of(values, unit) == scale


_UNITS = st.sampled_from(["s", "B", "B/s", "bit/s", "packets/s", "1", SHARE, "ns/day"])
_MAGNITUDES = st.floats(min_value=1e-12, max_value=1e14)
_FACTORS = {"n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _read(value: float, unit: str) -> float:
    """Return the value as a user reads it: the number times its unit's prefix."""
    number, text = numbers.quantity(value, unit)
    mantissa, _, power = number.replace(NARROW, "").replace("−", "-").partition("×10")
    exponent = power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or "0"
    factor = 0.01 if unit == SHARE else _FACTORS[text.removesuffix("" if unit == "1" else unit)]
    return float(mantissa) * 10.0 ** int(exponent) * factor


@given(_MAGNITUDES, st.sampled_from([-1, 1]), _UNITS)
def test_it_writes_what_reads_back_to_half_of_its_last_digit(value, sign, unit):
    assert _read(sign * value, unit) == pytest.approx(sign * value, rel=5.01e-3 if unit == SHARE else 5.01e-4)


@given(_MAGNITUDES, _MAGNITUDES, _UNITS)
def test_it_never_lets_the_larger_of_two_read_as_the_smaller(one, other, unit):
    low, high = sorted((one, other))
    assert _read(low, unit) <= _read(high, unit) * (1 + 1e-12)


@given(_MAGNITUDES, st.sampled_from(["s", "B/s", "bit/s"]))
def test_it_takes_the_prefix_that_leaves_one_to_a_thousand(value, unit):
    assume(1e-9 <= value < 1 if unit == "s" else value >= 1)
    number, _ = numbers.quantity(value, unit)
    assert 1 <= float(number) < 1000


@given(st.integers(min_value=-9, max_value=14), st.integers(min_value=1, max_value=60_000), _UNITS)
def test_it_takes_the_next_prefix_where_rounding_reaches_it(power, below, unit):
    value = 10.0**power * (1 - below * 1e-8)  # up to 0.06 % below a power of ten: across half of the last digit
    assert _read(value, unit) == pytest.approx(value, rel=5.01e-3 if unit == SHARE else 5.01e-4)
    number, text = numbers.quantity(value, unit)
    takes_larger = text.startswith(("n", "µ", "m", "k", "M", "G")) and text not in ("ns/day", "min")
    assert not (takes_larger and number.startswith(f"1{NARROW}000")), "1 000 ms is 1 s"


@given(st.floats(), _UNITS)
@example(1.7e308, SHARE)  # too large for per cent
def test_it_writes_nothing_that_only_programs_read(value, unit):
    text = numbers.amount(value, unit)
    assert text == "–" or re.fullmatch(r"−?[\d\u202f]+(\.\d+)?(\u202f×\u202f10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(\u202f\D.*)?", text)
    assert not re.search(r"\d{4}", text.partition(".")[0])  # thousands are separated


@given(st.integers(min_value=-(10**14), max_value=10**14))
def test_it_writes_every_digit_of_a_count(count):
    assert int(numbers.grouped(count).replace(NARROW, "").replace("−", "-")) == count


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(min_value=1, max_value=6))
def test_it_ends_in_no_zero_behind_the_point_and_has_no_negative_zero(value, digits):
    text = numbers.significant(value, digits)
    assert not re.search(r"\.\d*0(?!\d)", text)
    assert text != "−0"


@pytest.mark.parametrize(
    ("word", "thousands", "number"),
    [
        *(
            (word, "", 1500.0)
            for word in ("1500", "1.5e3", "1.5E+03", "1.5D3", "1.5d+03", ".15e4", "1500.", "+1500", " 1_500 ")
        ),
        ("1.5+300", "", 1.5e300),
        ("-.5-101", "", -0.5e-101),
        ("١٢٣", "", 123.0),
        ("1,234,567.5", ",", 1234567.5),
        ("1.234.567,5", ".", 1234567.5),
        ("12,5", ".", 12.5),
        ("-1'234", "'", -1234.0),
        ("1 234,5", " ", 1234.5),
        ("1\u202f234.5e3", "\u202f", 1234500.0),
        ("999", ",", 999.0),
    ],
)
def test_read_number_reads_what_is_written(word: str, thousands: str, number: float) -> None:
    assert numbers.read_number(word, thousands) == number


@pytest.mark.parametrize(
    ("word", "thousands"),
    [
        *(
            (word, "")
            for word in ("", "1,5", "1 234", "1'234.5", "12s", "12%", "0x10", "1e3.5", "1:30", "5.9e 06", "***", "−5")
        ),
        *((word, ",") for word in ("1,5", "12,34", "1,2345", "0,123", "1,234,5", "1.234,567")),
        *((word, ".") for word in ("1.5", "0.123", "1.23.456", "1,234.5")),
        ("1,234", "'"),
        ("1'23", "'"),
    ],
)
def test_read_number_refuses_what_is_no_whole_number(word: str, thousands: str) -> None:
    with pytest.raises(ValueError, match="is no number"):
        numbers.read_number(word, thousands)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_read_number_returns_the_written_float(value: float) -> None:
    assert numbers.read_number(repr(value)) == value
    assert numbers.read_number(f"{value:e}".replace("e", "D")) == float(f"{value:e}")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1_335_214.22, "B/s", "1335214.22 B/s"),
        (0.0004583127, "s", "0.0004583127 s"),
        (1e-9, "s", "0.000000001 s"),
        (0.07, numbers.SHARE, "7 %"),
        (476_209, "", "476209"),
        (5.0, "1", "5"),
        (-0.25, "s", "-0.25 s"),
        (None, "s", ""),
        (float("nan"), "s", ""),
    ],
)
def test_exact_value_has_all_digits_in_the_base_unit(value, unit, text):
    assert numbers.exact(value, unit) == text
    assert numbers.Amount.of(value, unit) == numbers.amount(value, unit)
    assert numbers.Amount.of(value, unit).exact == text


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((0.912, 1.2), ["−8.8 %", "+20 %"]),
        ((1.959, 13.6), ["1.96×", "13.6×"]),
        ((3.1, None), ["3.1×", "–"]),
        ((1.0001, float("nan")), ["0 %", "–"]),
    ],
)
def test_changes_share_the_unit_of_the_largest(ratios, words):
    assert [word.replace(NARROW, " ") for word in numbers.changes(*ratios)] == words
