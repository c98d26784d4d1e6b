"""Numbers for readers."""

import pytest

from analysis import numbers


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (476209, "packets", ("476\u202f209", "packets")),
        (476209, "1", ("476\u202f209", "")),
        (218.2, "s", ("218.2", "s")),
        (0.000458, "s", ("458.0", "µs")),
        (0.00122, "s", ("1.220", "ms")),
        (12345.6, "s", ("12\u202f346", "s")),
        (1335000, "B/s", ("1.335", "MB/s")),
        (2181.4, "packets/s", ("2.181", "k\u202fpackets/s")),
        (817.64, "packets/s", ("817.6", "packets/s")),
        (1817.64, "1/s", ("1\u202f818", "1/s")),
        (0.4871, "share", ("48.7", "%")),
        (-0.012, "share", ("\u22121.20", "%")),
        (0, "s", ("0", "s")),
        (687, "B", ("687", "B")),
        (39.98, "B", ("39.98", "B")),
        (None, "s", ("–", "")),
        (12.5, "ns/day", ("12.50", "ns/day")),
    ],
)
def test_it_shows_a_quantity_with_its_unit(value, unit, shown):
    assert numbers.quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.84, "0.84\u202fs"),
        (12.4, "12\u202fs"),
        (260, "4\u202fmin 20\u202fs"),
        (7560, "2\u202fh 6\u202fmin"),
        (3600, "1\u202fh"),
        (90061, "1\u202fd 1\u202fh"),
        (None, "–"),
    ],
)
def test_it_says_a_duration_in_two_parts(seconds, shown):
    assert numbers.duration(seconds) == shown


def test_it_signs_a_difference():
    assert numbers.percent_apart(101.5, 100) == "+1.5\u202f%"
    assert numbers.percent_apart(98.5, 100) == "\u22121.5\u202f%"
    assert numbers.percent_apart(100.01, 100) == "0.0\u202f%"
    assert numbers.percent_apart(5, 0) is None
