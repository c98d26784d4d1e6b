"""Figures from any program's output, and whether its run was good."""

import time

import pytest

from experiments.errors import OutputError
from experiments.workloads import get, patterns
from experiments.workloads.extractors import Extractor
from experiments.workloads.template import Placeholder

TIME = {"name": "t_s", "regex": r"t = (.+)"}
GOOD = "t = 2.5\n Verification   =   SUCCESSFUL\n"
BAD = "t = 2.5\n Verification   =   FAILED.\nt = 3\n"


def figure(text, *, file=None, **extractor):
    workload = get("command", {"program": ["p"], "extract": [{"name": "x", "file": file, **extractor}]})
    return workload.parse("" if file else text, {file: text} if file else {}).figures.get("command.x")


def parsed(output, **more):
    return get("command", {"program": ["p"], "extract": [TIME], **more}).parse(output, {}).figures


def refused(output, **more):
    with pytest.raises(OutputError) as error:
        parsed(output, **more)
    return str(error.value)


@pytest.mark.parametrize(
    ("pick", "value"),
    [("first", 4.0), ("last", 3.0), ("min", 2.0), ("max", 4.0), ("mean", 3.0), ("median", 3.0), ("sum", 9.0)],
)
def test_extractor_picks_one_of_several_matches(pick, value):
    assert figure("t=4\nt=2 t=3\n", regex=r"t=(\S+)", pick=pick) == value


JSON = '{"runs": [{"a/b": 1.5}, {"a/b": [2, 4]}], "0": 7}'


@pytest.mark.parametrize(
    ("text", "extractor", "value"),
    [
        (JSON, {"json_pointer": "/runs/0/a~1b", "file": "r.json"}, 1.5),
        (JSON, {"json_pointer": "/runs/1/a~1b", "pick": "mean"}, 3.0),
        (JSON, {"json_pointer": "/0"}, 7.0),
        ("size, seconds\n1, 0.5\n2, 1.5\n3,\n", {"csv_column": "seconds", "pick": "max", "file": "out.csv"}, 1.5),
        ("a;b\n1;2\n", {"csv_column": "b", "delimiter": ";"}, 2.0),
        ("t = 250 usec", {"regex": "t = (.+) usec", "factor": 1e-6}, 250e-6),
        ("first\n  rate: 1.5e3 MB/s\nlast", {"regex": r"^\s*rate:\s+([0-9.eE+-]+) MB/s$"}, 1500),
        ("gflop/s = 7", {"regex": r"(?i)GFLOP/s\s*=\s*(\d+)"}, 7),
        ("é wärme 3", {"regex": r"(?:wärme|heat) (?P<value>\d+)"}, 3),
        ("a 1,234,567.5", {"regex": r"a (\S+)", "thousands": ","}, 1234567.5),
        ("a 1.234.567,5", {"regex": r"a (\S+)", "thousands": "."}, 1234567.5),
        ("a 12,5", {"regex": r"a (\S+)", "thousands": "."}, 12.5),
        ("a 1'234", {"regex": r"a (\S+)", "thousands": "'"}, 1234.0),
        ("a 999", {"regex": r"a (\S+)", "thousands": ","}, 999.0),
    ],
)
def test_extractor_reads_a_number(text, extractor, value):
    assert figure(text, **extractor) == value


@pytest.mark.parametrize(
    "extractor", [{"regex": "rate (.+)"}, {"json_pointer": "/rate"}, {"csv_column": "rate", "file": "none.csv"}]
)
def test_extractor_calls_a_missing_figure_a_failure_unless_it_is_optional(extractor):
    with pytest.raises(OutputError, match="x is not in"):
        figure("{}", **extractor)
    assert figure("{}", **extractor, required=False) is None


@pytest.mark.parametrize(
    ("text", "extractor"),
    [
        ("rate fast", {"regex": "rate (.+)"}),
        ("rate nan", {"regex": "rate (.+)"}),
        ('{"rate": {}}', {"json_pointer": "/rate"}),
        ("not json", {"json_pointer": "/rate"}),
        ("rate\nfast\n", {"csv_column": "rate"}),
        ("rate 12,34", {"regex": "rate (.+)", "thousands": ","}),
        ("rate 1,234", {"regex": "rate (.+)", "thousands": "'"}),
    ],
)
def test_extractor_refuses_what_is_not_a_number(text, extractor):
    with pytest.raises(OutputError, match=r"no number|not a measurement"):
        figure(text, **extractor)


@pytest.mark.parametrize("printed", ["1,234.5", "1 234", "1.234,5", "SUCCESSFUL"])
def test_extractor_names_a_word_that_is_no_number(printed):
    assert f"t_s: /t = (.+)/ in the output gives no number: {printed!r} is no number" in refused(f"t = {printed}")


@pytest.mark.parametrize(
    ("printed", "number"),
    [("0.68D+00", 0.68), ("1.5d3", 1500.0), (".5D-2", 0.005), ("-2.D2", -200.0), ("0.1234-101", 0.1234e-101)],
)
def test_extractor_reads_the_notation_of_fortran(printed, number):
    assert parsed(f"t = {printed}") == {"command.t_s": pytest.approx(number, rel=1e-12)}


def test_failure_fails_a_run_with_the_line_that_it_matches():
    assert parsed(GOOD, failure=r"FAILED\b") == {"command.t_s": 2.5}
    assert refused(BAD, failure=r"FAILED\b") == "the program said that it failed: Verification   =   FAILED"
    assert parsed(BAD) == {"command.t_s": 3.0}


def test_success_fails_a_run_without_a_line_that_it_matches():
    assert parsed(GOOD, success=r"=\s*SUCCESSFUL") == {"command.t_s": 2.5}
    assert "no line of the standard output matches /SUCCESSFUL/" in refused(BAD, success="SUCCESSFUL")
    assert refused(BAD, success="SUCCESSFUL", failure="FAILED").startswith("the program said that it failed")


def test_required_figure_is_the_verdict_that_a_file_holds():
    rated = {"name": "gflops", "regex": r"is VALID with a GFLOP/s rating of=(\S+)", "file": "HPCG-Benchmark_*.txt"}
    command = get("command", {"program": ["p"], "extract": [rated]})
    name = "HPCG-Benchmark_3.1_2026-11-23.txt"
    good = "Final Summary::HPCG result is VALID with a GFLOP/s rating of=0.238\n"
    assert command.parse("", {name: good}).figures == {"command.gflops": 0.238}
    with pytest.raises(OutputError, match="gflops is not in HPCG-Benchmark_"):
        command.parse("", {name: "Final Summary::HPCG result is=INVALID.\n"})


def test_patterns_that_explode_elsewhere_end_here(monkeypatch):
    started = time.process_time()
    assert Extractor(name="rate", regex="(a+)+$").read("a" * 5000 + "b") is None
    with pytest.raises(ValueError, match="does not match"):
        Placeholder(type="text", pattern="(a+)+", default="a" * 60 + "!")
    assert time.process_time() - started < 1
    monkeypatch.setattr(patterns, "TIME_LIMIT_S", 0.0)
    with pytest.raises(OutputError, match="searching took longer than 0 s"):
        Extractor(name="rate", regex="([0-9])").read("1 2 3")


@pytest.mark.parametrize("pattern", [r"(?=a)(b)", r"(?<!a)(b)", r"(a)\1", r"(?P<x>a)(?P=x)", r"(?!a)(b)"])
def test_patterns_refuse_look_around_and_back_references(pattern):
    with pytest.raises(ValueError, match=r"look-around .* and back-references are not allowed"):
        Extractor(name="rate", regex=pattern)


@pytest.mark.parametrize("pattern", ["(a", "(" + r"\pL{400}" * 20 + ")", r"(\Q", "(x{1001})"])
def test_patterns_refuse_what_the_engine_cannot_read_or_hold(pattern):
    with pytest.raises(ValueError, match="cannot be read"):
        Extractor(name="rate", regex=pattern)
