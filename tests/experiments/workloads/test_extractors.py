"""Figures from any program's output, and whether its run was good."""

import re
import time
import tracemalloc
from contextlib import suppress
from importlib import import_module

import pytest

from experiments import files
from experiments.common import budget
from experiments.errors import MOST_MESSAGE, OutputError
from experiments.workloads import base, extractors, get, kept_files, outputs, patterns
from experiments.workloads.extractors import Extractor
from experiments.workloads.outputs import Line, as_printed
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
    assert (
        refused(BAD, failure=r"FAILED\b") == "the program says that it failed, in line 2: 'Verification   =   FAILED.'"
    )
    assert parsed(BAD) == {"command.t_s": 3.0}


def test_success_fails_a_run_without_a_line_that_it_matches():
    assert parsed(GOOD, success=r"=\s*SUCCESSFUL") == {"command.t_s": 2.5}
    assert "no line of the standard output matches /SUCCESSFUL/" in refused(BAD, success="SUCCESSFUL")
    assert refused(BAD, success="SUCCESSFUL", failure="FAILED").startswith("the program says that it failed")


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
    with pytest.raises(OutputError, match="searching took too long"):
        Extractor(name="rate", regex="([0-9])").read("1 2 3")


@pytest.mark.parametrize("pattern", [r"(?=a)(b)", r"(?<!a)(b)", r"(a)\1", r"(?P<x>a)(?P=x)", r"(?!a)(b)"])
def test_patterns_refuse_look_around_and_back_references(pattern):
    with pytest.raises(ValueError, match=r"look-around .* and back-references are not allowed"):
        Extractor(name="rate", regex=pattern)


@pytest.mark.parametrize("pattern", ["(a", "(" + r"\pL{400}" * 20 + ")", r"(\Q", "(x{1001})"])
def test_patterns_refuse_what_the_engine_cannot_read_or_hold(pattern):
    with pytest.raises(ValueError, match="cannot be read"):
        Extractor(name="rate", regex=pattern)


@pytest.mark.parametrize(
    ("regex", "line"),
    [
        *((r"t = (\d+)", f"t = {printed}") for printed in ("1.5", "1,234", "1,5", "1e6", "1d3", "1:30", "1'234", "1 234", "1\u202f234.5")),
        *((r"t = (\d+)", f"t = {printed}") for printed in ("0x10", "1_000", "1.5.2", "12M steps", "3 x 10^6", "3×10⁶", "5.e3")),
        (r"t = (\d+\.\d)", "t = 1.25"),
        (r"t = ([\d.]+)", "t = 1.5E+03"),
        (r"t = ([\d.]+)", "t = 1.5-101"),
        (r"(\d{3}) s", "t = 123456 s"),
        (r"(\d+\.\d+) s", "t = -1.5 s"),
        (r"(\d+\.\d+) s", "t = 1,234.5 s"),
        (r"(\d+) s", "t = .5 s"),
    ],
)  # fmt: skip
def test_extractor_refuses_an_expression_that_takes_a_part_of_a_number(regex, line):
    with pytest.raises(OutputError, match=r"is a part of .*, in line 1: "):
        figure(line, regex=regex)


@pytest.mark.parametrize(
    ("regex", "line", "value"),
    [
        (r"version (\d+)\.\d+", "version 4.10", 4),
        (r"(\d+),", "1,2,3", 2),
        (r"t = (\d+)", "t = 12 s, 345 steps", 12),
        (r"rank(\d+)", "rank12:4711", 12),
        (r"-(\d+)", "n1-5", 5),
        (r"t = (\d+) ", "t = 1 234", 1),
        (r"(\d+)$", "2026-11-26 17", 17),
        (r"(\d+)%", "at 12%", 12),
        (r"t = (\S+)", "t = 1.5e3, done", None),
        (r"t = ([^,]+)", "t = 1.5E+03, done", 1500),
        (r"date (\d+)", "date 2026-11-26", 2026),
        (r"t = (\d+)", "t = 12.", 12),
    ],
)
def test_extractor_reads_a_number_with_text_around_it(regex, line, value):
    if value is None:
        with pytest.raises(OutputError, match="is no number"):
            figure(line, regex=regex)
    else:
        assert figure(line, regex=regex) == value


@pytest.mark.parametrize("before", [9_990, 9_993, 10_100, 300_000])
def test_extractor_reads_a_number_at_the_end_of_a_line_of_any_length(before):
    line = "." * before + " t = 123456.7"
    assert figure(line, regex=r"t = (\d+\.?\d*)") == 123456.7
    assert figure("\b\b".join(f"t = {n}" for n in range(3000)), regex=r"t = (\d+)") == 2999
    assert figure("\r".join(f"t = {n}" for n in range(3000)), regex=r"^t = (\d+)", pick="max") == 2999


def test_extractor_refuses_a_line_that_its_expression_cannot_search(monkeypatch):
    monkeypatch.setattr(patterns, "_MOST_STEPS", 100_000)
    with pytest.raises(OutputError, match="line 2 is too long to search: it has 60006 characters"):
        figure(f"start\n{'.' * 60_000} t = 1", regex=r"t = (\d+)")


@pytest.mark.parametrize(("printed", "unit"), [("250 ms", "s"), ("250ms", "s"), ("2 min", "s"), ("3 s", "ms")])
def test_extractor_refuses_a_time_in_another_unit(printed, unit):
    with pytest.raises(OutputError, match="set factor to"):
        figure(f"t = {printed}", regex=r"t = ([\d.]+)", unit=unit)
    assert figure("t = 250 ms", regex=r"t = ([\d.]+)", unit="s", factor=1e-3) == 0.25
    assert figure("t = 250 ms/step", regex=r"t = ([\d.]+)", unit="s") == 250


TAGS = ["[1,0]<stdout>:", "[1,0]<stdout>: ", "[prterun-n1@1,3]<stdout>:", "[0] ", "0: ", " 12: "]


@pytest.mark.parametrize("tag", TAGS)
def test_extractor_reads_through_tags_of_launchers(tag):
    def tagged(text):
        return "".join(f"{tag}{line}\n" for line in text.splitlines())

    assert figure(tagged("begin\nt = 2.5"), regex=r"^t = (\S+)$") == 2.5
    assert figure(tagged('{"a":\n {"t": 2.5}}'), json_pointer="/a/t") == 2.5
    assert figure(tagged("t,n\n2.5,1"), csv_column="t") == 2.5
    assert "in line 2" in refused(tagged("t = 1\nFAILED"), failure="^FAILED")
    assert parsed(tagged("t = 1\nall is WELL"), success="^all is WELL$") == {"command.t_s": 1.0}


def test_extractor_prefers_lines_with_their_own_numbers():
    assert figure("0: 1.5\n1: 2.5\n", regex=r"^0: (\S+)") == 1.5


@pytest.mark.parametrize(
    ("text", "extractor", "numbers"),
    [
        ("\n\nt = 1\n", {"regex": "t = (.+)"}, [3]),
        ("t = 1\nt = 3\nt = 2\n", {"regex": "t = (.+)", "pick": "max"}, [2]),
        ("t = 1\nt = 3\n", {"regex": "t = (.+)", "pick": "mean"}, [1, 2]),
        ('{"a": [\n 1,\n {"b/c": "7"}\n]}', {"json_pointer": "/a/1/b~1c"}, [3]),
        ('{"a": {"x": 1},\n "b": {"a": 2,\n"x": 3}}', {"json_pointer": "/b/x"}, [3]),
        ('{"a": [\n1,\n5]}', {"json_pointer": "/a", "pick": "max"}, [3]),
        ('{"a": 1,\n"a": 2}', {"json_pointer": "/a"}, [2]),
        ("\nn,t\n1,2\n\n2,3\n", {"csv_column": "t", "pick": "max"}, [5]),
        ("\ufeffa\r\nt = 1\r\n", {"regex": "^t = (.+)$"}, [2]),
    ],
)
def test_figure_remembers_its_lines(text, extractor, numbers):
    assert [line.number for line in figure(text, **extractor).lines] == numbers


@pytest.mark.parametrize(
    ("text", "extractor", "words"),
    [
        ("n,t\n1,10,5\n", {"csv_column": "t"}, "the row has 3 cells, and the table 2 columns, in line 2"),
        ("t,n,t\n1,2,3\n", {"csv_column": "t"}, "there are two columns 't', in line 1"),
        ("n,t\n1,3\n2,nan\n", {"csv_column": "t", "pick": "min"}, "gives nan, which is not a measurement, in line 3"),
        ("n,t\n1,3\n2,-nan\n3,4\n", {"csv_column": "t", "pick": "sum"}, "not a measurement, in line 3"),
        ("n,t\n1,12 ms\n", {"csv_column": "t"}, "'12 ms' is no number"),
        ('{"t": true}', {"json_pointer": "/t"}, "true is no number, in line 1"),
        ('{"t": [1,\n false]}', {"json_pointer": "/t"}, "false is no number, in line 2"),
        ('{"t": "1,5"}', {"json_pointer": "/t"}, "'1,5' is no number"),
        ('{"t": 1e999}', {"json_pointer": "/t"}, "gives inf, which is not a measurement"),
    ],
)
def test_extractor_refuses_a_wrong_cell_at_its_line(text, extractor, words):
    with pytest.raises(OutputError) as error:
        figure(text, **extractor)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text", ["n , t \n1 , 2.5 \n", "\ufeffn,t\n1,2.5\n", "n,t,\n1,2.5,\n", "\x1b[1mn,t\x1b[0m\r\n1,2.5\r\n"]
)
def test_extractor_reads_cells_with_spaces_and_marks(text):
    assert figure(text, csv_column="t") == 2.5


@pytest.mark.parametrize("separator", [",", ",\n"], ids=["in one line", "each in its line"])
def test_extractor_reads_an_array_in_time_that_grows_as_its_length(separator):
    text = f'{{"rates": [{separator.join(["7"] * 300_000)}]}}'
    with budget.seconds(20):
        assert figure(text, json_pointer="/rates", pick="sum") == 2_100_000


@pytest.mark.parametrize(
    ("extractor", "text"),
    [
        ({"json_pointer": "/0" * 100}, "[" * 101 + ",".join(["1"] * 1000) + "]" * 101),
        ({"csv_column": "b"}, "a,b\n" + "1,\n" * 1000),
        ({"regex": "x(1)"}, "1\n" * 1000),
    ],
    ids=["pointer", "column", "pattern"],
)
def test_reading_of_an_output_ends_at_its_limit(monkeypatch, extractor, text):
    workload = get("command", {"program": ["p"], "extract": [{"name": "x", **extractor}]})
    monkeypatch.setattr(base, "READING_CPU_S", 1e-6)
    with pytest.raises(OutputError, match="of CPU time"):
        workload.read(text, {}, {})


def test_reading_of_an_output_ends_at_the_limit_of_its_request():
    workload = get("command", {"program": ["p"], "extract": [{"name": "x", "regex": "x(1)"}]})
    with budget.seconds(1e-6), pytest.raises(budget.Exhausted):
        workload.read("1\n" * 1000, {}, {})


@pytest.mark.parametrize(
    ("extractor", "text"),
    [
        ({"json_pointer": ""}, "[1, 2, 3, 4]"),
        ({"regex": r"(\d)"}, "1\n2\n3\n4\n"),
        ({"csv_column": "a"}, "a\n1\n2\n3\n4"),
    ],
    ids=["pointer", "pattern", "column"],
)
def test_extractor_refuses_more_numbers_than_fit_into_memory(monkeypatch, extractor, text):
    monkeypatch.setattr(extractors, "MOST_NUMBERS", 3)
    assert "more than 3 numbers" in refused(text, extract=[{"name": "x", **extractor}])


@pytest.mark.parametrize(
    ("extractor", "text", "words"),
    [
        ({"regex": r"t = (\d+)"}, "\n" * 1_000_002, "more than 1000000 lines"),
        ({"regex": r"t = (\d+)"}, "\r" * 1_000_002, "more than 1000000 lines"),
        ({"regex": r"t = (\d+)"}, "\u0100" * 1_000_002 + "\b", "is not in the output"),
        ({"json_pointer": "/0"}, "[[]" + ",[]" * 1_000_002 + "]", "more than 2000000 values"),
        ({"csv_column": "a"}, "a" + "," * 2_000_000, "a row has more than 1000000 characters"),
    ],
    ids=["lines", "returns", "backspaces", "values", "cells"],
)
def test_reading_takes_little_memory_whatever_was_printed(extractor, text, words):
    tracemalloc.start()
    assert words in refused(text, extract=[{"name": "x", **extractor}])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 << 20


def test_a_row_of_many_lines_has_a_limit_too(monkeypatch):
    monkeypatch.setattr(extractors, "_LONGEST_ROW", 1000)
    rows = 'a,b\n1,"2\n3"\n'
    assert figure(rows + '4,"\n"\n' * 1000, csv_column="a") == 4
    assert "a row has more than 1000 characters" in refused(
        rows + '"\n",' * 1001, extract=[{"name": "x", "csv_column": "a"}]
    )


@pytest.mark.parametrize("slug", ["osu", "imb", "hpcc", "netpipe", "water"])
def test_built_in_programs_refuse_millions_of_lines(slug):
    with pytest.raises(OutputError, match="more than 1000000 lines"):
        get(slug).parse("\n" * 1_000_002, {})


@pytest.mark.parametrize(
    ("output", "files"),
    [("\n" * 4, {}), ("\r" * 4, {}), ("a\u2028" * 4, {}), ("\n\n", {"a": "\n\n"}), ("", {"a": "\v\n", "b": "\r\n\n"})],
    ids=["feeds", "returns", "separators", "with a file", "files"],
)
def test_reading_refuses_more_lines_than_fit_into_memory(monkeypatch, output, files):
    """Each takes 0.15 kB: 16 MiB of line feeds took 2.6 GB, in a request too."""
    monkeypatch.setattr(outputs, "MOST_LINES", 3)
    for workload in (get("water", {}), get("command", {"program": ["p"]})):
        with pytest.raises(OutputError, match="has more than 3 lines"):
            workload.read(output, files, {})
    assert not get("command", {"program": ["p"]}).read("a\r\nb\r\nc\r\n", {}, {}).figures


def test_extractor_finds_an_item_of_a_long_array_in_the_memory_of_its_text(monkeypatch):
    """The offsets of all items took 20 times as much: 1.5 GB for 16 MiB."""
    text = f"[{','.join(['1'] * 100_000)}]"
    tracemalloc.start()
    assert figure(text, json_pointer="/99999") == 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
    monkeypatch.setattr(extractors, "MOST_VALUES", 1000)
    assert "more than 1000 values" in refused(text, extract=[{"name": "x", "json_pointer": "/0"}])


def test_extractor_takes_the_last_of_two_members_of_one_name():
    assert figure('{"a": 1, "a": [2, 3]}', json_pointer="/a/1") == 3


def test_program_keeps_no_file_under_the_name_of_a_table_that_pages_read():
    """Pages took its file for the table: a forged one, or one of gigabytes."""
    tables = [name for constant, name in vars(files).items() if constant.endswith("_NAME")]
    assert len(tables) > 4
    assert kept_files.selected(["*"], [*tables, "mine.json.zst"]) == ["mine.json.zst"]


def test_sizes_take_units_and_limits_are_written_in_full() -> None:
    size = Placeholder(unit="B", maximum=1e6)
    assert [size.checked(value) for value in (4096, "4096", "4 KiB")] == [4096] * 3
    with pytest.raises(ValueError, match=r"^must be at most 1000000, not 2000000$"):
        size.checked(2_000_000)
    with pytest.raises(ValueError, match="must be a whole number"):
        Placeholder().checked("4 KiB")


def test_pattern_errors_show_the_pattern_as_typed() -> None:
    with pytest.raises(ValueError, match=re.escape(r"'\S+' is a regular expression that needs a group")):
        Extractor(name="rate", unit="B/s", direction="higher", regex=r"\S+")


@pytest.mark.parametrize("word", ["9", "9x", "x", "1e", "1,", "1:00", "\0", "\x1b[", "\x1b]", "a\b", "\ufffd"])
@pytest.mark.parametrize("regex", ["value (.*)", r"value (\S+)", r"(\d+)"])
def test_extractor_refuses_a_word_of_any_length_at_once_and_in_short(word, regex):
    """It held a worker for ever, and the error was as long as the output."""
    begun_s = time.process_time()
    message = ""
    try:
        Extractor(name="a", regex=regex).read(f"value {word * (200_000 // len(word))}x\n")
    except OutputError as error:
        message = str(error)
    assert len(message) <= MOST_MESSAGE
    assert time.process_time() - begun_s < 10


def test_numbers_of_thousands_of_digits_are_words() -> None:
    digits = "9" * 5000
    assert as_printed(digits) == float("inf")
    with pytest.raises(OutputError, match="no whole number"):
        Line(1, digits).whole(digits)


@pytest.mark.parametrize(
    "line", ["#" + " " * 100_000, "x" * 100_000, "||Ax-b||_oo/" * 10_000, "# OSU " + " Test" * 20_000]
)
@pytest.mark.parametrize("name", ["osu", "imb", "hpcc", "netpipe", "water", "pingpong", "ring"])
def test_outputs_of_built_in_programs_have_lines_of_any_length(name, line):
    parse = import_module(f"experiments.workloads.{name}").parse
    heading = "# Rankwire ping-pong, 1\n# OSU MPI Latency Test\n# Benchmarking PingPong\n"
    begun_s = time.process_time()
    with suppress(OutputError):
        parse(f"{heading}{line}\n", {})
    assert time.process_time() - begun_s < 5
