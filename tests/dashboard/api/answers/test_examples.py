"""The OpenAPI document shows an example of every JSON body and answer, and each is what its schema says."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from drf_spectacular.generators import SchemaGenerator

from dashboard.api import examples
from experiments.spec import parse, parse_yaml

PROBLEM = "application/problem+json"
JSON = ("application/json", PROBLEM)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    told: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return told


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What is sent and answered: (where, media type, schema and examples)."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = f"{method.upper()} {path.removeprefix(examples.ROOT)}"
            for kind, told in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{place} request", kind, told
            for status, answer in operation["responses"].items():
                for kind, told in answer.get("content", {}).items():
                    yield f"{place} {status}", kind, told


def values(told: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in told.get("examples", {}).values()]


def test_every_json_body_has_an_example(document: dict[str, Any]) -> None:
    assert [place for place, kind, told in bodies(document) if kind in JSON and not values(told)] == []
    assert sum(kind in JSON for _, kind, _ in bodies(document)) > 300


def test_every_example_is_valid_against_its_schema(document: dict[str, Any]) -> None:
    wrong = []
    for place, kind, told in bodies(document):
        schema = {"components": document["components"], **told["schema"]}
        if place.endswith(" request"):
            schema = sent(schema)
        judge = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
        for value in values(told):
            wrong += [f"{place} {kind}: {error.json_path}: {error.message}" for error in judge.iter_errors(value)]
            wrong += [f"{place} {kind}: {name} is not in the schema" for name in unknown(value, schema, document)]
    assert not wrong, "\n".join(wrong)


def sent(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for who sends: what is only read need not be there."""
    part = copy.deepcopy(schema)
    for each in part["components"]["schemas"].values():
        only_read = {name for name, member in each.get("properties", {}).items() if member.get("readOnly")}
        each["required"] = [name for name in each.get("required", ()) if name not in only_read]
    return part


def unknown(value: Any, schema: Any, document: dict[str, Any], at: str = "$") -> Iterator[str]:
    """The members of ``value`` of which a schema with members of its own says nothing: an answer has lost or renamed them."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for part in schema.get("allOf", ()):
        yield from unknown(value, part, document, at)
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from unknown(item, schema.get("items", {}), document, f"{at}[{place}]")
    elif isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name in schema["properties"]:
                yield from unknown(member, schema["properties"][name], document, f"{at}.{name}")
            elif not schema.get("additionalProperties"):
                yield f"{at}.{name}"


def test_no_example_is_of_an_operation_that_is_not_there(document: dict[str, Any]) -> None:
    shown = {place.rpartition(" ")[0] for place, _, told in bodies(document) if values(told)}
    assert set(examples.known()) <= shown
    used = sum(kind == "application/json" and len(values(told)) for place, kind, told in bodies(document))
    told_here = list(examples.known().values())
    json_bodies = sum("application/json" in each.get("request", {}) for each in told_here)
    assert used == json_bodies + sum(len(each["answers"]) for each in told_here)


def test_a_specification_of_an_example_can_be_submitted(document: dict[str, Any]) -> None:
    for operation in ("POST experiments/", "PUT experiments/{slug}/", "POST validate/"):
        sent = examples.known()[operation]["request"]
        assert parse(sent["application/json"]) == parse_yaml(sent["application/yaml"])
