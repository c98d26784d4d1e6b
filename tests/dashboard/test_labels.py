"""Parameters in words."""

from __future__ import annotations

from dashboard.labels import parameters_sentence


def test_a_command_is_shown_as_one_would_type_it_and_nothing_of_what_is_empty() -> None:
    parameters = {"hosts": 4, "program": ["sleep", "6 s"], "placeholders": {}, "extract": [], "inputs": {}, "seed": 0}
    assert parameters_sentence(parameters, list(parameters)) == "4 hosts, program sleep '6 s', seed 0"
