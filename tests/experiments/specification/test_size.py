"""Specifications that are expensive to check are refused by their size."""

from __future__ import annotations

import time
from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import parse, parse_yaml
from tests.experiments.specifications import errors_of

LONG_CONDITION = " and ".join(["hosts+1>0"] * 70) + " and hosts > 1000"


def test_it_refuses_twenty_thousand_fields_at_once() -> None:
    text = "name: x\nworkload: water\n" + "".join(f"k{number}: 1\n" for number in range(19_000))
    started = time.process_time()
    with pytest.raises(InvalidSpec) as refused:
        parse_yaml(text)
    assert time.process_time() - started < 10  # it was 129 s
    assert [(each.path, each.message) for each in refused.value.errors] == [("", "holds 19002 fields; the most is 300")]


@pytest.mark.parametrize(
    ("changes", "path", "sentence"),
    [
        ({"parameters": dict.fromkeys(map("k{}".format, range(301)), 1)}, "parameters", "holds 301 fields"),
        ({"tags": ["a"] * 10_001}, "tags", "holds 10001 items; the most is 10000"),
        ({"where": LONG_CONDITION + " and hosts > 0" * 50}, "where", "longer than 1000 characters"),
    ],
)
def test_parse_refuses_oversized_fields(changes: dict[str, Any], path: str, sentence: str) -> None:
    errors = errors_of(**changes)
    assert list(errors) == [path]
    assert sentence in errors[path][0]


def test_parse_reports_at_most_a_hundred_errors() -> None:
    with pytest.raises(InvalidSpec) as refused:
        parse({"name": "x", "workload": "water", "sweep": {"hosts": [f"x{number}" for number in range(500)]}})
    assert len(refused.value.errors) == 100


def test_a_long_condition_may_be_asked_about_fewer_combinations() -> None:
    sweep = {"hosts": "1..100", "ranks_per_host": "1..100", "steps": "1..100"}
    started = time.process_time()
    errors = errors_of(parameters={}, sweep=sweep, where=LONG_CONDITION)
    assert time.process_time() - started < 15  # it was minutes
    assert list(errors) == ["sweep"]
    assert errors["sweep"][0].endswith("combinations; take fewer values, or a shorter condition")
