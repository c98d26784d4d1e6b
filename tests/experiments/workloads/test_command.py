"""Any command: templates of argv items and files, typed placeholders."""

import json

import pytest
from pydantic import ValidationError

from experiments.errors import InvalidSpec
from experiments.metrics import find
from experiments.specification import design, parse, parse_yaml
from experiments.specification.launch_plan import plan_launch
from experiments.specification.yaml_lines import dump
from experiments.workloads import Mismatch, get

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
DECK = """\
name: Deck
workload: command
parameters:
  program: [solver, deck.in]
  placeholders: {steps: {type: integer, default: 100}, cutoff: {type: number, default: 8.5}}
  inputs:
    deck.in: |
      run {steps} on {ranks}
      cut {cutoff}
      set { other } {unknown} {{steps}} {{unknown}} ${steps} {} {
  hosts: 3
sweep: {steps: [10, 20]}
"""


def errors_of(text):
    with pytest.raises(InvalidSpec) as refused:
        parse_yaml(text)
    return {error.path: error.message for error in refused.value.errors}


def decks_of(text):
    plan = design.expand(parse_yaml(text))
    return [plan_launch("command", point.parameters).files["deck.in"] for point in plan.configurations]


def argv(value, *, placeholder=None, program=None, ranks=4):
    definition = {
        "program": program or ["program", "{value}"],
        "placeholders": {"value": placeholder or {"type": "text"}},
    }
    workload = get("command", definition)
    parameters = workload.parameters_type.model_validate({**definition, "value": value})
    workload.check(parameters, ranks=ranks)
    return workload.command(parameters, ranks=ranks)


def test_command_keeps_words_that_look_like_numbers_as_they_are_written():
    for swept in ("['007', '1.10', '1..3', '1e3', 5, 1.5]", '"007, 1.10, 1..3, 1e3, 5, 1.5"'):
        spec = parse_yaml(VERSIONS % ("'010'", swept))
        plan = design.expand(spec)
        commands = [plan_launch("command", point.parameters).program for point in plan.configurations]
        assert commands == [("program", "--build=010", v) for v in ("007", "1.10", "1..3", "1e3", "5", "1.5")]
        assert design.expand(parse(json.loads(json.dumps(spec.to_dict())))) == plan
        assert design.expand(parse_yaml(dump(spec.to_dict()))) == plan


def test_command_asks_to_quote_words_that_yaml_takes_for_other_numbers():
    assert errors_of(VERSIONS % ("007", "[1.9, 1.10]")) == {
        "parameters.build": "YAML takes 007 for the number 7: write 7 or '007'",
        "sweep.version": "YAML takes 1.10 for the number 1.1: write 1.1 or '1.10'",
    }


@pytest.mark.parametrize(
    ("field", "word", "plain"),
    [
        ("default", "007", "7"),
        ("default", "1.10", "1.1"),
        ("choices", "[1.9, 1.10]", "1.1"),
        ("choices", "[a, 1e3]", "1000.0"),
        ("default", "0x10", "16"),
    ],
)
def test_command_refuses_numbers_as_the_texts_of_a_placeholder(field, word, plain):
    text = (VERSIONS % ("a", "[b]")).replace("version: {type: text}", f"version: {{type: text, {field}: {word}}}")
    errors = errors_of(text)
    assert list(errors) == [f"parameters.placeholders.version.{field}"]
    assert f"write {plain} or '" in errors[f"parameters.placeholders.version.{field}"]


@pytest.mark.parametrize("field", ["default", "minimum", "choices"])
def test_command_refuses_a_boolean_in_a_placeholder(field):
    value = [True, False] if field == "choices" else True
    definition = {"program": ["a", "{v}"], "placeholders": {"v": {"type": "integer", field: value}}, "v": 1}
    with pytest.raises(InvalidSpec, match="true and false are neither numbers nor texts"):
        parse({"name": "a", "workload": "command", "parameters": definition})


@pytest.mark.parametrize("field", ["factor", "at_least", "at_most"])
def test_command_refuses_a_boolean_in_a_figure(field):
    figure = {"name": "t_s", "regex": "(.)", field: True}
    with pytest.raises(InvalidSpec, match="true and false are neither numbers nor texts"):
        parse({"name": "a", "workload": "command", "parameters": {"program": ["a"], "extract": [figure]}})


def test_command_compares_texts_with_choices_that_are_numbers():
    placeholder = {"type": "text", "choices": [1.9, 7]}
    assert argv("7", placeholder=placeholder) == ("program", "7")
    assert argv("1.9", placeholder=placeholder) == ("program", "1.9")
    with pytest.raises(ValidationError):
        argv("007", placeholder=placeholder)


def test_command_is_swept_like_any_workload():
    spec = parse_yaml(MOLDY)
    points = [point.parameters for point in design.expand(spec).configurations]
    assert [point["steps"] for point in points] == [10, 20]
    launch = plan_launch("command", points[1])
    assert launch.program == ("moldy", "control.tip4p", "--steps=20", "--on=2", "fast", "{raw}")
    assert launch.files == {"control.tip4p": "title = water\n"}
    assert get("command", points[0]).parse("Loop time of 3.25 s", {}).figures == {"command.loop_time_s": 3.25}
    assert parse(spec.to_dict()) == spec


def test_command_describes_its_figures_in_the_specification():
    metric = find("command.loop_time_s", parse_yaml(MOLDY).to_dict())
    assert (metric.label, metric.unit, metric.direction) == ("Loop time", "s", "lower")
    same = MOLDY.replace("label: Loop time", "label: Elapsed time")
    assert find("command.loop_time_s", parse_yaml(same).to_dict()).label == "Elapsed time of the program"
    unknown = find("command.loop_time_s")
    assert (unknown.label, unknown.unit, unknown.direction) == ("Loop time s", "", "neutral")


@pytest.mark.parametrize(
    ("wrong", "right", "path", "words"),
    [
        (MOLDY.splitlines()[3].partition(": ")[2], "[]", "parameters.program", "names no program"),
        ("{steps}", "{stepz}", "parameters.program", "{stepz} is not defined"),
        ("10..30", "0..30", "sweep.steps", "at least 1"),
        ("10..30", "9990..10010", "sweep.steps", "at most 10000"),
        ("hosts: 2", "hosts: 2\n  mode: sloppy", "parameters.mode", "one of fast, exact"),
        ("hosts: 2", "hosts: 2\n  cutoff: wide", "parameters.cutoff", "must be a number"),
        ("type: number", "type: decimal", "parameters.placeholders", "cutoff.type"),
        ("default: 100", "default: 0", "parameters.placeholders", "must be at least 1"),
        ("'Loop time of (\\S+)'", "'Loop time of'", "parameters.extract", "needs a group"),
        ("'Loop time of (\\S+)'", "'Loop (time'", "parameters.extract", "cannot be read"),
        ("'Loop time of (\\S+)'", "'(.)\\1'", "parameters.extract", "back-references"),
        ("regex: ", "file: ../x, regex: ", "parameters.extract", "file"),
        ("regex: ", "file: ranks.json, regex: ", "parameters.extract", "every trial keeps"),
        ("regex: ", "file: work, regex: ", "parameters.extract", "every trial keeps"),
        ("regex: ", "csv_column: a, regex: ", "parameters.extract", "give one of regex"),
        ("regex: ", "factor: 0, regex: ", "parameters.extract", "a number other than 0"),
        ("control.tip4p: ", "../control: ", "parameters.inputs", "name of an input file"),
        ("control.tip4p: ", "stdout.txt: ", "parameters.inputs", "name of an input file"),
        ("sweep: {", "sweep: {inputs: [a], ", "sweep.inputs", "cannot be swept"),
        ("[moldy,", "['{mode}',", "parameters.program", "fixed name"),
        ("[moldy, ", "[moldy, '{mode.__class__}', ", "parameters.program", "plain name"),
        ("[moldy, ", "[moldy, '{mode!r}', ", "parameters.program", "plain name"),
        ("[moldy, ", "[moldy, '{', ", "parameters.program", "braces"),
        ("    steps: {", "    hosts: {}\n    steps: {", "parameters.placeholders", "cannot be the name"),
        ("    steps: {", "    model_dump: {}\n    steps: {", "parameters.placeholders", "cannot be the name"),
        ("hosts: 2", "hosts: 2\n  success: '(a'", "parameters.success", "cannot be read"),
    ],
)
def test_command_refuses_a_wrong_definition_at_its_field(wrong, right, path, words):
    assert wrong in MOLDY
    assert words in errors_of(MOLDY.replace(wrong, right))[path]


@pytest.mark.parametrize(
    ("field", "written", "refusal"),
    [
        (
            "placeholders",
            "{hosts: {}}",
            "'hosts' cannot be the name of a parameter: use lower-case letters, digits and _, and no name such as hosts",
        ),
        ("placeholders", "{x: 3}", "must be a mapping of names to values, not 3"),
        ("placeholders", "[a]", "must be a mapping of names to values, not ['a']"),
        ("extract", "x", "must be a valid list, not 'x'"),
        ("extract", "[x]", "must be a mapping of names to values, not 'x'"),
        ("parts", "[3]", "must be a mapping of names to values, not 3"),
        ("parts", '[{from_rank: 1, program: \'["./server", "-x"]\'}]', "Input should be a valid list"),
        *(
            ("parts", f"[{{from_rank: {rank}, program: [a]}}]", "from_rank: Input should be a valid integer")
            for rank in ("'1'", "1.0", "true")
        ),
    ],
)
def test_command_refuses_a_wrong_value_in_these_words(field, written, refusal):
    text = f"name: x\nworkload: command\nparameters: {{program: [a], hosts: 2, {field}: {written}}}\n"
    assert errors_of(text) == {f"parameters.{field}": refusal}


def test_command_refuses_a_specification_without_a_program():
    assert errors_of("name: Nothing\nworkload: command\n") == {"parameters.program": "names no program"}


def test_command_takes_json_text_from_a_form():
    parameters = get("command").parameters_type.model_validate({"program": '["echo", "a b"]', "inputs": "{}"})
    assert (parameters.program, parameters.inputs) == (["echo", "a b"], {})
    with pytest.raises(ValueError, match="JSON"):
        get("command").parameters_type.model_validate({"program": '["echo"'})


HOSTILE = ("-x", "--mca", ":", "a b", "$(reboot)", "`id`", "a;b", "../../etc/passwd", "/etc/passwd", "a\nb", "a\0b")


@pytest.mark.parametrize("value", [*HOSTILE, "", "*", "~"])
def test_placeholder_refuses_a_text_that_could_be_more(value):
    with pytest.raises(ValueError, match="value"):
        argv(value)


def test_placeholder_passes_on_what_a_maintainer_allows_as_one_item():
    anything = {"type": "text", "pattern": ".*"}
    for value in ("a; rm -rf $HOME `id` | x", "{value}{ranks}"):
        assert argv(value, placeholder=anything)[1] == value
    for value in (":", "-np"):  # mpirun would take them for its own
        with pytest.raises(Mismatch):
            argv(value, placeholder=anything)


def test_placeholder_refuses_a_negative_number_alone_and_takes_it_behind_an_option():
    number = {"type": "integer"}
    assert argv(-5, placeholder=number, program=["p", "--offset={value}"]) == ("p", "--offset=-5")
    with pytest.raises(Mismatch, match="read as an option"):
        argv(-5, placeholder=number)


@pytest.mark.parametrize("value", [True, 1.5, "x", None, 1e300, "nan", "inf"])
def test_placeholder_refuses_what_is_not_a_whole_number(value):
    with pytest.raises(ValueError, match="value"):
        argv(value, placeholder={"type": "integer"})


def test_input_files_are_filled_at_every_point_and_keep_every_other_brace():
    first, second = decks_of(DECK)
    assert first == "run 10 on 3\ncut 8.5\nset { other } {unknown} {steps} {{unknown}} ${steps} {} {\n"
    assert second.startswith("run 20 on 3\n")


def test_input_files_do_not_fill_what_a_value_says():
    words = DECK.replace("type: number, default: 8.5", "type: text, pattern: '.*', default: '{steps}'")
    assert "cut {steps}\n" in decks_of(words)[0]


def test_parameters_that_reach_nothing_are_refused_if_they_are_given():
    unused = DECK.replace("cut {cutoff}", "cut 9")
    assert len(decks_of(unused)) == 2
    refusal = "changes nothing: neither program nor inputs have {%s}"
    assert errors_of(unused.replace("hosts: 3", "hosts: 3\n  cutoff: 9")) == {"parameters.cutoff": refusal % "cutoff"}
    assert errors_of(DECK.replace("run {steps}", "run 100")) == {"sweep.steps": refusal % "steps"}


def test_command_runs_a_real_program_without_a_shell(tmp_path):
    definition = {
        "program": ["/usr/bin/printf", "%s\\n", "t=$HOME;{value}", "rank of {ranks}"],
        "placeholders": {"value": {"type": "number"}},
        "extract": [{"name": "value", "regex": r"t=\$HOME;(.+)"}, {"name": "ranks", "regex": "rank of (.+)"}],
    }
    workload = get("command", definition)
    parsed = run(workload, workload.parameters_type.model_validate({**definition, "value": 2.5}), tmp_path)
    assert parsed.figures == {"command.value": 2.5, "command.ranks": 2.0}


def test_configurations_keep_their_hash_whatever_is_read_of_their_output():
    stored = {"program": ["p"], "placeholders": {}, "extract": [], "inputs": {}, "hosts": 2}
    digest = design.configuration_hash("command", stored)
    reading = {"extract": [{"name": "a", "regex": "(1)"}], "success": "ok", "failure": "bad", "keep": ["*.log"]}
    assert design.configuration_hash("command", {**stored, **reading}) == digest
    assert design.configuration_hash("command", {**stored, "inputs": {"deck": "1"}}) != digest
