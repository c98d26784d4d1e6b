"""Goals in specifications: what is accepted, refused and stored."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import design, parse, parse_yaml

GOAL: dict[str, Any] = {"until": "answered", "budget": {"trials": 50}}
EXPLORED: dict[str, Any] = {"from": 1, "to": 8, "explore": True}
BASE: dict[str, Any] = {"name": "goal", "workload": "water", "sweep": {"hosts": [1, 2]}}


def errors(**changes: Any) -> dict[str, list[str]]:
    with pytest.raises(InvalidSpec) as refused:
        parse({**BASE, **changes})
    return refused.value.by_path()


def test_goal_and_range_survive_the_stored_form():
    spec = parse_yaml(
        "name: goal\nworkload: water\nsweep: {hosts: [1, 2]}\nrepetitions: {at_least: 4, at_most: 20}\n"
        "goal: {until: 3 %, budget: {time: 30 min, host_hours: 2}}\n"
    )

    assert (spec.at_least, spec.at_most) == (4, 20)
    assert spec.goal is not None
    assert spec.goal.precision == 0.03
    assert spec.goal.budget.time == 1800
    assert parse(spec.to_dict()) == spec


@pytest.mark.parametrize(
    ("until", "precision"), [("answered", None), ("3 %", 0.03), ("precision: 3 %", 0.03), (0.05, 0.05)]
)
def test_until_is_the_answer_or_a_precision(until: Any, precision: float | None):
    goal = parse({**BASE, "goal": {**GOAL, "until": until}}).goal

    assert goal is not None
    assert goal.precision == precision


def test_number_of_repetitions_keeps_its_meaning():
    assert parse({**BASE, "repetitions": 5}).to_dict()["repetitions"] == 5
    assert "goal" not in parse(BASE).to_dict()
    with_goal = parse({**BASE, "goal": GOAL, "repetitions": 5})
    assert (with_goal.at_least, with_goal.at_most) == (5, 30)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"goal": {"until": "answered"}}, "goal.budget"),
        ({"goal": {"until": "answered", "budget": {}}}, "goal.budget"),
        ({"goal": {"until": "soon", "budget": {"trials": 50}}}, "goal.until"),
        ({"goal": {"until": "90 %", "budget": {"trials": 50}}}, "goal.until"),
        ({"goal": {"until": "answered", "budget": {"trials": 0}}}, "goal.budget.trials"),
        ({"goal": {"until": "answered", "budget": {"trials": 5}}}, "goal.budget.trials"),
        ({"goal": {"until": "answered", "budget": {"time": "no time"}}}, "goal.budget.time"),
        ({"goal": {"optimise": "hpl.gflops", "budget": {"time": "2 h"}}}, "goal.optimise"),
        ({"goal": GOAL, "repetitions": 1}, "repetitions"),
        ({"goal": GOAL, "repetitions": {"at_least": 5, "at_most": 3}}, "repetitions.at_most"),
        ({"goal": GOAL, "repetitions": {"at_least": "many"}}, "repetitions.at_least"),
        ({"repetitions": {"at_least": 3}}, "repetitions"),
        ({"repetitions": "many"}, "repetitions"),
        ({"repetitions": 0}, "repetitions"),
        ({"sweep": {"hosts": EXPLORED}}, "sweep.hosts"),
        ({"goal": {**GOAL, "until": "3 %"}, "sweep": {"hosts": EXPLORED}}, "sweep.hosts"),
        ({"goal": GOAL, "sweep": {"hosts": EXPLORED, "molecules": [64, 512]}}, "sweep.hosts"),
        ({"goal": GOAL, "sweep": {"hosts": EXPLORED}, "warmups": 1}, "sweep.hosts"),
        ({"goal": GOAL, "sweep": {"hosts": EXPLORED}, "where": "hosts > 7"}, "sweep.hosts"),
        ({"goal": GOAL, "sweep": {"hosts": {"from": 1, "explore": True}}}, "sweep.hosts"),
        ({"goal": GOAL, "sweep": {"molecules": {**EXPLORED}}}, "sweep.molecules"),
        ({"goal": GOAL, "workload": "ring", "sweep": {"hosts": {**EXPLORED, "from": 2}}}, "sweep.hosts"),
    ],
)
def test_impossible_goals_are_refused_at_their_field(changes: dict[str, Any], path: str):
    assert list(errors(**changes)) == [path]


def test_explored_sizes_begin_with_few_and_keep_those_that_rounds_chose():
    spec = parse({**BASE, "goal": GOAL, "sweep": {"hosts": {"from": 1, "to": 64, "explore": True}}})

    first = design.expand(spec)
    chosen = {**first.configurations[0].parameters, "hosts": 7}
    later = design.expand(spec, [chosen, {**chosen, "hosts": 9, "molecules": 64}, {**chosen, "hosts": 99}])

    assert [point.hosts for point in first.configurations] == [1, 4, 16]
    assert [point.hosts for point in later.configurations] == [1, 4, 7, 16]
    assert len(later.trials) == 4 * spec.at_least
    assert design.most_hosts(spec, first) == (64, "sweep.hosts")
    assert parse(spec.to_dict()) == spec


def test_explored_sizes_leave_out_what_the_filter_excludes():
    sweep = {"hosts": {"from": 1, "to": 12, "explore": True}}
    spec = parse({**BASE, "goal": GOAL, "sweep": sweep, "where": "hosts != 4 and hosts != 8"})

    assert design.allowed_sizes(spec) == [1, 2, 3, 5, 6, 7, 9, 10, 11, 12]
    assert [point.hosts for point in design.expand(spec).configurations] == [1, 2, 5, 9]


@pytest.mark.parametrize(
    ("written", "plain", "values"),
    [
        ({"from": 2, "to": 6, "step": 2}, "2..6 step 2", [2, 4, 6]),
        ({"from": 1, "to": 3}, "1..3", [1, 2, 3]),
        ({"choose": [3, 1]}, [3, 1], [3, 1]),
    ],
)
def test_swept_values_can_be_mappings(written: Any, plain: Any, values: list[int]):
    spec = parse({**BASE, "sweep": {"hosts": written}})

    assert spec.sweep == {"hosts": plain}
    assert spec.swept("hosts") == values
