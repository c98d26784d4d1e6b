"""Any command: templates that only ever fill argv items, typed placeholders, and extractors of figures."""

import json

import pytest
import yaml

from experiments.errors import InvalidSpec, OutputError
from experiments.metrics import find
from experiments.spec import design, parse, parse_yaml
from experiments.workloads import Mismatch, get
from experiments.workloads.extractors import Extractor

from .mpirun import run

MOLDY = """\
name: Moldy
workload: command
parameters:
  program: [moldy, control.tip4p, "--steps={steps}", "--on={ranks}", "{mode}", "{{raw}}"]
  placeholders:
    steps: {type: integer, minimum: 1, maximum: 10000, default: 100, title: Steps}
    mode: {type: text, choices: [fast, exact], default: fast}
    cutoff: {type: number, default: 8.5, unit: A}
  inputs: {control.tip4p: "title = water\\n"}
  extract:
    - {name: loop_time_s, label: Loop time, unit: s, direction: lower, regex: 'Loop time of (\\S+)'}
  hosts: 2
sweep: {steps: 10..30 step 10}
where: steps * hosts < 50
"""
DEFINITION = {"program": ["program", "{value}"], "placeholders": {"value": {"type": "text"}}}


def bound(definition=None, **more):
    return get("command", {**(definition or DEFINITION), **more})


def argv(value, *, placeholder=None, program=None, ranks=4):
    definition = {
        "program": program or ["program", "{value}"],
        "placeholders": {"value": placeholder or {"type": "text"}},
    }
    workload = get("command", definition)
    parameters = workload.parameters_type.model_validate({**definition, "value": value})
    workload.check(parameters, ranks=ranks)
    return workload.command(parameters, ranks=ranks)


VERSIONS = """\
name: Versions
workload: command
parameters:
  program: [program, "--build={build}", "{version}"]
  placeholders: {build: {type: text}, version: {type: text}}
  build: %s
sweep:
  version: %s
"""


def errors_of(text):
    with pytest.raises(InvalidSpec) as refused:
        parse_yaml(text)
    return {error.path: error.message for error in refused.value.errors}


# the specification


def test_it_hands_over_words_that_look_like_numbers_as_they_are_written():
    for swept in ("['007', '1.10', '1..3', 1e3, 5, 1.5]", '"007, 1.10, 1..3, 1e3, 5, 1.5"'):
        spec = parse_yaml(VERSIONS % ("'010'", swept))
        plan = design.expand(spec)
        given = [design.program(spec.workload, point.parameters) for point in plan.configurations]
        assert given == [("program", "--build=010", v) for v in ("007", "1.10", "1..3", "1e3", "5", "1.5")]
        assert design.expand(parse(json.loads(json.dumps(spec.to_dict())))) == plan
        assert design.expand(parse_yaml(yaml.safe_dump(spec.to_dict()))) == plan


def test_it_asks_to_quote_words_that_yaml_takes_for_other_numbers():
    assert errors_of(VERSIONS % ("010", "[1.9, 1.10]")) == {
        "parameters.build": "YAML takes 010 for the number 8; write '010' with quotes",
        "sweep.version": "YAML takes 1.10 for the number 1.1; write '1.10' with quotes",
    }


def test_it_sweeps_a_definition_like_any_workload():
    spec = parse_yaml(MOLDY)
    plan = design.expand(spec)
    assert [c.parameters["steps"] for c in plan.configurations] == [10, 20]
    (_, second) = plan.configurations
    assert design.program("command", second.parameters) == (
        "moldy",
        "control.tip4p",
        "--steps=20",
        "--on=2",
        "fast",
        "{raw}",
    )
    assert parse(spec.to_dict()) == spec


def test_it_runs_and_parses_a_configuration_alone():
    (configuration, _) = design.expand(parse_yaml(MOLDY)).configurations
    parameters = design.workload_parameters("command", configuration.parameters)
    workload = get("command", configuration.parameters)
    assert workload.files(parameters, ranks=2) == {"control.tip4p": "title = water\n"}
    assert workload.parse("Loop time of 3.25 s", {}).figures == {"command.loop_time_s": 3.25}


def test_it_describes_a_figure_from_the_specification():
    metric = find("command.loop_time_s", parse_yaml(MOLDY).to_dict())
    assert (metric.label, metric.unit, metric.direction) == ("Loop time", "s", "lower")
    unknown = find("command.loop_time_s")
    assert (unknown.label, unknown.unit, unknown.direction) == ("Loop time s", "", "neutral")


@pytest.mark.parametrize(
    ("wrong", "right", "path", "words"),
    [
        (
            '[moldy, control.tip4p, "--steps={steps}", "--on={ranks}", "{mode}", "{{raw}}"]',
            "[]",
            "parameters.program",
            "names no program",
        ),
        ("{steps}", "{stepz}", "parameters.program", "{stepz} is not defined"),
        ("10..30", "0..30", "sweep.steps", "at least 1"),
        ("10..30", "9990..10010", "sweep.steps", "at most 10000"),
        ("hosts: 2", "hosts: 2\n  mode: sloppy", "parameters.mode", "one of fast, exact"),
        ("hosts: 2", "hosts: 2\n  cutoff: wide", "parameters.cutoff", "must be a number"),
        ("type: number", "type: decimal", "parameters.placeholders", "cutoff.type"),
        ("default: 100", "default: 0", "parameters.placeholders", "must be at least 1"),
        ("'Loop time of (\\S+)'", "'Loop time of'", "parameters.extract", "needs a group"),
        ("'Loop time of (\\S+)'", "'Loop (time'", "parameters.extract", "cannot be read"),
        ("regex: ", "file: ../x, regex: ", "parameters.extract", "file"),
        ("'Loop time of (\\S+)'", "'Loop time (?=of)(.)'", "parameters.extract", "look-around"),
        ("'Loop time of (\\S+)'", "'(.)\\1'", "parameters.extract", "back-references"),
        ("'Loop time of (\\S+)'", "'(x{1001})'", "parameters.extract", "cannot be read"),
        ("regex: ", "file: ranks.json, regex: ", "parameters.extract", "every trial keeps"),
        ("regex: ", "file: stdout.txt, regex: ", "parameters.extract", "every trial keeps"),
        ("regex: ", "file: samples.json, regex: ", "parameters.extract", "every trial keeps"),
        ("regex: ", "file: work, regex: ", "parameters.extract", "every trial keeps"),
        ("control.tip4p: ", "../control: ", "parameters.inputs", "name of an input file"),
        ("control.tip4p: ", "stdout.txt: ", "parameters.inputs", "name of an input file"),
        ("sweep: {", "sweep: {inputs: [a], ", "sweep.inputs", "cannot be swept"),
        ("[moldy,", "['{mode}',", "parameters.program", "fixed name"),
        ("[moldy, ", "[moldy, '{mode.__class__}', ", "parameters.program", "plain name"),
        ("[moldy, ", "[moldy, '{mode!r}', ", "parameters.program", "plain name"),
        ("[moldy, ", "[moldy, '{', ", "parameters.program", "braces"),
        ("    steps: {", "    hosts: {}\n    steps: {", "parameters.placeholders", "cannot be the name"),
        ("    steps: {", "    model_dump: {}\n    steps: {", "parameters.placeholders", "cannot be the name"),
    ],
)
def test_it_refuses_a_wrong_definition_at_its_field(wrong, right, path, words):
    assert wrong in MOLDY
    errors = errors_of(MOLDY.replace(wrong, right))
    assert words in errors[path]


# values that want to be more than values


@pytest.mark.parametrize(
    "value",
    [
        "-x",
        "--mca",
        ":",
        "a b",
        "$(reboot)",
        "`id`",
        "a;b",
        "../../etc/passwd",
        "/etc/passwd",
        "a\nb",
        "a\0b",
        "",
        "*",
        "~",
    ],
)
def test_it_refuses_a_text_that_could_be_more(value):
    with pytest.raises(ValueError, match="value"):
        argv(value)


def test_it_passes_on_what_a_maintainer_allows_as_one_item():
    anything = {"type": "text", "pattern": ".*"}
    assert argv("a; rm -rf $HOME `id` | x", placeholder=anything)[1] == "a; rm -rf $HOME `id` | x"
    assert argv("{value}{ranks}", placeholder=anything)[1] == "{value}{ranks}"


@pytest.mark.parametrize("value", [":", "-np"])
def test_it_refuses_what_mpirun_would_take_for_its_own_even_then(value):
    with pytest.raises(Mismatch):
        argv(value, placeholder={"type": "text", "pattern": ".*"})


def test_it_refuses_a_negative_number_alone_and_takes_it_behind_an_option():
    number = {"type": "integer"}
    assert argv(-5, placeholder=number, program=["p", "--offset={value}"]) == ("p", "--offset=-5")
    with pytest.raises(Mismatch, match="read as an option"):
        argv(-5, placeholder=number)


@pytest.mark.parametrize("value", [True, 1.5, "x", None, 1e300, "nan", "inf"])
def test_it_refuses_what_is_not_a_whole_number(value):
    with pytest.raises(ValueError, match="value"):
        argv(value, placeholder={"type": "integer"})


# figures of merit


def figure(text, *, file=None, **extractor):
    workload = get("command", {"program": ["p"], "extract": [{"name": "x", "file": file, **extractor}]})
    return workload.parse("" if file else text, {file: text} if file else {}).figures.get("command.x")


@pytest.mark.parametrize(
    ("pick", "value"),
    [("first", 4.0), ("last", 3.0), ("min", 2.0), ("max", 4.0), ("mean", 3.0), ("median", 3.0), ("sum", 9.0)],
)
def test_it_picks_one_of_several_matches_as_asked(pick, value):
    assert figure("t=4\nt=2 t=3\n", regex=r"t=(\S+)", pick=pick) == value


def test_it_follows_a_json_pointer():
    text = '{"runs": [{"a/b": 1.5}, {"a/b": [2, 4]}], "0": 7}'
    assert figure(text, file="r.json", json_pointer="/runs/0/a~1b") == 1.5
    assert figure(text, file="r.json", json_pointer="/runs/1/a~1b", pick="mean") == 3.0
    assert figure(text, json_pointer="/0") == 7.0


def test_it_reads_a_csv_column():
    text = "size, seconds\n1, 0.5\n2, 1.5\n3,\n"
    assert figure(text, file="out.csv", csv_column="seconds", pick="max") == 1.5
    assert figure("a;b\n1;2\n", csv_column="b", delimiter=";") == 2.0


def test_it_makes_another_unit_with_the_factor():
    assert figure("t = 250 usec", regex="t = (.+) usec", factor=1e-6) == 250e-6


@pytest.mark.parametrize(
    "extractor",
    [
        {"regex": "rate (.+)"},
        {"json_pointer": "/rate"},
        {"csv_column": "rate", "file": "never-written.csv"},
    ],
)
def test_it_calls_a_missing_figure_a_failure_unless_it_is_optional(extractor):
    with pytest.raises(OutputError, match="x "):
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
    ],
)
def test_it_refuses_what_is_not_a_number(text, extractor):
    with pytest.raises(OutputError, match=r"no number|not a measurement"):
        figure(text, **extractor)


@pytest.mark.parametrize("extractor", [{}, {"regex": "(a)", "csv_column": "a"}, {"regex": "(a)", "factor": 0}])
def test_it_refuses_an_extractor_without_one_source(extractor):
    with pytest.raises(ValueError, match="extract"):
        get("command").parameters_type.model_validate({"program": ["p"], "extract": [{"name": "x", **extractor}]})


def test_it_refuses_a_specification_without_a_program():
    assert errors_of("name: Nothing\nworkload: command\n") == {"parameters.program": "names no program"}


def test_it_lets_a_form_send_json_text():
    parameters = get("command").parameters_type.model_validate({"program": '["echo", "a b"]', "inputs": "{}"})
    assert parameters.program == ["echo", "a b"]
    with pytest.raises(ValueError, match="JSON"):
        get("command").parameters_type.model_validate({"program": '["echo"'})


def test_it_runs_a_real_program_without_a_shell(tmp_path):
    definition = {
        "program": ["/usr/bin/printf", "%s\\n", "t=$HOME;{value}", "rank of {ranks}"],
        "placeholders": {"value": {"type": "number"}},
        "extract": [{"name": "value", "regex": r"t=\$HOME;(.+)"}, {"name": "ranks", "regex": "rank of (.+)"}],
    }
    workload = get("command", definition)
    parsed = run(workload, workload.parameters_type.model_validate({**definition, "value": 2.5}), tmp_path)
    assert parsed.figures == {"command.value": 2.5, "command.ranks": 2.0}


@pytest.mark.parametrize(
    ("thousands", "printed", "value"),
    [
        (",", "1,234,567.5", 1234567.5),
        (".", "1.234.567,5", 1234567.5),
        (".", "12,5", 12.5),
        ("'", "1'234", 1234.0),
        (",", "999", 999.0),
    ],
)
def test_it_reads_numbers_whose_thousands_are_set_apart(thousands, printed, value):
    assert Extractor(name="a", regex=r"a (\S+)", thousands=thousands).read(f"a {printed}") == value


def test_it_refuses_separators_that_nobody_announced():
    for thousands, printed in (("", "1,234"), (",", "12,34"), ("'", "1,234")):
        with pytest.raises(OutputError, match=r"separators|no number"):
            Extractor(name="a", regex=r"a (\S+)", thousands=thousands).read(f"a {printed}")
