"""Whether a run was good by what it said, and what it printed for numbers."""

import pytest

from experiments.errors import OutputError
from experiments.spec.design import configuration_hash
from experiments.workloads import get
from experiments.workloads.extractors import number_in

TIME = {"name": "t_s", "regex": r"t = (.+)"}
GOOD = "t = 2.5\n Verification   =   SUCCESSFUL\n"
BAD = "t = 2.5\n Verification   =   FAILED.\nt = 3\n"


def parsed(output, **more):
    return get("command", {"program": ["p"], "extract": [TIME], **more}).parse(output, {}).figures


def refused(output, **more):
    with pytest.raises(OutputError) as error:
        parsed(output, **more)
    return str(error.value)


def test_it_fails_a_run_that_says_so_with_its_line():
    assert parsed(GOOD, failure=r"FAILED\b") == {"command.t_s": 2.5}
    assert refused(BAD, failure=r"FAILED\b") == "the program said that it failed: Verification   =   FAILED"


def test_a_verdict_in_a_file_is_part_of_a_required_figure():
    rated = {"name": "gflops", "regex": r"is VALID with a GFLOP/s rating of=(\S+)", "file": "HPCG-Benchmark_*.txt"}
    command = get("command", {"program": ["p"], "extract": [rated]})
    name = "HPCG-Benchmark_3.1_2026-11-23.txt"
    good = "Final Summary::HPCG result is VALID with a GFLOP/s rating of=0.238\n"
    assert command.parse("", {name: good}).figures == {"command.gflops": 0.238}
    with pytest.raises(OutputError, match="gflops is not in HPCG-Benchmark_"):
        command.parse("", {name: "Final Summary::HPCG result is=INVALID.\n"})


def test_it_fails_a_run_that_does_not_say_that_it_was_good():
    assert parsed(GOOD, success=r"=\s*SUCCESSFUL") == {"command.t_s": 2.5}
    assert "no line of the standard output matches /SUCCESSFUL/" in refused(BAD, success="SUCCESSFUL")
    assert refused(BAD, success="SUCCESSFUL", failure="FAILED").startswith("the program said that it failed")


def test_it_counts_what_says_nothing_where_nothing_is_asked():
    assert parsed(BAD) == {"command.t_s": 3.0}


@pytest.mark.parametrize("field", ["success", "failure"])
def test_it_refuses_an_expression_that_cannot_be_read(field):
    with pytest.raises(ValueError, match=rf"(?s){field}.*cannot be read"):
        get("command").parameters_type.model_validate({"program": ["p"], field: "(a"})


def test_a_stored_configuration_keeps_its_hash():
    stored = {"program": ["p"], "placeholders": {}, "extract": [], "inputs": {}, "hosts": 2}
    now = {**stored, "success": "", "failure": ""}
    assert configuration_hash("command", now) == configuration_hash("command", stored)
    assert configuration_hash("command", {**now, "inputs": {"deck": "1"}}) != configuration_hash("command", stored)


def test_other_figures_and_patterns_are_no_other_configuration():
    stored = {"program": ["p"], "placeholders": {}, "extract": [], "inputs": {}, "hosts": 2}
    other = {**stored, "extract": [{"name": "a", "regex": "(1)"}], "success": "ok", "keep": ["*.log"]}
    assert configuration_hash("command", other) == configuration_hash("command", stored)


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("0.68D+00", 0.68),
        ("1.5d3", 1500.0),
        (".5D-2", 0.005),
        ("-2.D2", -200.0),
        ("0.1234-101", 0.1234e-101),
        ("1e3", 1000.0),
        (" 7 ", 7.0),
        (4, 4.0),
    ],
)
def test_it_reads_fortran_notation_too(printed, number):
    assert number_in(printed) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("printed", ["1,234.5", "1,234,567", "1 234", "1_000", "1'234.5", "1.234,5", "3,14"])
def test_it_calls_separators_by_their_name(printed):
    assert "has separators, or a comma for a point" in refused(f"t = {printed}")


def test_it_says_that_text_is_no_number_and_where_it_belongs():
    said = refused("t = SUCCESSFUL")
    assert said == (
        "t_s: /t = (.+)/ in the output gives no number: 'SUCCESSFUL' is text; what a good run must say belongs under success"
    )
