"""``study: network``: the short form of a sweep over links, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.specification import parse, parse_yaml
from experiments.specification.design import expand
from tests.experiments.specifications import errors_of


def written(**more: Any) -> dict[str, Any]:
    return {
        "name": "Needs",
        "workload": "water",
        "parameters": {"molecules": 216, "steps": 60, "hosts": 2},
        "study": "network",
        "link": {"bandwidth": "500 Mbit/s"},
        **more,
    }


def links(specification: dict[str, Any]) -> list[tuple[float, float, float]]:
    names = ("link.delay", "link.bandwidth", "link.loss")
    return [tuple(point.parameters[n] for n in names) for point in expand(parse(specification)).configurations]


def test_expanded_has_ten_links_from_the_one_under_link() -> None:
    asked = links(written())
    assert asked[0] == (0.0, 5e8, 0.0)
    assert asked[-1] == (1e-3, 5e7, 0.0)
    assert len(set(asked)) == 10


def test_to_dict_holds_the_sweep_of_a_study() -> None:
    stored = parse(written()).to_dict()
    assert "study" not in stored
    assert stored["zip"] == [["link.delay", "link.bandwidth"]]
    assert parse(stored) == parse(written())


def test_the_range_and_loss_can_be_given() -> None:
    asked = links(written(study={"kind": "network", "delay": "8 ms", "bandwidth": "100 Mbit/s", "loss": ["1 %"]}))
    assert max(delay for delay, _, _ in asked) == 8e-3
    assert min(rate for _, rate, _ in asked) == 1e8
    assert [(delay, rate) for delay, rate, loss in asked if loss == 0.01] == [(0.0, 5e8), (8e-3, 5e8)]


def test_expanded_keeps_other_swept_parameters() -> None:
    assert len(links(written(sweep={"molecules": [64, 216]}, parameters={"hosts": 2, "steps": 60}))) == 20


@pytest.mark.parametrize(
    ("more", "path", "sentence"),
    [
        ({"study": "disk"}, "study.kind", "must be network"),
        ({"study": 3}, "study.kind", "must be text"),
        ({"study": {"kind": "network", "delay": "3 MB"}}, "study.delay", "unknown unit 'MB'"),
        ({"study": {"kind": "network", "speed": 3}}, "study.speed", "not a known field"),
        ({"study": {"kind": "network", "bandwidth": "1 Gbit/s"}}, "study.bandwidth", "less than the bandwidth"),
        ({"link": {"bandwidth": None}}, "link.bandwidth", "starts from a bandwidth"),
        (
            {"link": {"delay": "2 ms"}, "study": {"kind": "network", "delay": "1 ms"}},
            "study.delay",
            "more than the delay",
        ),
        ({"sweep": {"link.delay": [0, 1]}}, "sweep.link.delay", "chosen by the study"),
    ],
)
def test_expanded_reports_errors_at_their_fields(more: dict[str, Any], path: str, sentence: str) -> None:
    errors = errors_of(**written(**more))
    assert any(sentence in message for message in errors[path])


def test_errors_in_yaml_carry_their_line() -> None:
    text = "name: Needs\nworkload: water\nstudy:\n  kind: network\n  delay: 5 MB\n"
    with pytest.raises(Exception, match="unknown unit") as raised:
        parse_yaml(text)
    assert [error.line for error in raised.value.errors] == [5]
