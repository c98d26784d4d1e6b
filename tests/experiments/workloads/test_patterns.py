"""Regular expressions that people write: hostile ones cost no more than others, and what the engine cannot do is refused."""

from __future__ import annotations

import time

import pytest

from experiments.errors import OutputError
from experiments.workloads import patterns
from experiments.workloads.extractors import Extractor
from experiments.workloads.template import Placeholder


def test_an_extractor_that_used_to_take_for_ever_ends() -> None:
    started = time.process_time()
    assert Extractor(name="rate", regex="(a+)+$").read("a" * 5000 + "b") is None
    assert time.process_time() - started < 1


def test_a_pattern_of_a_placeholder_that_used_to_take_for_ever_ends() -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match="does not match"):
        Placeholder(type="text", pattern="(a+)+", default="a" * 60 + "!")
    assert time.process_time() - started < 1


def test_it_stops_where_many_matches_take_their_square(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT_S", 0.0)
    with pytest.raises(OutputError, match="searching took longer than 0 s"):
        Extractor(name="rate", regex="([0-9])").read("1 2 3")


@pytest.mark.parametrize("pattern", [r"(?=a)(b)", r"(?<!a)(b)", r"(a)\1", r"(?P<x>a)(?P=x)", r"(?!a)(b)"])
def test_it_says_that_look_around_and_back_references_are_not_allowed(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"look-around .* and back-references are not allowed"):
        Extractor(name="rate", regex=pattern)


@pytest.mark.parametrize("pattern", ["(a", "(" + r"\pL{400}" * 20 + ")", r"(\Q"])
def test_it_refuses_what_it_cannot_read_or_hold(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        Extractor(name="rate", regex=pattern)


@pytest.mark.parametrize(
    ("pattern", "line", "value"),
    [
        (r"Loop time of (\S+)", "Loop time of 12.5 on 4 procs", 12.5),
        (r"^\s*rate:\s+([0-9.eE+-]+) MB/s$", "  rate: 1.5e3 MB/s", 1500),
        (r"(?i)GFLOP/s\s*=\s*(\d+)", "gflop/s = 7", 7),
        (r"(?:wärme|heat) (?P<value>\d+)", "é wärme 3", 3),
    ],
)
def test_it_reads_what_such_expressions_say(pattern: str, line: str, value: float) -> None:
    assert Extractor(name="rate", regex=pattern).read(f"first\n{line}\nlast") == value
