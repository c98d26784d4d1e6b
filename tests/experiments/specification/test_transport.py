"""Transports in specifications: their spellings, sweeps, hashes and errors."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.errors import InvalidSpec
from experiments.specification import design, parse, parse_yaml
from experiments.specification.launch_plan import plan_launch
from experiments.specification.transport import as_swept, as_transport, transport_of
from tests.experiments.specifications import errors_of, specification

OWN = {"name": "ucx", "environment": {"UCX_TLS": "rc,self"}, "arguments": ["--mca", "pml", "ucx"]}
IN_ONE_LINE = "ucx: UCX_TLS=rc,self --mca pml ucx"


def test_a_mapping_and_its_line_are_one_transport() -> None:
    assert as_transport(OWN) == as_transport(f"  {IN_ONE_LINE} ") == IN_ONE_LINE
    parts = transport_of(IN_ONE_LINE)
    assert (parts.name, parts.environment, parts.arguments) == (
        "ucx",
        {"UCX_TLS": "rc,self"},
        ("--mca", "pml", "ucx"),
    )
    assert specification(transport=OWN).to_dict()["transport"] == IN_ONE_LINE


def test_swept_transports_are_split_at_a_comma_and_a_space() -> None:
    expected = ["native", "tcp", IN_ONE_LINE]
    assert as_swept(["native", "tcp", OWN]) == as_swept(f"native,tcp, {IN_ONE_LINE}") == expected
    spec = parse_yaml(f"name: a\nworkload: water\nsweep:\n  transport: [native, tcp, {OWN!r}]\n")
    assert [point.parameters["transport"] for point in design.expand(spec).configurations] == expected
    assert [
        plan_launch("water", p.parameters).launch["transport"] for p in design.expand(spec).configurations
    ] == expected
    assert parse(spec.to_dict()) == spec


def test_configurations_that_leave_it_to_the_cluster_keep_their_hash() -> None:
    plain, chosen = specification(), specification(transport="tcp")
    assert "transport" not in design.first_point(plain)
    assert plan_launch("water", design.first_point(plain)).launch == {}
    assert plan_launch("water", design.first_point(chosen)).launch == {"transport": "tcp"}
    hashes = {point.hash for spec in (plain, chosen) for point in design.expand(spec).configurations}
    assert len(hashes) == 2 * len(design.expand(plain).configurations)


@pytest.mark.parametrize(
    "written",
    ["udp", "tcp: A=b", "ucx:", {"name": "x"}, {**OWN, "more": 1}, {**OWN, "arguments": ["a b"]}, 7, "x: " + "a" * 200],
)
def test_what_is_no_transport_is_refused_at_its_field(written: Any) -> None:
    assert "transport" in errors_of(transport=written)
    assert any(path.startswith("sweep") for path in errors_of(sweep={"transport": [written]}))


def test_a_transport_is_constant_or_swept_and_no_parameter() -> None:
    assert "transport" in errors_of(transport="tcp", sweep={"transport": ["native"]})
    assert "parameters.transport" in errors_of(parameters={"transport": "tcp"})


def test_a_program_keeps_its_own_parameter_of_the_name() -> None:
    program = ["prog", "{transport}"]
    parameters = {
        "program": program,
        "placeholders": {"transport": {"type": "text", "default": "post", "pattern": "[a-z ]+"}},
    }
    fields = {"name": "a", "workload": "command", "parameters": {**parameters, "transport": "carrier pigeon"}}
    spec = parse(fields)
    point = design.first_point(spec)
    assert point["transport"] == "carrier pigeon"
    assert plan_launch("command", point).launch == {}
    with pytest.raises(InvalidSpec) as refused:
        parse({**fields, "transport": "tcp"})
    assert "transport" in refused.value.by_path()
