"""Placeholders of a command in its input files, and parameters that reach nothing."""

import pytest

from experiments.errors import InvalidSpec
from experiments.spec import design, parse_yaml

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


def files_of(text):
    plan = design.expand(parse_yaml(text))
    return [design.input_files("command", point.parameters)["deck.in"] for point in plan.configurations]


def errors_of(text):
    with pytest.raises(InvalidSpec) as refused:
        parse_yaml(text)
    return {error.path: error.message for error in refused.value.errors}


def test_it_fills_the_placeholders_of_an_input_file_at_every_point():
    first, second = files_of(DECK)
    assert first.startswith("run 10 on 3\ncut 8.5\n")
    assert second.startswith("run 20 on 3\n")


def test_it_leaves_every_other_brace_as_it_is():
    assert files_of(DECK)[0].endswith("set { other } {unknown} {steps} {{unknown}} ${steps} {} {\n")


def test_it_does_not_fill_what_a_value_says():
    words = DECK.replace("type: number, default: 8.5", "type: text, pattern: '.*', default: '{steps}'")
    assert "cut {steps}\n" in files_of(words)[0]


def test_it_refuses_a_swept_parameter_that_reaches_nothing():
    lost = DECK.replace("run {steps}", "run 100")
    assert errors_of(lost) == {"sweep.steps": "changes nothing: neither program nor inputs have {steps}"}


def test_it_refuses_a_given_parameter_that_reaches_nothing():
    lost = DECK.replace("cut {cutoff}", "cut 9").replace("hosts: 3", "hosts: 3\n  cutoff: 9")
    assert errors_of(lost) == {"parameters.cutoff": "changes nothing: neither program nor inputs have {cutoff}"}


def test_it_lets_a_placeholder_rest_that_nobody_gives_a_value():
    assert len(files_of(DECK.replace("cut {cutoff}", "cut 9"))) == 2
